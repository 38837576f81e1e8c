"""Git trees: the base of a series, and worktrees of it that have some of the patches.

out/trees/<key>/base is a git repository: one commit, tag `base`.  Beside it, as worktrees of the
same repository, `series` (all patches) and `upto-N`.  <key> names the base: the series and the
package's version, or a hash of the user's own tree.
"""

from __future__ import annotations

import re
import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base import debian, paths, proc, stamp
from ..base.errors import Fail
from ..base.progress import say, single
from . import am
from .catalog import Part, Series, Version
from .git import check_clean, git, has_identity, head, try_git
from .projects import PROJECTS

# What the tool makes in its trees, for git to leave alone: builds, and the blobs of QEMU that Debian's tarball
# lacks (qemu/build.py makes empty ones).
_OWN_FILES = ("/build-*/", "/pc-bios/edk2-*.bz2")


@dataclass(frozen=True)
class Tree:
    """A tree that the tool made."""

    path: Path
    point: str  # "base", "series" or "upto-N"
    count: int  # number of patches applied
    version: str  # version of the base, from its Makefile or VERSION


def _version_of(tree: str | Path, what: str, series: Series) -> str:
    """The version of the sources in `tree`; Fail, which calls them `what`, if they are not what the
    series is for."""
    project = PROJECTS[series.project]
    version = project.version(tree)
    if not version:
        raise Fail(f"{what} is not {project.wanted}")
    return version


def check(series: Series, tree: str | Path, option: str = "--tree") -> None:
    """Raise Fail if the user's `tree`, which `option` names, is not there, or is a directory of sources that the series
    cannot be for: of another project, or of another version than its base but for the last number.  Reads one file."""
    if not Path(tree).exists():
        raise Fail(f"{option} {tree}: no such tree or tarball")
    if Path(tree).is_dir():
        _same_version(_version_of(tree, f"{option} {tree}", series), f"{option} {tree}", series)


def _same_version(version: str, what: str, series: Series) -> None:
    """Raise Fail unless `version` is the base's of `series` but for the last number."""
    if version.split(".")[:2] != series.kernel.split(".")[:2]:
        title = PROJECTS[series.project].title
        raise Fail(f"{what} is {title} {version}, and {series.name} is for {title} {series.kernel}")


def base(series: Series, kernel: str | Path | None = None, version: Version | None = None) -> Tree:
    """The base of `series` as a Tree, made if it is not there.

    kernel: the user's own git tree or tarball instead of Debian's source.  version: one of series.versions instead of
    the first.
    """
    name, kept = key(series, kernel) or "", None
    if kernel:
        kernel = Path(kernel).absolute()
        what = str(kernel)
        fill = functools.partial(_unpack_own if kernel.is_file() else _copy_own, series, kernel)
    else:
        if not series.versions:
            own = "give your own kernel tree with --tree (or TREE=/path)"
            raise Fail(f"patches/{series.name}/base names no package of the base: {own}")
        package = version or series.versions[0]
        name, what = f"{series.name}-{package.key}", f"{PROJECTS[series.project].title} {package.kernel}"
        fill = functools.partial(_unpack_package, package)
        kept = paths.cache("git", f"{package.sha256[:16]}.git")
    # whole() makes what is above it, and removes that if it fails.
    path = paths.out("trees") / name / "base"
    with paths.locked(f"tree-{name}", say):
        if not (path / ".git").exists():
            debian.install("fetch")
            with single("fetch", f"fetch {what}", 45), paths.whole(path) as part:
                if not kept or not _from_kept(kept, part):
                    fill(part)
                    found = _version_of(part, what, series)
                    if kernel:
                        _same_version(found, f"--tree {kernel}", series)
                _commit_base(part, what)
                if kept:
                    _keep(part, kept)
    return Tree(path, "base", 0, _version_of(path, what, series))


def key(series: Series, kernel: str | Path | None) -> str | None:
    """What names the user's tree or tarball `kernel` as it is now; None for none.  Raises Fail if it cannot be used."""
    if not kernel:
        return None
    kernel = Path(kernel).absolute()
    check(series, kernel)
    if kernel.is_file():
        stat = kernel.stat()
        state = f"{stat.st_size} {stat.st_mtime_ns}"
    elif not (kernel / ".git").exists():
        raise Fail(
            f"--tree {kernel} is not a git tree: give the tarball that it came from, "
            "or commit it (git init; git add -f -A; git commit)"
        )
    else:
        check_clean(kernel, f"--tree {kernel}", "commit or stash them")
        state = head(kernel)
    return f"{series.name}-user-{hashlib.sha256(f'{kernel} {state}'.encode()).hexdigest()[:12]}"


