"""git am, and what to say when a patch does not apply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import Fail
from .git import git, has_identity, head, try_git


def apply(
    tree: Path,
    patches: Sequence[Path],
    own: bool = False,
    signoff: bool = False,
    where: str = "the tree",
    differ: str = "",
) -> None:
    """Apply `patches` (paths) to the git tree at `tree`, one commit each, or none of them.

    own: commit as the tool.  where: what the tree is, for the Fail that names patch and hunk; differ: the end of that,
    how the tree is another than the series is made for.
    """
    if not patches:
        return
    options = ["--quiet", "--committer-date-is-author-date"]
    if signoff:
        options.append("--signoff")
    status, text = try_git(tree, "am", *options, *map(str, patches), plain=own, own=own or not has_identity(tree))
    if status == 0:
        return
    number = _failed_number(tree)
    # As the tool: git does not even abort without knowing who does.
    try_git(tree, "am", "--abort", own=True)
    if not number:
        raise Fail(f"git am failed on {where}: {text.strip().splitlines()[-1]}")
    # The patches before it are gone again with --abort: put them back to ask about this one.
    raise Fail(_explain(tree, patches, number, where) + differ)


def _failed_number(tree: Path) -> int | None:
    path = git(tree, "rev-parse", "--git-path", "rebase-apply/next").strip()
    try:
        with open(path if path.startswith("/") else tree / path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _explain(tree: Path, patches: Sequence[Path], number: int, where: str) -> str:
    patch = patches[number - 1]
    # The last first: a patch can be taken back only while none after it changes the same lines.
    for there in reversed(patches[number - 1 :]):
        if try_git(tree, "apply", "--check", "--reverse", str(there))[0] == 0:
            return f"{there.name} is already there in {where}: use a tree without it, or git am the others"
    before = head(tree)
    if number > 1:
        try_git(tree, "am", "--quiet", *map(str, patches[: number - 1]), own=True)
    _, text = try_git(tree, "apply", "--check", "--verbose", str(patch))
    git(tree, "reset", "-q", "--hard", before)
    hunks = [_hunk(patch, *found) for found in re.findall(r"^error: patch failed: (.+):(\d+)$", text, re.M)]
    for name, why in re.findall(r"^error: (.+): (No such file|already exists)\b", text, re.M):
        hunks.append(f"{name} {'is not there' if why == 'No such file' else 'exists'}")
    why = "; ".join(hunks) or text.strip().splitlines()[-1]
    return f"patch {int(patch.name.split('-')[0])} does not apply to {where}: {patch.name}: {why}"


def _hunk(patch: Path, name: str, line: str) -> str:
    """Name the hunk of `patch` that changes file `name` at old line `line`."""
    current = None
    for text in patch.read_text(encoding="utf-8", errors="replace").splitlines():
        if text.startswith("--- a/"):
            current = text[len("--- a/") :]
        match = re.match(r"@@ -(\d+)(,\d+)? \+\d+(,\d+)? @@ ?(.*)", text)
        if match and current == name and match[1] == line:
            where = f" ({match[4]})" if match[4] else ""
            return f"hunk {text.split(' @@')[0]} @@ of {name}{where}"
    return f"{name}:{line}"
