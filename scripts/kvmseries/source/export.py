"""From a git tree back to patches/: the same bytes for the same commits, whoever exports."""

from __future__ import annotations

import re
from pathlib import Path

from ..base import paths
from ..base.errors import Fail
from ..base.progress import say
from . import catalog, letters, programs, trees
from .catalog import Series
from .git import check_clean, git, try_git

TRAILER = re.compile(r"^(Signed-off-by|Reviewed-by|Tested-by|Acked-by):.*$", re.I | re.M)
# What git writes into a message that is being edited, and leaves there if that is not done in an editor.
TEMPLATE = re.compile(r"^(?:#(?:\s.*)?|Conflicts:|(?:fixup|squash|amend)! .*)$", re.M)
# Patches are not numbered: one that is added changes no other one.
_FORMAT = (
    "--zero-commit --full-index --no-signature --suffix=.patch --no-base --no-thread --no-cover-letter --no-numbered "
    "--stat=72 --no-renames --no-attach"
).split()


def export(series: Series, tree: str | Path | None = None) -> int:
    """Write patches/<series>/0001-*.patch from the commits base..HEAD of `tree`.

    tree: a tree made by the tool; None for out/trees/<base>/series.  Its last commit is amended where that is a test
    program of tools-testing-selftests-kvm/, see programs.py.  The cover letter keeps its text and gets the list of
    patches and the diffstat.  Returns the number of patches.
    """
    tree = Path(tree) if tree else trees.own_series_tree(series)
    if not (tree / ".git").exists():
        raise Fail(f"{tree} is not a git tree")
    if try_git(tree, "rev-parse", "-q", "--verify", "base^{commit}")[0]:
        raise Fail(f"{tree} has no tag 'base': export from a tree made by scripts/series apply")
    if not try_git(tree, "rev-parse", "-q", "--verify", "needed^{commit}")[0]:
        raise Fail(
            f"{tree} was made with --milestone (it has a tag 'needed'), and export writes the whole series: "
            "cherry-pick your changes onto a tree made without it"
        )
    check_clean(tree, str(tree), "commit them")
    programs.update(tree)
    commits = git(tree, "rev-list", "--reverse", "base..HEAD").split()
    if not commits:
        raise Fail(f"{tree} has no commits after its tag 'base': nothing to export")
    for commit in commits:
        message = git(tree, "log", "-1", "--format=%B", commit)
        carried = TRAILER.search(message)
        if carried:
            raise Fail(f"'{message.splitlines()[0]}' carries '{carried[0]}': whoever submits adds it (git am -s)")
        left = TEMPLATE.search(message)
        if left:
            raise Fail(f"'{message.splitlines()[0]}' has git's '{one_line(left[0])}' in its message: take it out")
    before = _milestones(series)
    with paths.locked(f"export-{series.name}"), paths.whole(series.path.parent / ".export") as part:
        write_patches(tree, part)
        # Raises Fail for a milestone whose last patch is gone, before any file is replaced.
        catalog.steps(series.path / "milestones", [catalog.subject(new) for new in sorted(part.glob("*.patch"))])
        letter = cover(series, tree)
        if letter:
            (part / series.cover.name).write_text(letter, encoding="utf-8")
        names = sorted(new.name for new in part.glob("*.patch"))
        for name in names:
            (part / name).replace(series.path / name)
        for old in series.patches:
            if old.name not in names:
                old.unlink()
    paths.remove(series.path.parent / ".export")
    new = catalog.load(series.name)
    trees.forget(new, tree)
    for subject, milestone in _milestones(new).items():
        if before and before.get(subject) != milestone:
            say(f"in {milestone}: {subject}")
    return len(commits)


def _milestones(series: Series) -> dict[str, str]:
    """The subject of each patch to what says which milestone it is in; {} if the file `milestones` is not for these
    patches."""
    try:
        ends = sorted((end, name) for name, end in series.milestones.items())
    except Fail:
        return {}
    return {
        catalog.subject(patch): next((f"milestone {name}" for end, name in ends if number <= end), "no milestone")
        for number, patch in enumerate(series.patches, 1)
    }


def one_line(text: str) -> str:
    """`text` with single blanks."""
    return " ".join(text.split())


def write_patches(tree: Path, folder: Path) -> None:
    """Write the commits base..HEAD of `tree` as patch files into `folder`."""
    git(tree, "format-patch", "-q", "-o", str(folder), *_FORMAT, "base..HEAD", plain=True, what="git format-patch")


def cover(series: Series, tree: Path) -> str | None:
    """The cover letter with its list of patches and diffstat brought up to date; None if the series has none."""
    if not series.cover.exists():
        return None
    text = series.cover.read_text(encoding="utf-8")
    head = letters.without_listing(text)
    listing = git(tree, "-c", "user.name=x", "shortlog", "-w72,2,4", "--no-merges", "base..HEAD", plain=True)
    stat = git(tree, "diff", "--stat=72", "--summary", "--no-renames", "base..HEAD", plain=True)
    return f"{head}{listing.rstrip()}\n\n{stat.rstrip()}\n"
