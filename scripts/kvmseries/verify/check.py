"""What must hold of a series without booting it: it applies to every version it names, its patches
are clean and carry no sign-off, exporting it gives back its files, and every step of it builds.

A series may have no patches yet: then there is its base alone, and no cover letter."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from ..base import debian, paths, proc, progress
from ..base.errors import Fail
from ..base.progress import Note, say
from ..kernel import build
from ..source import catalog, export as exporting, letters, programs, trees
from ..source.git import git
from . import port

# FILE_PATH_CHANGES asks for MAINTAINERS, where directories are listed as a whole.
# UNKNOWN_COMMIT_ID looks for commits of mainline, which messages name, in a tree without history; without them
# checkpatch does not look at how they are named, which clean() does.
_CHECKPATCH = (
    "--strict --no-signoff --no-summary --terse --show-types --ignore FILE_PATH_CHANGES,UNKNOWN_COMMIT_ID".split()
)
# A commit that is not named as commit 0123456789ab ("subject"), and a Fixes: that is not.
_COMMIT = re.compile(
    r"""\bcommits?\s+[0-9a-f]{7,40}\b(?!\s+\(")|\bcommits?\s+(?![0-9a-f]{12}\b)[0-9a-f]{7,40}\b"""
    r"""|^Fixes:(?! [0-9a-f]{12} \(".+"\)$).*""",
    re.M,
)


# How many lines the text of a message has at most, if patches/<series>/long-messages does not have its patch.
LINES = 25
_TRAILER = re.compile(r"^[A-Z][\w-]+: \S.*$")
_NO_TAG = re.compile(r"\b[Nn]o\s+Fixes:\s+tag,\s+because\s+\w")


class Project(Protocol):
    """What a series' project has to say of it: this module for linux, qemu.check for QEMU."""

    def checkpatch(self, series: catalog.Series, kernel: str | None = None) -> None: ...

    def builds(self, series: catalog.Series, arch: str, note: Note, kernel: str | None = None) -> object: ...


def every(
    series: catalog.Series,
    arches: Iterable[str],
    own: Project,
    key: str,
    seconds: Sequence[float],
    build: bool = True,
    kernel: str | None = None,
) -> None:
    """What every series is checked for, and what its project checks itself.

    own: the module with checkpatch() and builds() for the project.  key: what its steps' names begin with.
    seconds: estimates for applying, for what takes no build, and for the builds of an arch.  build: whether
    every patch is built for each of `arches`.
    """
    arches = arches if build else ()
    steps = progress.Steps(
        [
            (f"{key}-applies", "applies to all versions of its base", seconds[0]),
            (f"{key}-patches", "checkpatch, sign-offs, letters, fixes and milestones alone, export", seconds[1]),
            *((f"{key}-builds-{arch}", f"every patch builds for {arch}", seconds[2]) for arch in arches),
        ]
    )
    # It takes no time, and finds most of what is wrong.
    clean(series)
    with steps.step(f"{key}-applies") as note:
        applies(series, note, kernel)
    with steps.step(f"{key}-patches"):
        own.checkpatch(series, kernel)
        alone(series, kernel)
        if not kernel:
            round_trip(series)
    for arch in arches:
        with steps.step(f"{key}-builds-{arch}") as note:
            own.builds(series, arch, note, kernel)
    say(f"{series.name}: {len(series.patches)} patches are fine")


def applies(series: catalog.Series, note: Note = lambda text: None, kernel: str | None = None) -> None:
    """Apply all patches to every version in patches/<series>/base, or to the user's tree."""
    if kernel:
        trees.worktree(series, len(series.patches), kernel)
        return
    for version in series.versions:
        note(f"applying to {version.kernel}")
        trees.worktree(series, len(series.patches), version=version)


def checkpatch(series: catalog.Series, kernel: str | None = None) -> None:
    """Run checkpatch.pl --strict of the base's own tree over every patch."""
    debian.install("check")
    tree = trees.base(series, kernel)
    # spdxcheck.py, which checkpatch calls, imports packages of the tool's own Python.
    env = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    for patch in series.patches:
        status, text = proc.attempt(
            [str(tree.path / "scripts/checkpatch.pl"), *_CHECKPATCH, str(patch)], "checkpatch", cwd=tree.path, env=env
        )
        if status or text.strip():
            raise Fail(f"checkpatch: {patch.name}: {proc.reason(text)}")


def clean(series: catalog.Series) -> None:
    """What checkpatch does not look at: trailers that are the submitter's, what git leaves in messages, how commits
    are named, what fixes fix, how long messages are, milestones, the cover letter's count."""
    for patch in series.patches:
        text = patch.read_text(encoding="utf-8")
        trailer = exporting.TRAILER.search(text)
        if trailer:
            raise Fail(f"{patch.name} carries '{trailer[0]}': whoever submits adds it (git am -s)")
        message = _head(text)
        left = exporting.TEMPLATE.search(message) or exporting.TEMPLATE.search(catalog.subject(patch))
        if left:
            raise Fail(f"{patch.name} has git's '{exporting.one_line(left[0])}' in its message: take it out")
        commit = _COMMIT.search(message)
        if commit:
            raise Fail(f"{patch.name}: '{exporting.one_line(commit[0])}': name a commit by 12 digits and (\"subject\")")
        if not catalog.subject(patch):
            raise Fail(f"{patch.name} has no subject")
    _tags(series)
    _lengths(series)
    letters.check(series)
    port.check(series)
    if not series.patches and series.cover.exists():
        raise Fail(f"{series.cover.name} is for no patches: {series.name} has none")
    if not series.patches:
        return
    if not series.cover.exists():
        raise Fail(f"{series.name} has no cover letter: {series.cover.name}")
    letter = series.cover.read_text(encoding="utf-8")
    listed = sum(map(int, re.findall(r"^\S[^\n]* \((\d+)\):$", letter, re.M)))
    if listed != len(series.patches):
        raise Fail(
            f"{series.cover.name} is not for {len(series.patches)} patches: run `scripts/series export {series.name}`"
        )


def _head(text: str) -> str:
    """Mail head and message of the text of a patch: what is before git's "---"."""
    return text.split("\n---\n")[0]


def _tags(series: catalog.Series) -> None:
    """Raise Fail for a patch of the milestone `fixes` of linux that does not say which commit brought the bug, and why
    not.  Patches of tests, below tools/, need not."""
    for number in series.fixes if series.project == "linux" else ():
        patch = series.patches[number - 1]
        text = patch.read_text(encoding="utf-8")
        if all(name.startswith("tools/") for name in re.findall(r"^diff --git a/(\S+) ", text, re.M)):
            continue
        message = _head(text)
        if not re.search(r"^Fixes: ", message, re.M) and not _NO_TAG.search(message):
            raise Fail(
                f"{patch.name} is a fix without Fixes: name the commit that brought the bug, or say 'No Fixes: tag, "
                "because ...'"
            )


def _lengths(series: catalog.Series) -> None:
    """Raise Fail for a message of more than LINES lines, trailers not counted, that patches/<series>/long-messages does
    not have, and for one there that is not so long.  Without that file messages may be of any length."""
    path = series.path / "long-messages"
    if not path.exists():
        return
    allowed = catalog.mapping(path)
    for subject, reason in allowed.items():
        if not isinstance(reason, str) or not reason:
            raise Fail(f"{path}: '{subject}': a line is the subject of a patch, and why its message is long")
    counts = {catalog.subject(patch): _length(patch) for patch in series.patches}
    for subject, count in counts.items():
        if count > LINES and subject not in allowed:
            raise Fail(
                f"the message of '{subject}' has {count} lines: at most {LINES} are to be there, or {path} says why not"
            )
    for subject in allowed:
        if counts.get(subject, 0) <= LINES:
            short = f"has {counts[subject]} lines" if subject in counts else "is of no patch"
            raise Fail(f"{path}: the message of '{subject}' {short}: take the line out")


def _length(patch: Path) -> int:
    """The number of lines of a patch's message, without head, trailers and empty lines at the end."""
    lines = _head(patch.read_text(encoding="utf-8")).partition("\n\n")[2].splitlines()
    while lines and (not lines[-1].strip() or _TRAILER.match(lines[-1])):
        lines.pop()
    return len(lines)


def alone(series: catalog.Series, kernel: str | None = None) -> int:
    """Each patch of the milestone `fixes` applies alone to the base, and each milestone that is not on the one before
    it applies to what patches/<series>/milestones says that it is on.  Returns how many were tried."""
    for number in series.fixes:
        trees.alone(series, number, kernel)
    for name, others in series.on.items():
        part = series.milestone(name)
        trees.on_base(series, (*part.needed, *part.patches), f"with the milestone {name} on {' '.join(others)}", kernel)
    return len(series.fixes) + len(series.on)


def builds_alone(series: catalog.Series, arch: str, note: Note, kernel: str | None = None) -> list[int]:
    """Build the kernel with each patch of the milestone `fixes` alone, of those that change what `arch` compiles;
    returns their numbers.  Raises Fail that names the patch."""
    numbers = [
        number for number in that_change(series, trees.base(series, kernel), _others(arch)) if number in series.fixes
    ]
    build.each_patch(series, arch, numbers, note, kernel, singly=True)
    return numbers


def round_trip(series: catalog.Series) -> None:
    """Exporting the applied series must give the files that are there, byte for byte.

    On the base that is pinned: patches name the contents that they change by hash.
    """
    if not series.patches:
        return
    tree = trees.worktree(series, len(series.patches))
    programs.check(tree.path)
    with paths.whole(paths.out("export-check")) as part:
        exporting.write_patches(tree.path, part)
        for patch in series.patches:
            new = part / patch.name
            if not new.exists() or new.read_bytes() != patch.read_bytes():
                raise Fail(
                    f"{patch.name} is not what `scripts/series export {series.name}` writes: "
                    "export it instead of editing it"
                )
        if series.cover.read_text(encoding="utf-8") != exporting.cover(series, tree.path):
            raise Fail(
                f"{series.cover.name}: list of patches or diffstat is out of date: run "
                f"`scripts/series export {series.name}`"
            )
    paths.remove(paths.out("export-check"))


def builds(series: catalog.Series, arch: str, note: Note, kernel: str | None = None, steps: bool = False) -> list[int]:
    """Build the kernel after each patch, in one tree, so that only what changes is compiled, and with each fix alone;
    with `steps` after each step of the series (patches/<series>/milestones) alone.

    Patches that touch nothing but tools/, Documentation/ and other architectures change no kernel of
    `arch`; the selftests are built from the whole series.
    """
    tree = trees.base(series, kernel)
    counts = that_change(series, tree, _others(arch))
    if steps:
        # A step whose patches change no kernel of `arch` is the one before it.
        counts = sorted(
            {max((count for count in counts if count <= last), default=0) for last in series.milestones.values()} - {0}
        )
    build.each_patch(series, arch, counts if steps else [0, *counts], note, kernel)
    if not steps:
        builds_alone(series, arch, note, kernel)
    return counts


def _others(arch: str) -> tuple[str, ...]:
    """How the names of files begin that a kernel of `arch` is not made of."""
    return ("tools/", "Documentation/", *(folder for name, folder in build.FOLDERS.items() if name != arch))


def new_warnings(series: catalog.Series, arch: str, kernel: str | None = None) -> list[str]:
    """What gcc with W=1 and sparse say of the files that the series changes, and do not say of base: lines."""
    base = trees.base(series, kernel)
    names = {name for patch in series.patches for name in files(base.path, patch)}
    found = [
        build.examine(build.kernel(series, count, arch, kernel_tree=kernel), names)
        for count in (0, len(series.patches))
    ]
    return sorted((found[1] - found[0]).elements())


def that_change(series: catalog.Series, tree: trees.Tree, others: tuple[str, ...]) -> list[int]:
    """Numbers of the patches that change a file whose name begins with none of `others`."""
    return [
        number
        for number, patch in enumerate(series.patches, 1)
        if any(not name.startswith(others) for name in files(tree.path, patch))
    ]


def files(tree: Path, patch: Path) -> list[str]:
    """Names of the files that a patch changes."""
    text = git(tree, "apply", "--numstat", str(patch))
    return [line.split("\t")[2] for line in text.splitlines()]
