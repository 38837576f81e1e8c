"""Compilers: which one builds for an architecture on this host, and make's arguments for it."""

import os
import platform
from pathlib import Path

from ..base import debian, paths, proc

# arch, as the kernel's ARCH names it -> (GNU's and QEMU's name, Debian's)
_ARCH = {"arm64": ("aarch64", "arm64"), "x86_64": ("x86_64", "amd64")}


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
