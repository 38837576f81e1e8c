"""What a series is a series for: linux, or QEMU; how a source tree of each is told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Callable


@dataclass(frozen=True)
class Project:
    """A project with sources of its own."""

    title: str  # what messages call it
    file: str  # holds the version
    core: str  # what else each of its trees has
    wanted: str  # for a message: what a tree must be
    parse: Callable[[str], str | None]  # text of `file` to the version, None if it is not such a file

    def version(self, tree: str | Path) -> str | None:
        """The version of the sources in the directory `tree`; None if they are not this project's."""
        try:
            text = (Path(tree) / self.file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return self.parse(text) if (Path(tree) / self.core).exists() else None


def kernel_version(makefile: str) -> str | None:
    """The version that a kernel's Makefile (text) gives, "5.10.262"; None if it is no such."""
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) *= *(\d+)", makefile, re.M))
    if len(found) != 3:
        return None
    return f"{found['VERSION']}.{found['PATCHLEVEL']}.{found['SUBLEVEL']}"


def qemu_version(text: str) -> str | None:
    """The version in QEMU's file VERSION, "10.0.13"; None if the text is not that."""
    return text.strip() if re.fullmatch(r"\d+\.\d+\.\d+", text.strip()) else None


PROJECTS = {
    "linux": Project(
        "linux",
        "Makefile",
        "virt/kvm/kvm_main.c",
        "a linux kernel tree: it has no kernel Makefile and virt/kvm/kvm_main.c at its top",
        kernel_version,
    ),
    "qemu": Project(
        "QEMU",
        "VERSION",
        "accel/kvm/kvm-all.c",
        "a QEMU tree: it has no VERSION and accel/kvm/kvm-all.c at its top",
        qemu_version,
    ),
}
