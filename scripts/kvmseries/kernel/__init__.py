"""Compilers, configurations, kernels and selftests that are built of a tree."""
