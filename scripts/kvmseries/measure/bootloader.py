"""Booting a kernel once: which command makes the next boot, and that one alone, one of a certain release."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from ..base.errors import Fail

# Programs that a machine may have, in the order in which they are taken.
WAYS = ("grub-reboot", "grub2-reboot", "kexec")
# The id of a kernel's entry, as grub-mkconfig writes it.
_KERNEL = re.compile(r"gnulinux-(.+)-advanced-")


@dataclass(frozen=True)
class Once:
    """How to boot a kernel once."""

    way: str  # of WAYS
    prepare: str  # shell script: choose the kernel
    reboot: str  # shell script: boot it


def _grub_entries(config: str) -> Iterator[tuple[str, str]]:
    """(path "SUBMENU>ENTRY", id or title of the entry) of each menu entry in grub.cfg's text `config`."""
    submenu: str | None = None
    opened: int | None = None
    depth = 0
    for line in config.splitlines():
        match = re.match(r"\s*(submenu|menuentry)\s+'((?:[^']|'\\'')*)'(.*)\{\s*$", line)
        if match:
            option = re.search(r"\$menuentry_id_option\s+'([^']+)'", match[3])
            name = option[1] if option else match[2]
            if match[1] == "submenu":
                submenu, opened = name, depth
            else:
                yield f"{submenu}>{name}" if submenu else name, name
        depth += line.count("{") - line.count("}")
        if submenu and opened is not None and depth <= opened:
            submenu = opened = None


def grub_entry(config: str, release: str) -> str | None:
    """The path "SUBMENU>ENTRY" of the menu entry of the kernel `release` in grub.cfg's text `config`; None if
    there is none.  Entries for recovery do not count."""
    for path, name in _grub_entries(config):
        if re.search(rf"(?<![\w.]){re.escape(release)}(?![\w.+]|-(?!advanced))", name) and "recovery" not in name:
            return path
    return None


def usurped(config: str, ours: Callable[[str], object]) -> tuple[str, str | None] | None:
    """Whether the menu in grub.cfg's text `config` boots one of our kernels when nobody chooses: (its release, the path of
    the first entry that is none of ours, or None if there is none); None if it does not.

    ours: says of a release whether it is.  GRUB's default is the first entry, which is the newest kernel; a default
    that the machine's owner has chosen is not looked at.
    """
    if not re.search(r'^\s*set default="0"$', config, re.M):
        return None
    kernels = [(path, match[1]) for path, name in _grub_entries(config) if (match := _KERNEL.match(name))]
    if not kernels or not ours(kernels[0][1]):
        return None
    return kernels[0][1], next((path for path, release in kernels if not ours(release)), None)


def bls_entry(names: Iterable[str], release: str) -> str | None:
    """The entry for `release` among `names`, files of /boot/loader/entries (Fedora, RHEL); None if there is none."""
    found = [name[: -len(".conf")] for name in names if name.endswith(f"-{release}.conf")]
    return found[0] if found else None


def once(way: str, release: str, entry: str | None) -> Once:
    """The Once for the kernel `release`; entry: from grub_entry() or bls_entry(), not needed for kexec."""
    if way != "kexec":
        if not entry:
            raise Fail(f"the boot menu has no entry for {release}")
        return Once(way, f"{way} {shlex.quote(entry)}", "systemctl reboot || reboot")
    quoted = shlex.quote(release)
    prepare = (
        f"r={quoted}; i=; for f in /boot/initrd.img-$r /boot/initramfs-$r.img; do "
        "[ -f $f ] && i=--initrd=$f; done; kexec -l /boot/vmlinuz-$r $i --reuse-cmdline"
    )
    return Once(way, prepare, "systemctl kexec || kexec -e")


def choose(programs: Collection[str], wanted: str = "") -> str:
    """The way to take on a machine that has `programs`; wanted: "grub" or "kexec" instead of the first there is."""
    ways = [way for way in WAYS if way in programs and (not wanted or way.startswith(wanted))]
    if not ways:
        raise Fail(
            f"there is no {wanted or 'grub-reboot or kexec'} on it: install the package "
            f"{'kexec-tools' if wanted != 'grub' else 'grub2-common'} there"
        )
    return ways[0]
