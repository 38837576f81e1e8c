"""How much arm64's stage 2 does with mmu_lock held: arch-arm64-kvm/chunks, a program around the code of an applied
tree."""

import re
from pathlib import Path

from ..base import paths, proc
from ..base.errors import Fail
from ..source import ccode

ROOM = paths.ROOT / "arch-arm64-kvm/chunks"
SOURCE, HEADER = "arch/arm64/kvm/hyp/pgtable.c", "arch/arm64/include/asm/kvm_pgtable.h"
# Shifts of the sizes of pages.
PAGES = (12, 14, 16)
# What is cut out of the two files, in an order in which it compiles: the header's, and then those of pgtable.c.
_TYPES = """
struct kvm_pgtable, enum kvm_pgtable_walk_flags, struct kvm_pgtable_visit, typedef kvm_pgtable_visitor_fn_t,
struct kvm_pgtable_walker, enum kvm_pgtable_chunk_flags"""
_CODE = """
struct kvm_pgtable_walk_data, kvm_granule_shift, kvm_granule_size, kvm_pgtable_idx, __kvm_pgd_page_idx,
kvm_pgd_page_idx, kvm_pte_valid, kvm_pte_table, kvm_pte_to_phys, kvm_pte_follow, kvm_pgtable_visitor_cb,
head __kvm_pgtable_walk, __kvm_pgtable_visit, __kvm_pgtable_walk, _kvm_pgtable_walk, kvm_pgtable_walk,
struct stage2_chunk_data, stage2_chunk_entry, stage2_chunk_next, stage2_chunk_table, stage2_chunk_walker,
kvm_pgtable_stage2_chunk_end"""


def collect(tree: Path) -> str:
    """The text of pgtable.inc: all definitions that the program compiles of the kernel in `tree`.  Fail if one is not
    there."""
    parts = []
    for name, wanted in ((HEADER, _TYPES), (SOURCE, _CODE)):
        if not (tree / name).is_file():
            raise Fail(f"{tree} has no {name}: it takes a tree made by scripts/series apply")
        text = (tree / name).read_text(encoding="utf-8")
        parts += [_cut(text, one, name) for one in re.split(r",\s", wanted.strip())]
    return "\n".join(parts)


def _cut(text: str, wanted: str, file: str) -> str:
    kind, _, name = wanted.rpartition(" ")
    match = ccode.find(text, kind or "function", name)
    if not match:
        raise Fail(f"{file}: {wanted} is not there, which arch-arm64-kvm/chunks compiles")
    return match[0].rstrip("\n") + (";\n" if kind == "head" else "\n")


def run(text: str, shift: int, folder: Path) -> tuple[bool, str]:
    """Compile the program with `text`, of collect(), for pages of 1 << `shift` bytes, in `folder`, and run it.
    Returns (whether it ended well, what it printed)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pgtable.inc").write_text(text, encoding="utf-8")
    program = folder / f"chunks-{shift}"
    flags = "-O2 -Wall -Werror -Wno-unused-function -fno-strict-aliasing".split()
    flags += [f"-DPAGE_SHIFT={shift}", f"-I{ROOM}", f"-I{folder}"]
    proc.run(["gcc", *flags, "-o", str(program), str(ROOM / "chunks.c")], "compiling arch-arm64-kvm/chunks")
    status, output = proc.attempt([str(program)], "arch-arm64-kvm/chunks")
    return status == 0, output
