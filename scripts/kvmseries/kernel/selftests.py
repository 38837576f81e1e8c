"""Building the KVM selftests, statically, from the tree that has the whole series.

Base and series run the same binaries: what differs in a comparison is the kernel.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from ..base import paths, proc
from ..base.progress import say
from ..source import catalog, trees
from . import toolchain

SUBDIR = "tools/testing/selftests/kvm"
# Programs of ours beside the tests: lockphase counts locks phase by phase, spread has the scheduler
# spread a benchmark's threads.
HELPERS = ("lockphase", "spread")
# And those that are tests of KVM and take its selftests' library, by series and architecture: invlpg_test has a
# guest execute INVLPG while the host takes its pages away; dirty_harvest_test looks for writes after a
# harvest of the dirty log that are not in the next one; dirty_hold_test measures how long mmu_lock is held by one; the VM of
# gigantic_page_test dies with a block of 1 GiB; dirty_block_test counts the faults on a block that the log splits; vm_killed_test
# kills VMs while they are aged; nested_destroy_test measures how long a VM with many shadow page tables takes to go;
# tlb_refill_test goes over hot code and data after each fault of the dirty log.
TESTS = {
    ("v5.10", "arm64"): ("vm_killed_test",),
    ("v5.10", "x86_64"): ("invlpg_test",),
    ("v7.3", "arm64"): (
        "dirty_hold_test",
        "dirty_harvest_test",
        "gigantic_page_test",
        "dirty_block_test",
        "vm_killed_test",
        "nested_destroy_test",
        "stage2_race_test",
        "tlb_refill_test",
    ),
    ("v7.3", "x86_64"): ("dirty_harvest_test",),
}
GUEST = paths.TESTS / "guest"
PROGRAMS = paths.TESTS / "programs"


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
    wanted = hashlib.sha256(
        json.dumps(
            [
                trees.head(tree.path),
                toolchain.version(arch),
                *(source(name, series).read_text(encoding="utf-8") for name in own(series, arch)),
            ]
        ).encode()
    ).hexdigest()
    with paths.locked(f"selftests-{folder.name}", say):
        if _stamp(folder) == wanted:
            return folder
        toolchain.check_static(arch)
        log = paths.out("logs", f"selftests-{folder.name}.log")
        headers = paths.out("selftests", f"{folder.name}-headers")
        make = ["make", *toolchain.make_arguments(arch)]
        env = toolchain.environment()
        with paths.whole(headers) as part:
            proc.run(
                [*make, "-C", str(tree.path), f"O={part}/obj", f"INSTALL_HDR_PATH={part}", "headers_install"],
                "make headers_install",
                log=log,
                env=env,
            )
            paths.remove(part / "obj")
        with paths.whole(folder) as part:
            # The Makefile makes directories in the source otherwise; 7.3's also headers of system
            # registers, unless it has abs_objdir, where it wants a directory for them.
            (part / "tools").mkdir()
            proc.run(
                [
                    *make,
                    "-C",
                    str(tree.path / SUBDIR),
                    f"OUTPUT={part}",
                    f"abs_objdir={part}",
                    f"INSTALL_HDR_PATH={headers}",
                    "KSFT_KHDR_INSTALL_DONE=1",
                    f"KHDR_INCLUDES=-isystem {headers}/include",
                    "LDFLAGS=-static -pthread",
                ],
                f"building the selftests for {arch}",
                log=log,
                env=env,
            )
            _helpers(series, arch, part)
            _tests(series, arch, part, tree, headers)
            (part / ".stamp").write_text(wanted, encoding="utf-8")
    return folder


def source(name: str, series: catalog.Series) -> Path:
    """The file of our program `name`, for the selftests' library of `series` if it has one for that: what a benchmark
    runs is in guest/, whose id its results carry."""
    found = [path for path in (PROGRAMS / series.name / f"{name}.c", PROGRAMS / f"{name}.c") if path.exists()]
    return found[0] if found else GUEST / f"{name}.c"


def _helpers(series: catalog.Series, arch: str, folder: Path) -> None:
    for name in HELPERS:
        proc.run(
            [
                f"{toolchain.prefix(arch)}gcc",
                "-O2",
                "-static",
                "-Wall",
                "-Wextra",
                "-o",
                str(folder / name),
                str(source(name, series)),
            ],
            f"building {name}",
        )


def own(series: catalog.Series, arch: str) -> tuple[str, ...]:
    """Names of our programs that build() makes for `series` and `arch`."""
    return (*HELPERS, *TESTS.get((series.name, arch), ()))


def lacks(program: Path, include: Iterable[Path]) -> list[str]:
    """Headers that `program` includes by "NAME" and that no directory of `include` has."""
    names = re.findall(r'^#include "(.+)"$', program.read_text(encoding="utf-8"), re.MULTILINE)
    folders = (program.parent, *include)
    return [name for name in names if not any((folder / name).is_file() for folder in folders)]


def _tests(series: catalog.Series, arch: str, folder: Path, point: trees.Tree, headers: Path) -> None:
    """Compile TESTS, as the Makefile of the tree does its own; of a part of the series those alone for which it has the
    library."""
    short = arch.removesuffix("_64")
    tree = point.path
    # x86_64 and aarch64 in 5.10, x86 and arm64 in 7.3; the last of them is made by the Makefile of 7.3.
    include = [
        tree / "tools/include",
        tree / "tools/arch" / short / "include",
        headers / "include",
        tree / SUBDIR / "include",
        *(tree / SUBDIR / "include" / name for name in (arch, short, toolchain.machine(arch))),
        tree / "tools/testing/selftests",
        folder / "tools/arch" / short / "include/generated",
    ]
    library = sorted(folder.glob("libkvm.a")) or sorted((folder / "lib").rglob("*.o"))
    for name in TESTS.get((series.name, arch), ()):
        program = source(name, series)
        if point.count < len(series.patches) and lacks(program, include):
            continue
        proc.run(
            [
                f"{toolchain.prefix(arch)}gcc",
                "-D_GNU_SOURCE",
                "-DCONFIG_64BIT",
                "-O2",
                "-std=gnu99",
                "-static",
                "-pthread",
                "-Wall",
                "-fno-strict-aliasing",
                "-fno-stack-protector",
                "-fno-PIE",
                "-no-pie",
                *(f"-I{path}" for path in include),
                "-o",
                str(folder / name),
                str(program),
                *map(str, library),
            ],
            f"building {name}",
        )


def _stamp(folder: Path) -> str | None:
    try:
        return (folder / ".stamp").read_text(encoding="utf-8")
    except OSError:
        return None


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
