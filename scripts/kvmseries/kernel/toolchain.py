"""Compilers: which one builds for an architecture on this host, and make's arguments for it."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from pathlib import Path

from ..base import debian, distro, paths, proc
from ..base.errors import Fail

# arch, as the kernel's ARCH names it -> (GNU's and QEMU's name, Debian's)
_ARCH = {"arm64": ("aarch64", "arm64"), "x86_64": ("x86_64", "amd64")}
# (kernel, oldest gcc) from Documentation/process/changes.rst, newest first.
_OLDEST_GCC = (((6, 16), (8, 1)), ((5, 15), (5, 1)), ((0, 0), (4, 9)))


def machine(arch: str) -> str:
    """uname -m of `arch`, which is QEMU's name for it, too."""
    return _ARCH[arch][0]


def debian_arch(arch: str) -> str:
    """Debian's name for `arch`."""
    return _ARCH[arch][1]


def prefix(arch: str) -> str:
    """CROSS_COMPILE: empty where the host can run what it builds."""
    return "" if platform.machine() == machine(arch) else f"{machine(arch)}-linux-gnu-"


def install(arch: str) -> None:
    """Install and check what builds for `arch`."""
    debian.install("build", *([f"build-{arch}"] if prefix(arch) else []))
    for program in (f"{prefix(arch)}gcc", "make", "flex", "bison", "bc", "ccache", "rsync"):
        proc.need(program)


def check(arch: str, kernel: str) -> None:
    """Raise Fail if the compiler is too old for a `kernel` of that version, "5.10.262"."""
    program = f"{prefix(arch)}gcc"
    wanted = tuple(int(part) for part in kernel.split(".")[:2])
    oldest = next(gcc for since, gcc in _OLDEST_GCC if wanted >= since)
    found = re.match(
        r"(\d+)(?:\.(\d+))?[\d.]*$", proc.run([program, "-dumpfullversion", "-dumpversion"], "gcc").strip()
    )
    if found and (int(found[1]), int(found[2] or 0)) < oldest:
        raise Fail(
            f"linux {kernel} needs gcc {oldest[0]}.{oldest[1]} or newer, and {program} is {found[0]}: install a newer "
            f"one, or {distro.CONTAINER}"
        )


def check_static(arch: str) -> None:
    """Raise Fail if no static program can be linked, which the guest's programs are: Fedora's cross compilers have no
    C library."""
    program = f"{prefix(arch)}gcc"
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "-static", "-pthread", "-x", "c", "-o", f"{folder}/program", "-"]
        status, _ = proc.attempt(command, program, stdin=b"int main(void) { return 0; }\n")
    if not status:
        return
    what = f"{program} links no static program, and the guest's are static"
    if not prefix(arch):
        raise Fail(f"{what}: {distro.how('libc.a')}")
    if distro.family() in ("debian", "ubuntu"):
        raise Fail(f"{what}: install the package libc6-dev-{debian_arch(arch)}-cross, or run `make deps`")
    own = [f"use --arch {name}, or " for name in _ARCH if not prefix(name)]
    raise Fail(f"{what}: {''.join(own)}{distro.CONTAINER}")


def version(arch: str) -> str:
    """The compiler's own line about its version."""
    return proc.run([f"{prefix(arch)}gcc", "--version"], "gcc").splitlines()[0]


def major(arch: str) -> str:
    """The compiler's version up to its first dot: "12"."""
    return proc.run([f"{prefix(arch)}gcc", "-dumpversion"], "gcc").strip().partition(".")[0]


def make_arguments(arch: str) -> list[str]:
    """Arguments that every make of a kernel or of its selftests gets."""
    return [
        f"ARCH={arch}",
        f"CROSS_COMPILE={prefix(arch)}",
        f"CC=ccache {prefix(arch)}gcc",
        "HOSTCC=ccache gcc",
        f"-j{len(os.sched_getaffinity(0))}",
    ]


def make(tree: Path, folder: Path, arch: str, suffix: str) -> list[str]:
    """The command line of a make of the kernel of `tree` in the directory `folder`, without a target; suffix: what its
    release ends in."""
    return ["make", "-C", str(tree), f"O={folder}", *make_arguments(arch), f"LOCALVERSION={suffix}"]


def environment() -> dict[str, str]:
    """For ccache, which keeps the objects that base and series share, and for builds that are the
    same wherever and whenever they are made."""
    folder = paths.cache("ccache")
    # ccache would fail each compilation, in words of its own.
    paths.check_writable(folder)
    return {
        "CCACHE_DIR": str(folder),
        "CCACHE_MAXSIZE": "5G",
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_SLOPPINESS": "time_macros",
        "KBUILD_BUILD_TIMESTAMP": "2000-01-01",
        "KBUILD_BUILD_USER": "series",
        "KBUILD_BUILD_HOST": "localhost",
        "KBUILD_BUILD_VERSION": "1",
        "MAKEFLAGS": "",
        "LOCALVERSION": "",
    }
