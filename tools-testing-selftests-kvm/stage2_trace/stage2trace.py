"""Recording what a KVM host on arm64 does to its stage-2 page tables and TLBs: the TCG plugin in
tools-testing-selftests-kvm/stage2_trace, and what it must know of the kernel.

The trace is the file `trace` in the directory of the run; its format is in the plugin's README.md.
"""

import re
from pathlib import Path

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.kernel.build import Kernel
from kvmseries.vm import tcgplugin
from vtime import vtime

SOURCE = paths.TESTS / "stage2_trace"
# Operations whose beginning and end are recorded. They end by a RET of their own: none ends by a jump to another
# function. What each has promised when it returns is the checker's to know (stage2check.py).
OPERATIONS = (
    "kvm_vm_ioctl",
    "kvm_vcpu_ioctl",
    "kvm_handle_guest_abort",
    "kvm_pgtable_stage2_unmap",
    "kvm_pgtable_stage2_unmap_some",
    "kvm_mmu_notifier_invalidate_range_start",
    "kvm_mmu_notifier_change_pte",
    "kvm_mmu_notifier_clear_flush_young",
    "kvm_mmu_notifier_clear_young",
    "kvm_mmu_notifier_release",
)
# Of these, those that not all kernels have: change_pte went with 6.10, and the patches of 6.12 and 7.3 unmap in parts.
_NOT_EVERYWHERE = {"kvm_mmu_notifier_change_pte", "kvm_pgtable_stage2_unmap_some"}
# What begins to free a whole page table: of newer kernels, which free it in parts, and of older ones.
_DESTROY = ("kvm_pgtable_stage2_destroy_range", "kvm_pgtable_stage2_destroy")


def library() -> Path:
    """Path of the plugin, compiled if its source has changed."""
    return tcgplugin.library("stage2-trace", SOURCE, ["-lpthread"], [tcgplugin.API, tcgplugin.AARCH64])


def code(table: str, release: str) -> str:
    """The plugin's list of code, from `table`, the text of a System.map: lines of a role, a name and two addresses.

    Raises Fail if the kernel, which calls itself `release`, lacks a function."""
    functions = vtime.functions(table)
    names = {name for _, _, name in functions}
    destroy = next((name for name in _DESTROY if name in names), _DESTROY[-1])
    lines, found = [], set()
    for start, end, name in functions:
        plain = re.sub(r"\.(isra|constprop|part|cold)\b.*", "", name)
        for role, match in (
            ("store", re.match(vtime.TABLES["arm64"], name)),
            ("op", plain in OPERATIONS and ".cold" not in name),
            ("destroy", plain == destroy),
        ):
            if match:
                lines.append(f"{role} {plain} {start:x} {end:x}\n")
                found.add(plain if role != "store" else role)
    lacking = [name for name in ("store", *OPERATIONS, destroy) if name not in found | _NOT_EVERYWHERE]
    if lacking:
        what = "function that writes stage-2 page tables" if lacking[0] == "store" else f"{lacking[0]}()"
        raise Fail(
            f"linux {release} has no {what}, which the trace of stage 2 needs: correct the names in "
            "tools-testing-selftests-kvm/stage2_trace/stage2trace.py"
        )
    return "".join(lines)


def plugin(kernel: Kernel, folder: Path) -> list[str]:
    """QEMU's arguments for the plugin; writes the list of code of `kernel` (a build.Kernel) to `folder`."""
    (folder / "code").write_text(code(tcgplugin.symbols(kernel), kernel.release), encoding="utf-8")
    return ["-plugin", f"{library()},out={folder / 'trace'},code={folder / 'code'}"]
