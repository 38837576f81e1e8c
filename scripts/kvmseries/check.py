"""What must hold of a series without booting it: it applies to every version it names, its patches
are clean and carry no sign-off, exporting it gives back its files, and every step of it builds.

A series may have no patches yet: then there is its base alone, and no cover letter."""

import os
import re
import sys

from . import build, catalog, debian, export as exporting, paths, proc, trees
from .errors import Fail
from .git import git

# FILE_PATH_CHANGES asks for MAINTAINERS, where directories are listed as a whole.
_CHECKPATCH = ["--strict", "--no-signoff", "--no-summary", "--terse", "--show-types",
               "--ignore", "FILE_PATH_CHANGES"]


def applies(series, note=lambda text: None, kernel=None):
    """Apply all patches to every version in patches/<series>/base, or to the user's tree."""
    if kernel:
        trees.worktree(series, len(series.patches), kernel)
        return
    for version in series.versions:
        note(f"applying to {version.kernel}")
        trees.worktree(series, len(series.patches), version=version.kernel)


def checkpatch(series, kernel=None):
    """Run checkpatch.pl --strict of the base's own tree over every patch."""
    debian.install("check")
    tree = trees.base(series, kernel)
    # spdxcheck.py, which checkpatch calls, imports packages of the tool's own Python.
    env = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    for patch in series.patches:
        status, text = proc.run([str(tree.path / "scripts/checkpatch.pl"), *_CHECKPATCH,
                                 str(patch)], "checkpatch", cwd=tree.path, env=env, check=False)
        if status or text.strip():
            raise Fail(f"checkpatch: {patch.name}: {proc.reason(text)}")


def clean(series):
    """What checkpatch does not look at: trailers that are the submitter's, milestones, the cover
    letter's count."""
    for patch in series.patches:
        text = patch.read_text(encoding="utf-8")
        trailer = exporting.TRAILER.search(text)
        if trailer:
            raise Fail(f"{patch.name} carries '{trailer[0]}': whoever submits adds it (git am -s)")
        if not catalog.subject(patch):
            raise Fail(f"{patch.name} has no subject")
    for milestone, count in series.milestones.items():
        if not 0 < count <= len(series.patches):
            raise Fail(f"{series.path / 'milestones'}: '{milestone}' is {count}, but there are "
                       f"{len(series.patches)} patches")
    if not series.patches:
        if series.cover.exists():
            raise Fail(f"{series.cover.name} is for no patches: {series.name} has none")
        return
    if not series.cover.exists():
        raise Fail(f"{series.name} has no cover letter: {series.cover.name}")
    letter = series.cover.read_text(encoding="utf-8")
    count = re.search(r"^Subject: \[PATCH 0+/(\d+)\]", letter, re.M)
    if not count or int(count[1]) != len(series.patches):
        raise Fail(f"{series.cover.name} is not for {len(series.patches)} patches: run "
                   f"`scripts/series export {series.name}`")


def round_trip(series):
    """Exporting the applied series must give the files that are there, byte for byte.

    On the base that is pinned: patches name the contents that they change by hash.
    """
    if not series.patches:
        return
    tree = trees.worktree(series, len(series.patches))
    with paths.whole(paths.out("export-check")) as part:
        exporting.write_patches(tree.path, part, len(series.patches))
        for patch in series.patches:
            new = part / patch.name
            if not new.exists() or new.read_bytes() != patch.read_bytes():
                raise Fail(f"{patch.name} is not what `scripts/series export {series.name}` writes: "
                           "export it instead of editing it")
        if series.cover.read_text(encoding="utf-8") != exporting.cover(series, tree.path,
                                                                       len(series.patches)):
            raise Fail(f"{series.cover.name}: list of patches or diffstat is out of date: run "
                       f"`scripts/series export {series.name}`")
    paths.remove(paths.out("export-check"))


def debug_patches(series, kernel=None):
    """Those of patches/debug for `series` apply on top of it, each with those that its text says it is on
    top of.  Returns their names."""
    tree = trees.worktree(series, len(series.patches), kernel)
    folder, found = paths.PATCHES / "debug", []
    for patch in sorted(folder.glob(f"{series.name}-*.patch")):
        text = re.split(r"^(?:diff --git|--- a/)", patch.read_text(encoding="utf-8"), maxsplit=1, flags=re.M)[0]
        below = re.findall(rf"[Oo]n top of ({re.escape(series.name)}-[\w-]+\.patch)", " ".join(text.split()))
        # In one file: of several ones git does not look at one on top of the other.
        together = paths.out("debug-check.patch")
        together.write_text("\n".join((folder / name).read_text(encoding="utf-8")
                                      for name in (*below, patch.name)), encoding="utf-8")
        git(tree.path, "apply", "--check", str(together), what=f"git apply {patch.name}")
        paths.remove(together)
        found.append(patch.name)
    return found


def builds(series, arch, note, kernel=None, steps=False):
    """Build the kernel after each patch, in one tree, so that only what changes is compiled; with `steps`
    after each step of the series (patches/<series>/milestones) alone.

    Patches that touch nothing but tools/, Documentation/ and other architectures change no kernel of
    `arch`; the selftests are built from the whole series.
    """
    tree = trees.base(series, kernel)
    others = ("tools/", "Documentation/", *(folder for name, folder in build.FOLDERS.items() if name != arch))
    counts = that_change(series, tree, others)
    if steps:
        # A step whose patches change no kernel of `arch` is the one before it.
        counts = sorted({max((count for count in counts if count <= last), default=0)
                         for last in series.milestones.values()} - {0})
    build.each_patch(series, arch, counts if steps else [0, *counts], note, kernel)
    return counts


def new_warnings(series, arch, kernel=None):
    """What gcc with W=1 and sparse say of the files that the series changes, and do not say of base: lines."""
    base = trees.base(series, kernel)
    names = {name for patch in series.patches for name in files(base.path, patch)}
    found = [build.examine(build.kernel(series, count, arch, kernel_tree=kernel), names)
             for count in (0, len(series.patches))]
    return sorted((found[1] - found[0]).elements())


def that_change(series, tree, others):
    """Numbers of the patches that change a file whose name begins with none of `others`."""
    return [number for number, patch in enumerate(series.patches, 1)
            if any(not name.startswith(others) for name in files(tree.path, patch))]


def files(tree, patch):
    """Names of the files that a patch changes."""
    text = git(tree, "apply", "--numstat", str(patch))
    return [line.split("\t")[2] for line in text.splitlines()]
