"""What the checks ask of a series, and the tool does not."""

import re
from pathlib import Path

from kvmseries.base import paths
from kvmseries.source import trees
from kvmseries.source.git import git
from kvmseries.verify import mutants
from migrate import build as qemu_build, functional


def own_base(series):
    """The user's tree, if it is one that `series` is for: in `make test TREE=/path` that is v5.10.  None: the
    base that is pinned."""
    return paths.own_tree() if series.name == "v5.10" else None


def apply_on_top(series, kernel=None):
    """Mutants that are booted, and instruments, apply on top of `series`, or of the milestone NAME if the text says "for
    milestone NAME", each with those that its text says it is on top of.  Returns their names."""
    tree = trees.worktree(series, len(series.patches), kernel)
    found = []
    for patch in mutants.patches(series.name):
        text = re.split(r"^(?:diff --git|--- a/)", patch.read_text(encoding="utf-8"), maxsplit=1, flags=re.M)[0]
        text = " ".join(text.split())
        below = re.findall(r"(?:[Oo]n top of|and of) ([\w-]+)\.patch", text)
        milestone = re.search(r"[Ff]or milestone ([\w-]+)", text)
        # In one file: of several ones git does not look at one on top of the other.
        together, index = paths.out("debug-check.patch"), paths.out("debug-check.index")
        texts = (trees.on_top(series, name).read_text(encoding="utf-8") for name in (*below, patch.stem))
        together.write_text("\n".join(texts), encoding="utf-8")
        count = series.upto(milestone[1]) if milestone else len(series.patches)
        git(tree.path, "read-tree", trees.commits(tree.path)[count], index=index)
        git(tree.path, "apply", "--check", "--cached", str(together), what=f"git apply {patch.name}", index=index)
        paths.remove(together)
        paths.remove(index)
        found.append(patch.name)
    return found


def own_units(series, kernel=None):
    """Build and run the unit tests that the series itself adds, and no more; returns {"unit/NAME": result}."""
    tree = trees.worktree(series, len(series.patches), kernel)
    added = git(tree.path, "diff", "--diff-filter=A", "--name-only", "base..HEAD", "--", "tests/unit").split()
    names = tuple(name[: -len(".c")] for name in added if re.fullmatch(r"tests/unit/test-[\w-]+\.c", name))
    if not names:
        return {}
    kind = qemu_build.Kind("units", functional.host_arch(), ("arm64",), kvm=False, only=names)
    folder = qemu_build.compiled(tree, kind)
    found = functional.unit(folder, qemu_build.environment(tree.path), names=[Path(name).name for name in names])
    return {f"unit/{Path(name).name}": found.get(f"unit/{Path(name).name}", "skip") for name in names}
