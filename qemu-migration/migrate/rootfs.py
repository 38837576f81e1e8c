"""The initramfs of L1, the machine in which two QEMUs run: busybox, the job's scripts, the driver, the
guest and the QEMUs with their libraries."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from kvmseries.base import paths
from kvmseries.vm import busybox, image

from . import build, driver


def archive(programs: Mapping[str, build.Program], tools: Path, target: Path, arch: str) -> dict[str, list[str]]:
    """Write the archive `target` with the QEMUs `programs`, a dict of labels to build.Programs, each in driver.place("/q", LABEL);
    tools: as driver.build() returns for `arch`.  Returns {label: events that it has}."""
    target.parent.mkdir(parents=True, exist_ok=True)
    box = busybox.path(arch)
    events = {}
    with paths.whole(target.with_suffix(".root")) as root:
        for folder in ("bin", "tests", "dev", "proc", "sys", "tmp", "migration", "q"):
            (root / folder).mkdir()
        shutil.copy2(box, root / "bin/busybox")
        for name in ("init", "job.sh"):
            shutil.copy2(image.GUEST / name, root / name)
        (root / "init").chmod(0o755)
        for name in driver.NAMES[arch]:
            shutil.copy2(tools / name, root / "migration" / name)
        for label, program in programs.items():
            events[label] = driver.bundle(program, driver.place(root / "q", label))
        image.cpio(root, target)
    paths.remove(target.with_suffix(".root"))
    return events
