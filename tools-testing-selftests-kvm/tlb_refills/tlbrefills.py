"""Counting a nested guest's TLB entries that are filled again after a fault, on arm64: the TCG plugin in
tools-testing-selftests-kvm/tlb_refills, what it must know of the kernel, and its counts.

A guest.run() on a machine.Machine with refills=True leaves the counts in the directory of the run: read() them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.kernel.build import Kernel
from kvmseries.vm import tcgplugin
from vtime import vtime

SOURCE = paths.TESTS / "tlb_refills"
# By which the plugin knows when the nested guest runs, and its faults.
MARKS = ("__guest_enter", "__guest_exit", "kvm_handle_guest_abort")


@dataclass(frozen=True)
class Counts:
    """What the plugin has counted until QEMU ended."""

    write_faults: int  # permission faults of the nested guest's writes: those of the dirty log
    other_faults: int
    refills_write_faults: int  # of entries that a TLBI removed while a write fault was handled
    refills_other_faults: int
    refills_no_fault: int  # of those that a TLBI removed at another time, such as a harvest
    least_of_a_fault: int  # of write faults
    most_of_a_fault: int
    tlbis_page: int  # TLBIs of one page, while write faults were handled
    tlbis_all: int
    pages: int  # that the nested guest has accessed on one CPU

    @property
    def per_fault(self) -> float:
        """Refills for each write fault."""
        return self.refills_write_faults / self.write_faults if self.write_faults else 0.0


def library() -> Path:
    """Path of the plugin, compiled if its source has changed."""
    return tcgplugin.library("tlb-refills", SOURCE, ["-lpthread"], [tcgplugin.API, tcgplugin.AARCH64])


def marks(table: str, release: str) -> str:
    """The plugin's list of marks, from `table`, the text of a System.map: lines of a name and two addresses.

    Raises Fail if the kernel, which calls itself `release`, lacks one."""
    found = {name: f"{name} {start:x} {end:x}\n" for start, end, name in vtime.functions(table) if name in MARKS}
    for name in MARKS:
        if name not in found:
            raise Fail(
                f"linux {release} has no {name}(), which counting TLB refills needs: correct the names in "
                "tools-testing-selftests-kvm/tlb_refills/tlbrefills.py and refills.c"
            )
    return "".join(found.values())


def plugin(kernel: Kernel, folder: Path, block: int | None = None) -> list[str]:
    """QEMU's arguments for the plugin; writes the marks of `kernel` (a build.Kernel) to `folder`.

    block: address of 2 MiB that the nested guest maps by one block."""
    (folder / "marks").write_text(marks(tcgplugin.symbols(kernel), kernel.release), encoding="utf-8")
    more = "" if block is None else f",block={block:x}"
    return ["-plugin", f"{library()},out={folder / 'refills'},marks={folder / 'marks'}{more}"]


def parse(text: str) -> Counts:
    """The counts in the plugin's output; raises Fail if it is not whole."""
    found = {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.M)}
    if not found.pop("done", 0):
        raise Fail("the counts of TLB refills have no end: QEMU was killed")
    try:
        return Counts(**found)
    except TypeError as error:
        raise Fail(f"the counts of TLB refills are not those of tlbrefills.py: {error}") from None


def read(folder: Path) -> Counts:
    """The counts of the run whose directory is `folder`."""
    path = folder / "refills"
    try:
        return parse(path.read_text(encoding="ascii"))
    except OSError as error:
        raise paths.os_fail(error, path) from None
