"""The guest's initramfs: busybox, init, the test programs, and a job to run."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..base import files, paths, proc
from ..base.progress import say
from ..kernel import selftests
from . import busybox

GUEST = paths.TESTS / "guest"
# In a folder of its own: what is measured does not run it, so it is no part of ids.instrument().
STACKS = GUEST / "stacks/stacks.sh"
# Name, seconds that it may take, program with its arguments.
Command = tuple[str, float, Sequence[str]]


def base(arch: str, tests: Path) -> Path:
    """Path of the archive with busybox, init and the programs of `tests` (a directory made by
    selftests.build()), made if it is not there or they have changed."""
    target = paths.out("selftests", f"{tests.name}.cpio")
    with paths.locked(f"image-{tests.name}", say):
        program = busybox.path(arch)
        inputs = [GUEST / "init", GUEST / "job.sh", tests / ".stamp", program]
        if target.exists() and all(path.stat().st_mtime_ns <= target.stat().st_mtime_ns for path in inputs):
            return target
        with paths.whole(paths.out("selftests", f"{tests.name}.root")) as root:
            begin(root, arch)
            for name in selftests.programs(tests):
                (root / "tests" / name).parent.mkdir(exist_ok=True)
                shutil.copy2(tests / name, root / "tests" / name)
            cpio(root, target)
        paths.remove(target.with_suffix(".root"))
    return target


def begin(root: Path, arch: str) -> None:
    """Put what each guest of `arch` has into the directory `root`: busybox, init, the functions of a job."""
    for folder in ("bin", "tests", "dev", "proc", "sys", "tmp"):
        (root / folder).mkdir()
    shutil.copy2(busybox.path(arch), root / "bin/busybox")
    for name in ("init", "job.sh"):
        shutil.copy2(GUEST / name, root / name)
    (root / "init").chmod(0o755)


def with_job(base_image: Path, job: str, target: str | Path, hold: Path | None = None) -> Path:
    """Write to `target` an archive of `base_image`, /job, a shell script, and what it may use: /stacks.sh, and
    /hold_vm, a copy of `hold`."""
    target = Path(target)
    with paths.whole(target.with_suffix(".job")) as root:
        (root / "job").write_text(job, encoding="utf-8")
        shutil.copy2(STACKS, root / STACKS.name)
        if hold:
            shutil.copy2(hold, root / "hold_vm")
        cpio(root, target.with_suffix(".tail"))
    paths.remove(target.with_suffix(".job"))
    try:
        with open(target, "wb") as out:
            for part in (base_image, target.with_suffix(".tail")):
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, out)
    except OSError as error:
        raise paths.os_fail(error, target) from None
    paths.remove(target.with_suffix(".tail"))
    return target


def job(commands: Iterable[Command], stacks: bool = False, before: Iterable[str] = ()) -> str:
    """The text of /job for `commands`: a list of (name, seconds, [program, argument...]).

    stacks: a command whose time is up tells where its threads are, see STACKS; before: lines of shell before the first
    of them, such as held.LINE."""
    lines = [". /job.sh", *before]
    if stacks:
        lines.append(f". /{STACKS.name}")
    for name, seconds, command in commands:
        lines.append(f"{'watched' if stacks else 'run'} {shlex.quote(name)} {int(seconds)} {shlex.join(command)}")
    return "\n".join([*lines, "finish", ""])


def cpio(root: Path, target: Path) -> None:
    """Archive the tree `root`, owned by root, in the order of names."""
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    with files.whole(target) as part:
        proc.run(
            ["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0", "-O", str(part)],
            "cpio",
            cwd=root,
            stdin="".join(f"{name}\n" for name in names).encode(),
        )
