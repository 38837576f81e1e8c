"""Test programs of tools-testing-selftests-kvm/ that a series carries as patches, made from that one source.

A tree's files are lib/ and tests/ with what lib/compat.h maps resolved for it: unifdef, with what tree.mk finds in its
headers.  What has nothing left to map is not there.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..base import paths, proc
from ..base.errors import Fail
from .git import git

SUBJECT = "KVM: selftests: Add access_tracking_stress_test"
KVM = "tools/testing/selftests/kvm"
# Of the patch; the rest of it, such as the list in the Makefile, is as its commit has it.
_FILES = (
    "tests/access_tracking_stress_test.c",
    *("lib/compat.c", "lib/compat.h", "lib/host_file.c", "lib/host_file.h", "lib/host_mm.c", "lib/host_mm.h"),
    *("lib/stress_util.c", "lib/stress_util.h", "lib/test_result.h"),
)
# Of earlier patches, which only have to be the same.
_SHARED = ("lib/latency_hist.c", "lib/latency_hist.h", "lib/metric.h")
# A file with nothing but includes, guards and comments.
_EMPTY = re.compile(r"(?:\s|/\*.*?\*/|//[^\n]*|#(?:include|ifndef|define \w+$|endif)[^\n]*)*", re.S | re.M)


def update(tree: Path) -> None:
    """Have the commit SUBJECT of `tree`, if there is one, carry what the source is now.  It must be the last one."""
    position = _position(tree)
    if position is None:
        return
    if position:
        raise Fail(f"'{SUBJECT}' is made from tools-testing-selftests-kvm/: it must be the last commit of {tree}")
    for name, text in _made(tree).items():
        if text is None:
            git(tree, "rm", "-q", "-f", "--ignore-unmatch", "--", name)
            continue
        (tree / name).write_text(text, encoding="utf-8")
        # The tree's .gitignore may have all that Debian's packaging does not know.
        git(tree, "add", "-f", "--", name)
    if git(tree, "diff", "--cached", "--name-only"):
        git(tree, "commit", "-q", "--amend", "--no-edit", own=True)


def check(tree: Path) -> None:
    """Raise Fail if a file of `tree` is not what its source in tools-testing-selftests-kvm/ makes of it."""
    made = {} if _position(tree) is None else _made(tree)
    shared = {_place(name): (paths.TESTS / name).read_text(encoding="utf-8") for name in _SHARED}
    for name, text in {**made, **{name: text for name, text in shared.items() if (tree / name).exists()}}.items():
        path = tree / name
        if (path.read_text(encoding="utf-8") if path.exists() else None) != text:
            raise Fail(f"{path} is not what tools-testing-selftests-kvm/ has: export the series")


def _position(tree: Path) -> int | None:
    """How many commits are above the one with SUBJECT; None if there is none."""
    subjects = git(tree, "log", "--format=%s", "base..HEAD").splitlines()
    return subjects.index(SUBJECT) if SUBJECT in subjects else None


def _place(name: str) -> str:
    """Where a file of tools-testing-selftests-kvm/ is in a tree."""
    folder = "" if name.startswith("tests/") else "include/" if name.endswith(".h") else "lib/"
    return f"{KVM}/{folder}{Path(name).name}"


def _made(tree: Path) -> dict[str, str | None]:
    """{path in the tree: its text, or None where the tree needs no such file} of the patch."""
    with tempfile.TemporaryDirectory() as folder:
        unifdef = Path(folder, "unifdef")
        proc.run(["gcc", "-O", "-w", "-o", str(unifdef), str(tree / "scripts/unifdef.c")], "building unifdef")
        flags = _flags(tree, Path(folder))
        texts = {name: _resolved(unifdef, flags, paths.TESTS / name) for name in _FILES}
    compat = _EMPTY.fullmatch(texts["lib/compat.c"]) and _EMPTY.fullmatch(texts["lib/compat.h"])
    if compat:
        includes = "\n".join(re.findall(r'^#include ".*"$', texts["lib/compat.h"], re.M))
        texts = {
            name: text.replace('#include "compat.h"', includes)
            for name, text in texts.items()
            if not name.startswith("lib/compat.")
        }
    return {_place(name): texts.get(name) for name in _FILES}


def _flags(tree: Path, folder: Path) -> list[str]:
    """unifdef's -D and -U for what the tree's library has."""
    printed = proc.run(
        ["make", "-s", "-C", str(tree / KVM), "-f", str(paths.TESTS / "tree.mk"), "ARCH=arm64", "OUTPUT=" + str(folder)]
        + [f"OURS={paths.TESTS}", f"INSTALL_HDR_PATH={folder}", "KSFT_KHDR_INSTALL_DONE=1", "our-features"],
        "make our-features",
    )
    has = set(re.findall(r"-D(\w+)", printed))
    known = set()
    for name in _FILES:
        known |= set(re.findall(r"\b(HAVE_\w+)", (paths.TESTS / name).read_text(encoding="utf-8")))
    return [f"-{'D' if name in has else 'U'}{name}" for name in sorted(known | has)]


def _resolved(unifdef: Path, flags: Sequence[str], source: Path) -> str:
    # unifdef's status says whether it has changed anything.
    status, text = proc.attempt([str(unifdef), "-B", *flags, str(source)], "unifdef")
    if status > 1:
        raise Fail(f"unifdef {source}: {proc.reason(text)}")
    return text