def _unpack_own(series: Series, tarball: Path, folder: Path) -> None:
    """Unpack the user's `tarball` into `folder`."""
    take = ["tar", "-xf", str(tarball), "-C", str(folder), "--strip-components=1"]
    project = PROJECTS[series.project]
    # The file of the version alone, at the archive's top: the rest takes minutes.
    first = ["--occurrence=1", "--wildcards", "--no-wildcards-match-slash", f"*/{project.file}"]
    if not proc.attempt([*take, *first], "tar")[0]:
        version = project.parse((folder / project.file).read_text(encoding="utf-8", errors="replace"))
        if version:
            _same_version(version, f"--tree {tarball}", series)
    status, text = proc.attempt(take, "tar")
    if status:
        raise Fail(f"--tree {tarball} is not a tarball: {proc.reason(text)}")


def _copy_own(_series: Series, tree: Path, folder: Path) -> None:
    """Have in `folder` a shallow copy of the user's `tree`, which is read only, and may move or be collected later."""
    git(folder, "init", "-q")
    # git's own configuration does not reach the other end, which may be another user's.
    other = "--upload-pack=git -c 'safe.directory=*' upload-pack"
    git(folder, "fetch", "-q", "--depth=1", other, f"file://{tree}", "HEAD", what=f"copying {tree}")
    git(folder, "checkout", "-q", "-b", "main", "FETCH_HEAD")
    git(folder, "tag", "base")


def fetch(source: Version) -> Path:
    """The path of the package of `source`, see debian.fetch_pinned()."""
    return debian.fetch_pinned(source.package, source.version, source.suite, source.sha256, source.file)


def _unpack_package(source: Version, folder: Path) -> None:
    """Unpack the tarball of a source package, or that in a linux-source .deb, into `folder`."""
    package = fetch(source)
    if source.file:
        _unpack(package, folder)
        return
    proc.need("dpkg-deb")
    with paths.whole(folder / ".deb") as part:
        proc.run(["dpkg-deb", "-x", str(package), str(part)], "dpkg-deb")
        _unpack(next(part.glob("usr/src/linux-source-*.tar.*")), folder)
    paths.remove(folder / ".deb")


def _unpack(tarball: Path, folder: Path) -> None:
    proc.run(["tar", "-xf", str(tarball), "-C", str(folder), "--strip-components=1"], "tar")


def _from_kept(kept: Path, folder: Path) -> bool:
    """Whether the repository `kept` of the cache directory is there: `folder` is a clone of it then, and nothing
    is to be unpacked."""
    with paths.locked(kept.name, say, shared=True):
        if not kept.exists():
            return False
        # Objects are linked, where that can be: they are never written to.
        git(folder, "clone", "-q", str(kept), ".", what="git clone")
    git(folder, "remote", "remove", "origin")
    return True


def _keep(tree: Path, kept: Path) -> None:
    """Have the repository `kept` in the cache directory, with the base that is in `tree`."""
    with paths.locked(kept.name, say, shared=True):
        if not kept.exists():
            with paths.whole(kept) as part:
                git(tree, "clone", "-q", "--bare", str(tree), str(part), what="git clone")


def _commit_base(folder: Path, what: str) -> None:
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
        # The tree's own .gitignore would leave files out that its tarball has.
        git(folder, "add", "-f", "-A", ".")
        git(folder, "commit", "-q", "-m", what, own=True)
        git(folder, "tag", "base")
    exclude = folder / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("".join(f"{line}\n" for line in _OWN_FILES), encoding="utf-8")


