"""A tree as a b4 prep branch: b4 itself makes it, its own commit with the letter below the patches."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..base import proc
from ..base.errors import Fail
from .git import environment, git


def program() -> str:
    """Path of b4: that of the tool's own Python, or else the user's.  Raises Fail if there is none."""
    found = shutil.which("b4", path=str(Path(sys.executable).parent)) or shutil.which("b4")
    if not found:
        raise Fail("--b4 needs b4, which is not there: `pipx install b4` (it needs Python 3.11 or newer)")
    return found


def prepare(tree: Path, letter: str) -> None:
    """Have b4 track the commits needed..HEAD of `tree`, with the text `letter`.  What its tags say is needed below
    them becomes the branch's prerequisites, so that the letter names the commit `base`."""
    _b4(tree, "--enroll", "needed")
    with _editor(letter) as editor:
        _b4(tree, "--edit-cover", editor=editor)
    below = patch_ids(tree, "base", "needed")
    if below:
        base = git(tree, "rev-parse", "base^{commit}").strip()
        with _editor(
            "".join(f"{line}\n" for line in (f"base-commit: {base}", *(f"patch-id: {one}" for one in below)))
        ) as editor:
            _b4(tree, "--edit-deps", editor=editor)


def patch_ids(tree: Path, since: str, until: str) -> list[str]:
    """Stable patch-ids of the commits since..until, in order."""
    commits = git(tree, "rev-list", "--reverse", f"{since}..{until}").split()
    shown = (git(tree, "diff-tree", "-p", commit, plain=True) for commit in commits)
    return [git(tree, "patch-id", "--stable", stdin=text, plain=True).split()[0] for text in shown]


@contextlib.contextmanager
def _editor(text: str) -> Iterator[str]:
    """The command of an editor that makes `text` of whatever it edits."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="series-letter-") as file:
        file.write(text)
        file.flush()
        yield f"cp {shlex.quote(file.name)}"


def _b4(tree: Path, *words: str, editor: str = "false") -> None:
    """b4 prep in `tree`, which keeps the letter in a commit whatever the user's configuration says."""
    env = {**environment(more={"b4.prep-cover-strategy": "commit"}), "GIT_EDITOR": editor}
    proc.run([program(), "--no-interactive", "prep", *words], f"b4 prep {words[0]}", cwd=tree, env=env)
