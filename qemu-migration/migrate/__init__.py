"""Series for QEMU: how it is built, checked and tested.  Fetching, applying and exporting is as for kernels."""
