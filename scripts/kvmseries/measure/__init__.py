"""Benchmarks: in guests, in virtual time, on this machine."""
