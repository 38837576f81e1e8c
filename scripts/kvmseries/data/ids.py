"""Ids of what was measured: short hashes of sources that change if and only if what is built changes.

An id of sources is a sum: each file adds a hash of its path and its content (git's blob id).  So it does
not depend on the order of files or patches, and the id of an applied series follows from its patch files
alone: id of the base (`ids` in patches/<series>/base), less what a patch takes away, plus what it puts
there, as its `index` lines say.  No tree is needed to say what today's patches are.

What a tool that runs kernels should keep with its results (bench, soak):

    ids.source(tree.path, what)   of a tree that is at hand: for an arch the kernel's (QEMU's) source, for TESTS the
                                  benchmarks and the library of the selftests, for SUITE all selftests, which soak runs
    ids.programs()                test programs of this repository
    ids.instrument()              all else that measures

and to say what patches/ are today: ids.today("series", series, what), where what is an arch, "tests" or
"suite"; None where it cannot be known.  Left out of a kernel's id is what cannot reach its image:
documentation, tools/ (objtool, too), samples, other architectures, .gitignore.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from vtime import vtime

from ..base import paths
from ..base.errors import Fail
from ..source import catalog
from ..source.git import git

_DIGITS = 16
_MODULUS = 1 << 4 * _DIGITS
TESTS, SUITE = "tests", "suite"
# Folders below arch/ whose files an arch's kernel is built from.
_ARCH = {"arm64": ("arm64",), "x86_64": ("x86",)}
# Programs of bench.yaml; other test programs of the selftests are no part of a benchmark.
BENCHMARKS = ("dirty_log_perf_test", "access_tracking_stress_test", "change_pte_test", "memslot_unmap_perf_test")
_KVM = "tools/testing/selftests/kvm/"
_TESTS_NEED = (
    "tools/testing/selftests/lib.mk",
    "tools/testing/selftests/kselftest",
    "tools/include/",
    "tools/arch/",
    "include/uapi/",
    "arch/arm64/include/uapi/",
    "arch/x86/include/uapi/",
    "scripts/Kbuild.include",
)
# What no kernel and no QEMU is made of, by the beginning of a file's path.
_IDLE = {
    "linux": ("Documentation/", "tools/", "samples/", "LICENSES/", "CREDITS", "MAINTAINERS", "COPYING", "README"),
    "qemu": (
        "docs/",
        "tests/",
        "roms/",
        "po/",
        "contrib/",
        "linux-user/",
        "bsd-user/",
        "MAINTAINERS",
        "COPYING",
        "LICENSE",
        "README",
        "target/",
        ".gitlab-ci",
        ".github",
    ),
}
_QEMU_TARGET = {"arm64": "target/arm/", "x86_64": "target/i386/"}


def wanted(name: str, what: str, project: str = "linux") -> bool:
    """Whether the file `name` (its path in the tree) is part of `what`: an arch, TESTS or SUITE."""
    if name.endswith((".gitignore", ".gitattributes", ".mailmap", ".clang-format")):
        return False
    if what in (TESTS, SUITE):
        if not name.startswith(_KVM):
            return name.startswith(_TESTS_NEED)
        inside = name[len(_KVM) :]
        return (
            what == SUITE or not inside.endswith((".c", ".S")) or inside.startswith("lib/") or inside[:-2] in BENCHMARKS
        )
    if project == "qemu" and name.startswith(("target/meson.build", "target/Kconfig", _QEMU_TARGET[what])):
        return True
    if name.startswith("arch/") and project == "linux":
        top = name.split("/")[1]
        return "/" not in name[len("arch/") :] or top in _ARCH[what]
    return not name.startswith(_IDLE[project])


def _part(name: str, blob: str) -> int:
    """What the file `name` with the content `blob` (40 hex digits) adds to an id."""
    return int(hashlib.sha256(f"{name}\0{blob}".encode()).hexdigest()[:_DIGITS], 16)


def _text(number: int) -> str:
    return f"{number % _MODULUS:0{_DIGITS}x}"


def source(tree: Path, what: str, project: str = "linux") -> str:
    """The id of `what` in the git tree at `tree`, as of HEAD; nothing is built."""
    total = 0
    for line in git(tree, "ls-tree", "-r", "-z", "--full-tree", "HEAD").split("\0"):
        if line:
            head, name = line.split("\t", 1)
            if wanted(name, what, project):
                total += _part(name, head.split()[2])
    return _text(total)


def changes(patch: str) -> list[tuple[str, str | None, str | None]]:
    """[(file, old blob, new blob)] of the text of a patch with full `index` lines; the blob of a file that
    is not there is None.  Raises Fail for an index line that is cut short."""
    found = []
    for part in re.split(r"^(?=diff --git a/)", patch, flags=re.M)[1:]:
        head = part.split("\n@@ ", 1)[0]
        name = re.match(r"diff --git a/(.*) b/\1$", head, re.M)
        index = re.search(r"^index ([0-9a-f]+)\.\.([0-9a-f]+)", head, re.M)
        if not name or (index and len(index[1]) != 40):
            raise Fail(f"'{head.splitlines()[0]}' has no whole index line: export the series")
        if index:  # a change of the mode alone has none
            old, new = (None if set(blob) == {"0"} else blob for blob in index.groups())
            found.append((name[1], old, new))
    return found


def of_patches(base: str, patches: Iterable[str], what: str, project: str = "linux") -> str:
    """The id of `what` after `patches` (texts) on a base whose id is `base`."""
    total = int(base, 16)
    for text in patches:
        for name, old, new in changes(text):
            if wanted(name, what, project):
                total += (_part(name, new) if new else 0) - (_part(name, old) if old else 0)
    return _text(total)


def _applied(series: catalog.Series, count: int, what: str) -> str | None:
    base = series.versions[0].ids.get(what) if series.versions else None
    if not base:
        return None
    texts = tuple(path.read_text(encoding="utf-8") for path in series.patches[:count])
    return _cached(base, texts, what, series.project)


_cached = functools.lru_cache(maxsize=64)(of_patches)


def today(label: str, series: str, what: str) -> str | None:
    """The id of `what` (an arch, TESTS or SUITE) of a kernel's label, "series" or "v7.3:base", as patches/
    are now; None if it cannot be known.  series: the name of the one that the label belongs to."""
    if series not in catalog.names():
        return None
    loaded = catalog.load(series)
    try:
        (point,) = catalog.points(loaded, label)
        return _applied(point.series, point.count, what)
    except Fail:  # a milestone or another series that is no more
        return None


def _digest(*parts: str | bytes) -> str:
    """A hash of texts and bytes."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(f"{len(data)} ".encode() + data)
    return found.hexdigest()[:_DIGITS]


def files(folder: Path, pattern: str = "*") -> str:
    """A hash of the names and contents of the files in `folder` that match."""
    found = [path for path in sorted(Path(folder).glob(pattern)) if path.is_file()]
    return _digest(*(part for path in found for part in (path.name, path.read_bytes())))


def programs() -> str:
    """The id of the test programs that are no part of a series, and of their library."""
    return _digest(*(files(paths.TESTS / name, "*.[chS]") for name in ("tests", "lib")))


def instrument() -> str:
    """The id of what measures: the virtual clock and its model, what runs in the guest beside the tests, the kernels'
    configurations, and the patches that measure in a kernel."""
    folders = [paths.TESTS / "guest", paths.TESTS / "configs", *sorted((paths.PATCHES / "instruments").glob("*/"))]
    return _digest(files(vtime.SOURCE, "*.[ch]"), files(vtime.SOURCE, "model.yaml"), *map(files, folders))
