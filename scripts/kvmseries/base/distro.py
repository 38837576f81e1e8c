"""The distribution that the tool runs on, and what its packages are called.

Debian and Ubuntu: debian.install() installs what is lacking.  Elsewhere the user does, with the line that how()
gives; what can be had on Debian alone runs in a container (scripts/container).
"""

from __future__ import annotations

import shlex
from pathlib import Path

# Where os-release is, the first that exists.
FILES = ("/etc/os-release", "/usr/lib/os-release")
CONTAINER = "run it in a container of Debian: make run CONTAINER=1"
_INSTALL = {
    "debian": "apt-get install",
    "ubuntu": "apt-get install",
    "fedora": "dnf install",
    "rhel": "dnf install",
    "arch": "pacman -S",
}
# Program -> its package by family, None where there is none; "": in all that are not named. RHEL has qemu-kvm
# alone, which is for its own architecture and not on the PATH.
_PACKAGES: dict[str, dict[str, str | None]] = {
    "qemu-system-aarch64": {
        "": "qemu-system-aarch64",
        "debian": "qemu-system-arm",
        "ubuntu": "qemu-system-arm",
        "rhel": None,
    },
    "qemu-system-x86_64": {"": "qemu-system-x86", "rhel": None},
    "aarch64-linux-gnu-gcc": {"": "gcc-aarch64-linux-gnu", "arch": "aarch64-linux-gnu-gcc"},
    "x86_64-linux-gnu-gcc": {
        "": "gcc-x86-64-linux-gnu",
        "fedora": "gcc-x86_64-linux-gnu",
        "rhel": "gcc-x86_64-linux-gnu",
    },
    "dpkg-deb": {"": "dpkg"},
    "dpkg-buildpackage": {"": "dpkg-dev", "arch": "dpkg"},
    "dh_listpackages": {"": "debhelper"},
    "busybox": {"": "busybox-static", "fedora": "busybox", "rhel": "busybox", "arch": "busybox"},
    # The C library for programs that are linked statically.
    "libc.a": {"": "libc6-dev", "fedora": "glibc-static", "rhel": "glibc-static", "arch": "glibc"},
    "ssh": {"": "openssh-client", "fedora": "openssh-clients", "rhel": "openssh-clients", "arch": "openssh"},
    "script": {"": "util-linux", "debian": "bsdutils", "ubuntu": "bsdutils", "fedora": "util-linux-script"},
}


def release() -> dict[str, str]:
    """os-release as a dict; {} if there is none."""
    for name in FILES:
        try:
            text = Path(name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
        return {key.strip(): _unquoted(value) for key, value in pairs}
    return {}


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value.strip()


def title() -> str:
    """What the distribution calls itself: "Ubuntu 24.04.1 LTS"."""
    found = release()
    return found.get("PRETTY_NAME") or found.get("NAME") or "this system"


def family() -> str:
    """A key of _INSTALL, by ID and ID_LIKE of os-release; "" for another one."""
    found = release()
    for word in [found.get("ID", ""), *found.get("ID_LIKE", "").split()]:
        if word in _INSTALL:
            return word
        if word == "centos":
            return "rhel"
    return ""


def how(program: str) -> str:
    """What to do to have `program`, as the end of a message."""
    names, installs = _PACKAGES.get(program, {"": program}), _INSTALL.get(family())
    name = names.get(family(), names[""])
    if not name:
        return f"{title()} has no package of it: {CONTAINER}"
    if family() in ("debian", "ubuntu"):
        return f"install the package {name}, or run `make deps`"
    return f"`{installs} {name}`" if installs else f"install the package that has it, such as {name}"


def no_sources(why: str) -> str:
    """The line for what Debian's mirrors alone have, where there are none; why: what this system lacks."""
    return f"{title()} {why}: give your own kernel tree with --tree (or TREE=/path), or {CONTAINER}"
