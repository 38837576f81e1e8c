"""The distribution that the tool runs on, and what to do there where a program is missing.

Debian and Ubuntu: debian.install() installs what is lacking.  Elsewhere the user does, or runs the tool in a container
of Debian (scripts/container).
"""

import shlex
from pathlib import Path

# Where os-release is, the first that exists.
FILES = ("/etc/os-release", "/usr/lib/os-release")
CONTAINER = "run it in a container of Debian: make run CONTAINER=1"
# Program -> its package in Debian, where that has another name.
_PACKAGES = {
    "qemu-system-aarch64": "qemu-system-arm",
    "qemu-system-x86_64": "qemu-system-x86",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "x86_64-linux-gnu-gcc": "gcc-x86-64-linux-gnu",
    "dpkg-deb": "dpkg",
    "dpkg-buildpackage": "dpkg-dev",
    "dh_listpackages": "debhelper",
    # The C library for programs that are linked statically.
    "libc.a": "libc6-dev",
    "ssh": "openssh-client",
    "script": "bsdutils",
}


def release() -> dict[str, str]:
    """os-release as a dict; {} if there is none."""
    for name in FILES:
        try:
            words = shlex.split(Path(name).read_text(encoding="utf-8", errors="replace"), comments=True)
        except (OSError, ValueError):
            continue
        return {key: value for key, _, value in (word.partition("=") for word in words)}
    return {}


def title() -> str:
    """What the distribution calls itself: "Ubuntu 24.04.1 LTS"."""
    found = release()
    return found.get("PRETTY_NAME") or found.get("NAME") or "this system"


def how(program: str) -> str:
    """What to do to have `program`, as the end of a message."""
    package, found = _PACKAGES.get(program, program), release()
    if "debian" in (found.get("ID"), *found.get("ID_LIKE", "").split()):
        return f"install the package {package}, or run `make deps`"
    return f"{CONTAINER}, or install the package that has it, such as {package}"


def no_sources(why: str) -> str:
    """The line for what Debian's mirrors alone have, where there are none; why: what this system lacks."""
    return f"{title()} {why}: give your own kernel tree with --tree (or TREE=/path), or {CONTAINER}"
