"""Kernels with mutants or instruments on top: patches/mutants, patches/instruments.

All are built in one tree (trees.mutant()), so what is built is kept in out/mutants.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..base import paths, progress, stamp
from ..source import catalog, trees
from . import build, kconfig, toolchain


def kernel(
    series: catalog.Series,
    names: Sequence[str],
    arch: str,
    configs: Iterable[str] = (),
    count: int | None = None,
    own: str | Path | None = None,
    note: progress.Note | None = None,
) -> build.Kernel:
    """The Kernel of `series`, or of its first `count` patches, with trees.on_top() for each of `names`, built or found.

    own: the user's tree for the base, or None; then it is built each time."""
    config = kconfig.load(arch, configs, series.kernel)
    folder = paths.out(
        "mutants", "-".join([series.name, *names, "series" if count is None else str(count), arch, config.name])
    )
    wanted = None if own else _made_from(series, names, arch, config, count)
    with paths.locked("mutant-kernels", progress.say):
        if stamp.current(folder / "mutant.json", {"from": wanted}) is None or own:
            made = build.in_tree(trees.mutant(series, names, own, count), arch, configs, note)
            table = next(parent / "System.map" for parent in made.image.parents if (parent / "System.map").exists())
            with paths.whole(folder) as part:
                for file in (made.image, table):
                    shutil.copy2(file, part / file.name)
                stamp.write(part / "mutant.json", {"from": wanted}, image=made.image.name, release=made.release)
    found = stamp.read(folder / "mutant.json")
    tree = trees.Tree(folder, "mutant", len(series.patches) if count is None else count, series.kernel)
    return build.Kernel(tree, arch, config, folder / found["image"], found["release"])


def _made_from(
    series: catalog.Series, names: Iterable[str], arch: str, config: kconfig.Config, count: int | None
) -> str:
    """An id of all that such a kernel is made from."""
    patches = [trees.on_top(series, name).read_text(encoding="utf-8") for name in names]
    whole = len(series.patches) if count is None else count
    return stamp.digest(
        series.versions[0].sha256, series.patches_id(whole), patches, config.text, toolchain.version(arch)
    )
