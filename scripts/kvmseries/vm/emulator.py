"""Which QEMU a guest runs on: the machine's own, or a newer one of the distribution's backports."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path

from ..base import debian, distro, paths, proc
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import toolchain
from . import image

Version = tuple[int, int]
_ANY: Version = (99, 99)

# Before it, DC ZVA invalidates the translation of the first byte of the block that it zeroes, and no other: what was
# executed from a page goes on to be executed when the kernel has zeroed the page and mapped it elsewhere (QEMU
# e2faabee78ff, "accel/tcg: Forward probe size on to notdirty_write").
_ZEROES = (8, 2)
# The first whose CPU `max` has FEAT_NV2, and the kernel parameter with which KVM asks for it.
_NESTS, _NESTED = (9, 0), "kvm-arm.mode=nested"


class Qemu:
    """A QEMU program."""

    def __init__(self, program: str | Path, folder: Path | None = None) -> None:
        self.program = str(program)
        self.folder = folder  # where it was unpacked; None if it is installed

    def version(self) -> tuple[Version, str]:
        """(major, minor) and the whole first line; (0, 0) if it does not run."""
        try:
            text = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=False).stdout
        except OSError:
            text = ""
        match = re.search(r"version (\d+)\.(\d+)", text)
        return (int(match[1]), int(match[2])) if match else (0, 0), text.split("\n", maxsplit=1)[0]

    def environment(self) -> list[str]:
        """Words "NAME=value" that it needs."""
        modules = next(iter(self.folder.glob("usr/lib/*/qemu")), None) if self.folder else None
        return [f"QEMU_MODULE_DIR={modules}"] if modules else []

    def arguments(self) -> list[str]:
        """Arguments that it needs to find its own firmware."""
        return ["-L", str(self.folder / "usr/share/qemu"), "-L", "/usr/share/seabios"] if self.folder else []

    def words(self) -> list[str]:
        """What a command line that runs it begins with."""
        environment = self.environment()
        return [*(["env", *environment] if environment else []), self.program, *self.arguments()]


def binary(arch: str) -> str:
    """The name of QEMU's program for `arch`."""
    return f"qemu-system-{toolchain.machine(arch)}"


def newer(arch: str, oldest: Version, what: str, otherwise: str, newest: Version = _ANY) -> Qemu:
    """The Qemu for `arch`: the machine's own if it is from `oldest` to `newest`, else that of the distribution's
    backports, unpacked in the cache directory and not installed.

    what: what needs it; otherwise: what a user can do without it.  Raises Fail if neither can be had."""
    name = binary(arch)
    # The libraries of the backports' are those that the installed one depends on.
    for prepare in (lambda: None, lambda: debian.install(f"boot-{arch}")):
        prepare()
        own = Qemu(shutil.which(name) or name)
        if oldest <= own.version()[0] <= newest:
            return own
    package = "qemu-system-arm" if arch == "arm64" else "qemu-system-x86"
    upto = "or newer" if newest == _ANY else f"to {newest[0]}.{newest[1]}"
    need = f"{what} needs QEMU {oldest[0]}.{oldest[1]} {upto}"
    folder = paths.cache(f"backports-{package}")
    if not folder.exists() and not debian.has_mirror():
        raise Fail(
            f"{need}, and there is {own.version()[1] or 'none'}: install one of these, {otherwise}, or {distro.CONTAINER}"
        )
    with paths.locked(folder.name, say, shared=True):
        if not folder.exists():
            say(f"{need}, and there is {own.version()[1] or 'none'}: fetching one")
            _unpack(package, folder, need, otherwise)
    found = Qemu(folder / "usr/bin" / name, folder)
    number, line = found.version()
    if not oldest <= number <= newest:
        paths.remove(folder)
        raise Fail(
            f"{need}, and {found.program} {'is ' + line if number > (0, 0) else 'does not run here'}: install one of "
            f"these, or {otherwise}"
        )
    return found


def _unpack(package: str, folder: Path, need: str, otherwise: str) -> None:
    try:
        with paths.whole(folder) as part:
            for wanted in (package, "qemu-system-common", "qemu-system-data"):
                deb = debian.fetch_backport(wanted)
                proc.run(["dpkg-deb", "-x", str(deb), str(part)], "dpkg-deb")
    except Fail as error:
        raise Fail(f"{need}, and none can be had: {error}; install one, or {otherwise}") from None


def for_commands(
    arch: str, commands: Iterable[image.Command], accel: str = "tcg", params: Collection[str] = ()
) -> Qemu:
    """The Qemu that runs `commands`, as for image.job(), by the wall clock, with the kernel parameters `params`: the
    machine's own, unless it emulates, and has no nested virtualisation where that is asked for or may have old
    translations of what the commands execute.  Raises Fail if it takes a newer one and none can be had."""
    own = Qemu(binary(arch))
    number, _ = own.version()
    if accel != "tcg" or arch != "arm64" or number == (0, 0):
        return own
    if _NESTED in params and number < _NESTS:
        return newer(arch, _NESTS, _NESTED, "leave the parameter out")
    executes = any("stage2_fault_stress_test" in str(word) for _, _, words in commands for word in words)
    if executes and number < _ZEROES:
        return newer(arch, _ZEROES, "stage2_fault_stress_test", "leave it out")
    return own
