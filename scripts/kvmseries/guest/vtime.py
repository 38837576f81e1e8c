"""The virtual-time machine (scripts/vtime): its QEMU, its shared object, its parameters.

A variant of the model is "nominal", or one parameter times a factor: "line*2", "dvm_busy*0.5".
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..base import debian, distro, paths, proc
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..kernel import toolchain
from ..kernel.build import Kernel
from . import tcgplugin

SOURCE = paths.ROOT / "scripts/vtime"
NOMINAL = "nominal"
# CPUs of the emulated machine: what the model describes, and what QEMU calls it.
CPUS = {"arm64": "neoverse-n1", "x86_64": "max"}
# Factors of a variant: what is nothing, or a thousand times the machine's, is no model of it.
_FACTORS = (0.01, 100.0)
# The plugin interface that it is made for came with 9.2 (version 4 of the interface).
_OLDEST = (9, 2)
_NEWEST = (10, 99)
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
            raise Usage(
                f"unknown model '{variant}': {NOMINAL}, or one of {', '.join(sorted(model))} "
                "times a factor, such as line*2"
            )
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


class Qemu:
    """A QEMU program that the instrument works with."""

    def __init__(self, program: str | Path, folder: Path | None = None) -> None:
        self.program = str(program)
        self.folder = folder  # where it was unpacked; None if it is installed

    def version(self) -> tuple[tuple[int, int], str]:
        """(major, minor) and the whole first line; (0, 0) if it does not run."""
        try:
            text = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=False).stdout
        except OSError:
            text = ""
        match = re.search(r"version (\d+)\.(\d+)", text)
        return (int(match[1]), int(match[2])) if match else (0, 0), text.split("\n", maxsplit=1)[0]

    def environment(self) -> list[str]:
        """Words "NAME=value" that it needs."""
        if not self.folder:
            return []
        modules = next(iter(self.folder.glob("usr/lib/*/qemu")), None)
        return [f"QEMU_MODULE_DIR={modules}"] if modules else []

    def arguments(self) -> list[str]:
        """Arguments that it needs to find its own firmware."""
        if not self.folder:
            return []
        return ["-L", str(self.folder / "usr/share/qemu"), "-L", "/usr/share/seabios"]


def qemu(arch: str) -> Qemu:
    """The Qemu for `arch`: the machine's own if it is new enough, else that of the distribution's
    backports, unpacked in the cache directory and not installed.  Raises Fail if neither can be had."""
    name = f"qemu-system-{toolchain.machine(arch)}"
    own = Qemu(shutil.which(name) or name)
    if _OLDEST <= own.version()[0] <= _NEWEST:
        return own
    package = "qemu-system-arm" if arch == "arm64" else "qemu-system-x86"
    # Its libraries are those that the installed one depends on.
    debian.install(f"boot-{arch}")
    own = Qemu(shutil.which(name) or name)
    if _OLDEST <= own.version()[0] <= _NEWEST:
        return own
    folder = paths.cache(f"backports-{package}")
    if not folder.exists() and not debian.has_mirror():
        raise Fail(
            f"virtual time needs QEMU {_OLDEST[0]}.{_OLDEST[1]} or newer, and there is "
            f"{own.version()[1] or 'none'}: install a newer one, use --clock wall, or {distro.CONTAINER}"
        )
    with paths.locked(folder.name, say, shared=True):
        if not folder.exists():
            say(
                f"fetching a QEMU from {_OLDEST[0]}.{_OLDEST[1]} on, for virtual time: "
                f"{own.version()[1] or 'there is none here'}"
            )
            _unpack(package, folder)
    found = Qemu(folder / "usr/bin" / name, folder)
    number, _ = found.version()
    if number < _OLDEST:
        paths.remove(folder)
        raise Fail(
            f"virtual time needs QEMU {_OLDEST[0]}.{_OLDEST[1]} or newer, and {found.program} "
            f"{'is older' if number > (0, 0) else 'does not run here'}: install a newer QEMU, "
            "or use --clock wall"
        )
    return found


def _unpack(package: str, folder: Path) -> None:
    try:
        with paths.whole(folder) as part:
            for wanted in (package, "qemu-system-common", "qemu-system-data"):
                deb = debian.fetch_backport(wanted)
                proc.run(["dpkg-deb", "-x", str(deb), str(part)], "dpkg-deb")
    except Fail as error:
        raise Fail(
            f"virtual time needs QEMU {_OLDEST[0]}.{_OLDEST[1]} or newer, and none can be had: "
            f"{error}; install one, or use --clock wall"
        ) from None


def marks(kernel: Kernel, target: Path) -> None:
    """Write the addresses that the counters need of `kernel` (a build.Kernel) to `target`."""
    table = next((folder / "System.map" for folder in kernel.image.parents if (folder / "System.map").exists()), None)
    if not table:
        raise Fail(f"{kernel.image} has no System.map beside it: build it with `scripts/series build`")
    symbols = [line.split()[:3] for line in table.read_text(encoding="utf-8").splitlines()]
    found = {name: address for address, _, name in symbols if name in _NAMES[kernel.arch]}
    lacking = [name for name in _NAMES[kernel.arch] if name not in found]
    if lacking:
        raise Fail(
            f"linux {kernel.release} has no {lacking[0]}(), by which scripts/vtime counts: add "
            "its new name to vtime._NAMES and phases.c, or use --clock wall"
        )
    lines = list(found.items())
    if kernel.arch in TABLES:
        ranges = _functions(symbols, TABLES[kernel.arch])
        if not ranges:
            raise Fail(
                f"linux {kernel.release} has no function that writes page tables: add its new "
                "name to vtime.TABLES, or use --clock wall"
            )
        lines += [mark for low, high in ranges for mark in (("tables_from", f"{low:x}"), ("tables_to", f"{high:x}"))]
    target.write_text("".join(f"{name} {address}\n" for name, address in lines), encoding="utf-8")


def _functions(symbols: Iterable[Sequence[str]], names: str) -> list[tuple[int, int]]:
    """Ranges of addresses, first and behind the last, of functions whose names begin with `names`, a
    pattern; a function ends where the next symbol is.  symbols: words of System.map."""
    found: list[tuple[int, int]] = []
    table = sorted((int(address, 16), kind, name) for address, kind, name in symbols)
    ends = {low[0]: high[0] for low, high in zip(table, table[1:]) if high[0] > low[0]}
    for low, kind, name in table:
        if kind in "tT" and low in ends and re.match(names, name):
            if found and found[-1][1] >= low:
                found[-1] = (found[-1][0], ends[low])
            else:
                found.append((low, ends[low]))
    return found


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
    return {
        "qemu": qemu(arch).version()[1],
        "parameters": {
            name: {key: entry[key] for key in ("ns", "what", "source")} for name, entry in parameters(arch).items()
        },
    }
