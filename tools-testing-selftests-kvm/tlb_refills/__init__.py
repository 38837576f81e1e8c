"""A plugin of QEMU that counts TLB refills in a model of a TLB."""
