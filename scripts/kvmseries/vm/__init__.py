"""QEMU: its command line, its archive, its virtual clock, and a job that runs in it."""
