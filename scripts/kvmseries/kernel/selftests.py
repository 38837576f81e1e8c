"""Building the KVM selftests, statically, from the tree that has the whole series: ours by tools-testing-selftests-kvm/
Makefile, the tree's by its own.

Base and series run the same binaries: what differs in a comparison is the kernel.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..base import paths, proc, stamp
from ..base.progress import say
from ..source import catalog, trees
from . import toolchain

SUBDIR = "tools/testing/selftests/kvm"
# Programs of ours that are no tests: lockphase counts locks phase by phase, spread has the scheduler spread a benchmark's
# threads.
HELPERS = ("lockphase", "spread")
# Benchmarks of ours that are for some series and architectures alone; which tests a tree can have is in tree.mk.
_NEWER = ("dirty_hold_test", "vm_killed_test")
TESTS = {("v5.10", "arm64"): ("vm_killed_test",), ("v6.12", "arm64"): _NEWER, ("v7.3", "arm64"): _NEWER}


def build(series: catalog.Series, arch: str, kernel_tree: str | Path | None = None, count: int | None = None) -> Path:
    """Build the selftests of `series`, or of its first `count` patches, for `arch` (or find them built);
    returns their directory.

    Tests are in it under their names in the Makefile: dirty_log_perf_test, aarch64/get-reg-list
    (5.10), arm64/vgic_init (7.3).
    """
    tree = trees.worktree(series, len(series.patches) if count is None else count, kernel_tree)
    toolchain.install(arch)
    part_of = "" if tree.count == len(series.patches) else f"-{tree.point}"
    folder = paths.out("selftests", f"{tree.path.parent.name}-{arch}{part_of}")
    texts = [path.read_text(encoding="utf-8") for path in _sources()]
    wanted = {"from": stamp.digest(trees.head(tree.path), toolchain.version(arch), texts)}
    with paths.locked(f"selftests-{folder.name}", say):
        if stamp.current(folder / ".stamp", wanted):
            return folder
        log = paths.out("logs", f"selftests-{folder.name}.log")
        make = ["make", *toolchain.make_arguments(arch)]
        env = toolchain.environment()
        with paths.whole(folder) as part:
            objects, headers = part / "build", part / "headers"
            ours = [*make, "-C", str(paths.TESTS), f"TREE={tree.path}", f"O={part}"]
            proc.run(ours, f"building our tests for {arch}", log=log, env=env)
            # As tree.mk does, whose library is here already.
            own = [f"OUTPUT={objects}", f"abs_objdir={objects}", f"INSTALL_HDR_PATH={headers}"]
            own += [f"KHDR_INCLUDES=-isystem {headers}/include", "KSFT_KHDR_INSTALL_DONE=1"]
            line = [*make, "-C", str(tree.path / SUBDIR), *own, "LDFLAGS=-static -pthread"]
            proc.run(line, f"building the selftests for {arch}", log=log, env=env)
            for name in programs(objects):
                # A test that is in both is made from the same source.
                if not (part / name).exists():
                    (part / name).parent.mkdir(exist_ok=True)
                    (objects / name).replace(part / name)
            paths.remove(objects)
            paths.remove(headers)
            stamp.write(part / ".stamp", wanted)
    return folder


def source(name: str) -> Path:
    """The file of our program `name`, which may not be there: what a benchmark runs beside a test is in guest/, whose id
    its results carry."""
    return paths.TESTS / ("guest" if name in HELPERS else "tests") / f"{name}.c"


def _sources() -> Iterator[Path]:
    """What our programs are built from, in order."""
    yield from (paths.TESTS / "Makefile", paths.TESTS / "tree.mk")
    yield from (source(name) for name in HELPERS)
    for folder in ("lib", "tests"):
        yield from sorted((paths.TESTS / folder).glob("*.[ch]"))


def own() -> tuple[str, ...]:
    """Names of our programs, of which a tree may lack some."""
    return (*HELPERS, *(path.stem for path in sorted((paths.TESTS / "tests").glob("*.c"))))


def programs(folder: str | Path) -> list[str]:
    """Names of the test programs in a directory made by build(), sorted."""
    folder = Path(folder)
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in (".o", ".a", ".d")
        and path.name != ".stamp"
        and os.access(path, os.X_OK)
    )
