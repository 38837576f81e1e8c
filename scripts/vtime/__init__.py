"""The virtual clock: a plugin of QEMU in C, and what builds and drives it."""
