"""A plugin of QEMU that records stores to stage-2 page tables and TLBIs, and what checks the trace."""