def worktree(series: Series, count: int, kernel: str | Path | None = None, version: Version | None = None) -> Tree:
    """A Tree with the first `count` patches applied, made or brought up to date.

    Raises Fail if somebody has changed it: work that is not in patches/ is not thrown away.
    """
    root = base(series, kernel, version)
    if count == 0:
        _check_unchanged(series, root.path, git(root.path, "rev-parse", "base").strip())
        return root
    point = "series" if count == len(series.patches) else f"upto-{count}"
    path = root.path.parent / point
    made = _stamp(path)
    wanted = series.patches_id(count)
    with paths.locked(f"tree-{path.parent.name}", say):
        found = stamp.read(made)
        if path.exists() and found:
            _check_unchanged(series, path, found["commit"])
            if found["patches"] == wanted:
                return Tree(path, point, count, root.version)
        elif path.exists() and made.exists() and re.search(r"\b[0-9a-f]{40}\s*$", made.read_text(encoding="utf-8")):
            raise Fail(f"{path} was made by another version of this tool: keep what you changed there, and remove it")
        # From here on the tree is not what the stamp says, even if this fails or is interrupted.
        paths.remove(made)
        try:
            _apply(series, root, path, point, count)
        except Fail:
            # What somebody may commit on top of what is there now is not to be thrown away.
            if (path / ".git").exists():
                stamp.write(made, {"patches": ""}, commit=head(path))
            raise
        stamp.write(made, {"patches": wanted}, commit=head(path))
    return Tree(path, point, count, root.version)


def _stamp(path: Path) -> Path:
    """Where it is said which patches the worktree `path` has ("" for none that are known), and at which commit it is."""
    return path.parent / f"{path.name}.stamp"


def commits(path: Path) -> list[str]:
    """What the tree with the whole series at `path` calls its states: by the number of patches, from "base" on."""
    return ["base", *git(path, "rev-list", "--reverse", "base..HEAD").split()]


def walk(
    series: Series, numbers: Iterable[int], kernel: str | Path | None = None, singly: bool = False
) -> Iterator[Tree]:
    """Yield a Tree with the first n patches for each n in `numbers`, or with `singly` of the base with fix n alone; all
    in one worktree, so that a build of it compiles only what the step from one to the next changes."""
    full = worktree(series, len(series.patches), kernel)
    path, at = full.path.parent / "walk", commits(full.path)
    with paths.locked(f"walk-{path.parent.name}", say):
        for number in numbers:
            _stand_at(path, alone(series, number, kernel) if singly else at[number])
            yield Tree(path, f"{'alone' if singly else 'patch'}-{number}", number, full.version)


def _stand_at(path: Path, commit: str) -> None:
    """Have the worktree `path` of the tool's own at `commit`, whatever was left of it."""
    try:
        git(path, "checkout", "-q", "-f", "--detach", commit)
    except Fail:
        _add_worktree(path.parent / "base", path, "--detach")
        git(path, "checkout", "-q", "-f", "--detach", commit)


def on_top(series: Series, name: str) -> Path:
    """The patch NAME for the kernels of a series: an instrument, or one or several mutants; a port takes a mutant of the
    series that it is of if it has none of its own."""
    files = [paths.PATCHES / kind / series.name / f"{name}.patch" for kind in ("instruments", "mutants")]
    for file in (*files, *([paths.PATCHES / "mutants" / series.port / f"{name}.patch"] if series.port else [])):
        if file.is_file():
            return file
    raise Fail(f"{series.name} has no instrument or mutant '{name}': there is neither {files[0]} nor {files[1]}")


def mutant(series: Series, names: Iterable[str], kernel: str | Path | None = None, count: int | None = None) -> Tree:
    """A Tree of the whole series, or its first `count` patches, with on_top() for each of `names`, in that order.
    There is one such tree at a time."""
    full = worktree(series, len(series.patches) if count is None else count, kernel)
    path = full.path.parent / "mutant"
    with paths.locked(f"mutant-{path.parent.name}", say):
        _stand_at(path, head(full.path))
        for name in names:
            patch = on_top(series, name)
            git(path, "apply", "--index", str(patch), what=f"git apply {patch.name}")
            git(path, "commit", "-q", "-m", f"On top: {name}", own=True)
    return Tree(path, "mutant", full.count, full.version)


def on_base(series: Series, patches: Iterable[Path], what: str, kernel: str | Path | None = None) -> str:
    """The commit of the base with `patches` (paths), as git am would apply them; made without a checkout.  what: how
    they are on it, for the Fail that names the one that does not apply."""
    root = base(series, kernel)
    index = paths.out(f"{root.path.parent.name}.index")
    with paths.locked(f"index-{root.path.parent.name}", say):
        try:
            git(root.path, "read-tree", "base", index=index)
            for patch in patches:
                status, text = try_git(root.path, "apply", "--cached", str(patch), index=index)
                if status:
                    raise Fail(
                        f"{patch.name} does not apply to the base {what}: {proc.reason(text)}; if it needs other patches, "
                        f"patches/{series.name}/milestones must say so, in needs or based-on"
                    )
            tree = git(root.path, "write-tree", index=index).strip()
        finally:
            paths.remove(index)
    return git(root.path, "commit-tree", "-p", "base", "-m", f"{series.name}: {what}", tree, own=True).strip()


