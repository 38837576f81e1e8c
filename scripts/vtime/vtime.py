"""The virtual-time machine (scripts/vtime): its QEMU, its shared object, its parameters.

A variant of the model is "nominal", or one parameter times a factor: "line*2", "dvm_busy*0.5".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail, Usage
from kvmseries.kernel.build import Kernel
from kvmseries.vm import emulator, tcgplugin

SOURCE = paths.ROOT / "scripts/vtime"
NOMINAL = "nominal"
# CPUs of the emulated machine: what the model describes, and what QEMU calls it.
CPUS = {"arm64": "neoverse-n1", "x86_64": "max"}
# Factors of a variant: what is nothing, or a thousand times the machine's, is no model of it.
_FACTORS = (0.01, 100.0)
# Versions 4 and 5 of the plugin interface; 11.0 has another one.
_OLDEST = (9, 2)
_NEWEST = (10, 2)
_NAMES = {
    "arm64": ("n_tty_write", "__guest_exit", "__guest_enter", "kvm_handle_guest_abort"),
    "x86_64": ("n_tty_write", "kvm_mmu_page_fault"),
}
# The code that writes stage-2 page tables: functions, by the start of their names.
TABLES = {"arm64": r"_{0,2}kvm_pgtable_|stage2_|kvm_(set|clear|publish)_\w*pte"}


def parameters(arch: str, variant: str = NOMINAL) -> dict[str, dict[str, Any]]:
    """The model of `arch`: dict of name to {"ns": ..., "what": ..., "source": ...}, `variant` applied.

    Raises Usage for a variant that names no parameter, or a factor out of range.
    """
    model = yaml.safe_load((SOURCE / "model.yaml").read_text(encoding="utf-8"))[arch]
    if variant != NOMINAL:
        match = re.fullmatch(r"(\w+)\*(\d+(\.\d+)?)", variant)
        if not match or match[1] not in model:
            known = ", ".join(sorted(model))
            raise Usage(f"unknown model '{variant}': {NOMINAL}, or one of {known} times a factor, such as line*2")
        if not _FACTORS[0] <= float(match[2]) <= _FACTORS[1]:
            raise Usage(
                f"model '{variant}': the factor of {match[1]} ({model[match[1]]['ns']:g} ns) is a number from "
                f"{_FACTORS[0]:g} to {_FACTORS[1]:g}"
            )
        model[match[1]]["ns"] *= float(match[2])
        # What is busy longer than it takes has no meaning.
        if "dvm_busy" in model:
            model["dvm_busy"]["ns"] = min(model["dvm_busy"]["ns"], model["dvm_sync"]["ns"])
    return model


def variants(arch: str) -> list[str]:
    """Names of the sensitivity runs: each parameter of the machine halved and doubled."""
    return [
        f"{name}*{factor}"
        for name, entry in parameters(arch).items()
        if entry.get("sensitivity", True)
        for factor in ("0.5", "2")
    ]


def options(arch: str, variant: str = NOMINAL) -> str:
    """The plugin's options for the parameters: "insn=215,line=47000,..." in ps."""
    return ",".join(f"{name}={round(entry['ns'] * 1000)}" for name, entry in parameters(arch, variant).items())


def library() -> Path:
    """Path of vtime.so, compiled if its source has changed."""
    return tcgplugin.library("vtime", SOURCE, ["-ldl", "-lpthread"])


def qemu(arch: str) -> emulator.Qemu:
    """The Qemu for `arch` that the instrument works with.  Raises Fail if none can be had."""
    return emulator.newer(arch, _OLDEST, "virtual time", "use --clock wall", _NEWEST)


def marks(kernel: Kernel, target: Path) -> None:
    """Write the addresses that the counters need of `kernel` (a build.Kernel) to `target`."""
    known = functions(tcgplugin.symbols(kernel))
    found = [(name, start) for start, _, name in known if name in _NAMES[kernel.arch]]
    lacking = sorted(set(_NAMES[kernel.arch]) - dict(found).keys())
    if lacking:
        raise Fail(
            f"linux {kernel.release} has no {lacking[0]}(), by which scripts/vtime counts: add "
            "its new name to vtime._NAMES and phases.c, or use --clock wall"
        )
    if kernel.arch in TABLES:
        tables = [(start, end) for start, end, name in known if re.match(TABLES[kernel.arch], name)]
        if not tables:
            raise Fail(
                f"linux {kernel.release} has no function that writes page tables: add its new "
                "name to vtime.TABLES, or use --clock wall"
            )
        # Those that follow each other are one range.
        starts, ends = (set(addresses) for addresses in zip(*tables))
        for start, end in zip(sorted(starts - ends), sorted(ends - starts)):
            found += [("tables_from", start), ("tables_to", end)]
    target.write_text("".join(f"{name} {address:x}\n" for name, address in found), encoding="utf-8")


def functions(table: str) -> list[tuple[int, int, str]]:
    """(first address, the one behind the last, name) of the functions in the text of a System.map, ascending; a function
    ends where the next symbol is."""
    symbols = sorted((int(address, 16), kind, name) for address, kind, name in map(str.split, table.splitlines()))
    addresses = sorted({address for address, _, _ in symbols})
    ends = dict(zip(addresses, addresses[1:]))
    return [(address, ends[address], name) for address, kind, name in symbols if kind in "tT" and address in ends]


def prefix(arch: str) -> list[str]:
    """Words to put before QEMU's command line instead of its name."""
    found = qemu(arch)
    return ["env", f"LD_PRELOAD={library()}", *found.environment(), found.program, *found.arguments()]


def plugin(arch: str, variant: str, slice_ns: int, folder: Path | None) -> list[str]:
    """QEMU's arguments for the plugin; counters.json and marks are in `folder` (None: no counters)."""
    text = f"{library()},{options(arch, variant)},slice={slice_ns * 1000}"
    if folder:
        text += f",counters={folder / 'counters.json'},marks={folder / 'marks'}"
    return ["-plugin", text]


def description(arch: str) -> dict[str, Any]:
    """The instrument, for a results file's host."""
    said = ("ns", "what", "source")
    model = {name: {key: entry[key] for key in said} for name, entry in parameters(arch).items()}
    return {"qemu": qemu(arch).version()[1], "parameters": model}
