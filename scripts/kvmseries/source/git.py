"""git, without what the user's configuration might change about the result."""

from __future__ import annotations

import os
from pathlib import Path

from ..base import proc
from ..base.errors import Fail

_CONFIG = {
    "am.threeWay": "false",
    "commit.gpgSign": "false",
    "core.hooksPath": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "gc.auto": "0",
    "advice.detachedHead": "false",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "diff.algorithm": "myers",
    "diff.renames": "true",
    "diff.orderFile": "/dev/null",
    "format.signOff": "false",
    "safe.directory": "*",
    "init.defaultBranch": "main",
    "core.excludesFile": "/dev/null",
}

# Identity and date of what the tool itself commits, so that trees are the same everywhere.
_OWN = {
    "GIT_AUTHOR_NAME": "scripts/series",
    "GIT_AUTHOR_EMAIL": "series@localhost",
    "GIT_COMMITTER_NAME": "scripts/series",
    "GIT_COMMITTER_EMAIL": "series@localhost",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
}


def forget_environment() -> None:
    """Drop what a git hook sets for the repository it runs in: the trees here are others."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"):
        os.environ.pop(name, None)


def _environment(own: bool, plain: bool, index: Path | None) -> dict[str, str]:
    """Variables for git; see try_git()."""
    # Environment, not -c: it reaches the commands that git starts, and safe.directory needs it.
    # Without optional locks `git status` leaves the index of the user's tree as it is.
    env = {"GIT_CONFIG_COUNT": str(len(_CONFIG)), "GIT_OPTIONAL_LOCKS": "0", **(_OWN if own else {})}
    if plain:
        env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
    if index:
        env["GIT_INDEX_FILE"] = os.fspath(index)
    for number, (key, value) in enumerate(_CONFIG.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def git(
    tree: str | Path,
    *arguments: str,
    own: bool = False,
    plain: bool = False,
    what: str | None = None,
    index: Path | None = None,
) -> str:
    """As try_git(); returns what git printed.  Raises Fail if it fails."""
    line = ["git", "-C", os.fspath(tree), *arguments]
    return proc.run(line, what or f"git {arguments[0]}", env=_environment(own, plain, index))


def try_git(
    tree: str | Path, *arguments: str, own: bool = False, plain: bool = False, index: Path | None = None
) -> tuple[int, str]:
    """Run git in the directory `tree`; returns (status, what it printed).

    own: commit as the tool, at a fixed date.  plain: without the user's configuration at all.  index: a file that is
    the index, instead of the tree's.
    """
    line = ["git", "-C", os.fspath(tree), *arguments]
    return proc.attempt(line, f"git {arguments[0]}", env=_environment(own, plain, index))


def head(tree: str | Path) -> str:
    """The commit that `tree` stands at."""
    return git(tree, "rev-parse", "HEAD").strip()


def changes(tree: str | Path) -> str:
    """Paths of tracked files that differ from HEAD, and of new files, one a line."""
    return git(tree, "status", "--porcelain").strip()


def check_clean(tree: str | Path, name: str, instead: str) -> None:
    """Raise Fail, with what to do `instead`, if `tree`, which it calls `name`, has changes."""
    if dirty := changes(tree):
        raise Fail(f"{name} has uncommitted changes ({dirty.splitlines()[0].strip()}): {instead}")


def has_identity(tree: str | Path) -> bool:
    """Whether git knows who the user is."""
    return all(try_git(tree, "config", key)[0] == 0 for key in ("user.name", "user.email"))