def alone(series: Series, number: int, kernel: str | Path | None = None) -> str:
    """The commit of the base with fix `number` alone, and what it needs (Series.alone())."""
    patches = series.alone(number)
    how = f"with {len(patches) - 1} patches before it" if len(patches) > 1 else "alone"
    return on_base(series, patches, how, kernel)


def _check_unchanged(series: Series, path: Path, commit: str) -> None:
    if head(path) != commit:
        instead = f"keep them with `scripts/series export {series.name}`, or remove {path}"
        raise Fail(f"{path} has commits that are not in patches/{series.name}: {instead}")
    export = f"commit and export them (`scripts/series export {series.name}`)"
    check_clean(path, str(path), f"{export}, or `git -C {path} checkout -f`")


def _apply(series: Series, root: Tree, path: Path, point: str, count: int) -> None:
    """Make the worktree `path` the base plus `count` patches, whatever was left of it."""
    try:
        if (path / ".git").exists():
            # Not a new checkout: files that stay the same keep their times, and builds stay small.
            try_git(path, "am", "--abort", own=True)
            git(path, "checkout", "-q", "-f", "-B", point, "base")
            git(path, "clean", "-q", "-f", "-d")
    except Fail:
        # A run that was killed in the middle of git's own work leaves what git does not get over.
        paths.remove(path)
    if not (path / ".git").exists():
        _add_worktree(root.path, path, "-B", point)
    differ = _differ(series, root.version)
    am.apply(path, series.patches[:count], own=True, where=root.path.parent.name, differ=differ)


def _differ(series: Series, version: str) -> str:
    """For a message: how a tree of that version is another than the base; "" if it is not."""
    title = PROJECTS[series.project].title
    return f" (the tree is {title} {version}, the series is for {series.kernel})" if version != series.kernel else ""


def _add_worktree(repo: Path, path: Path, *how: str) -> None:
    paths.remove(path)
    # A worktree that was killed while it was made stays locked, and so may its branch.
    try_git(repo, "worktree", "unlock", str(path))
    for folder in ("refs", "worktrees"):
        for lock in (repo / ".git" / folder).rglob("*.lock"):
            lock.unlink(missing_ok=True)
    git(repo, "worktree", "prune")
    git(repo, "worktree", "add", "-q", "--force", *how, str(path), "base")


def own_series_tree(series: Series) -> Path:
    """Path of the tree of all patches for export, with its commits as they are."""
    path = base(series).path.parent / "series"
    if not path.exists():
        how = f"`scripts/series build {series.name}` or `scripts/series apply {series.name} DIR`"
        raise Fail(f"no tree to export: make one with {how}")
    return path


def forget(series: Series, path: str | Path) -> None:
    """After an export: the tree `path` is what patches/ say now."""
    path = Path(path)
    made = _stamp(path)
    if path.name == "series" and made.exists():
        stamp.write(made, {"patches": series.patches_id(len(series.patches))}, commit=head(path))


def copy(
    series: Series,
    destination: str | Path,
    count: int,
    kernel: str | Path | None = None,
    signoff: bool = False,
    part: Part | None = None,
) -> Path:
    """Make a git repository of the user's at `destination`: tag base, then `count` patches.

    It stands on its own (nothing is shared with out/), on branch `kvm-<series>`.  part: a catalog.Part instead of
    `count` patches: what it needs, a tag `needed`, then its patches, on a branch of its own.
    """
    paths.check_destination(destination)
    root = base(series, kernel)
    destination = Path(destination).absolute()
    where = str(kernel or f"{PROJECTS[series.project].title} {root.version}")
    differ = _differ(series, root.version)
    if signoff and not has_identity(root.path):
        raise Fail("--signoff certifies the DCO in your name: set git's user.name and user.email")
    with paths.whole(destination) as made:
        # Without --local, which refuses to copy where it cannot link: another file system.
        git(made, "clone", "-q", str(root.path), ".", what="git clone")
        git(made, "remote", "remove", "origin")
        git(made, "checkout", "-q", "-b", f"kvm-{series.name}{f'-{part.name}' if part else ''}", "base")
        if part:
            am.apply(made, part.needed, signoff=signoff, where=where, differ=differ)
            git(made, "tag", "needed")
        patches = part.patches if part else series.patches[:count]
        am.apply(made, patches, signoff=signoff, where=where, differ=differ)
    return destination
