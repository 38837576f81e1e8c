"""Which tree the model is of: options of model, mutants and proof, and which architectures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..base.errors import Usage
from ..model import prove, source
from ..source import trees
from . import options as shared


def add_arguments(parser: ArgumentParser) -> None:
    """--applied, --upto, --arch, --tree"""
    parser.add_argument("--applied", metavar="DIR", help="a tree that apply has made (default: the tool's own)")
    parser.add_argument("--upto", metavar="N", help="only the first N patches, or those up to the milestone N")
    parser.add_argument(
        "--arch", choices=("arm64", "x86_64"), help="only the code of this architecture (default: both)"
    )
    shared.tree(parser)


def arches(options: Namespace) -> tuple[str, ...]:
    """The names of the architectures that --arch asks for."""
    chosen = source.of_series(options.series.name)
    if not options.arch:
        return chosen
    found = tuple(name for name in chosen if name.partition("-")[0] == options.arch.replace("x86_64", "x86"))
    if not found:
        raise Usage(f"--arch {options.arch}: the model has of {options.series.name} only {', '.join(chosen)}")
    return found


def later(options: Namespace) -> set[str]:
    """The names of scenarios that need not hold, as the tree lacks the milestone that makes them hold. None with --applied,
    for nobody knows what that tree has."""
    if options.applied:
        return set()
    return prove.later(options.series, _count(options))


def _count(options: Namespace) -> int:
    return len(options.series.patches) if options.upto is None else int(options.series.upto(options.upto))


def check(options: Namespace) -> None:
    """Raise Usage or Fail, before anything is built or fetched, for options that name no tree that the model is of."""
    series = options.series
    if not source.of_series(series.name):
        raise Usage(
            f"the model knows {', '.join(sorted({arch.series for arch in source.ARCHES.values()}))}, not {series.name}"
        )
    arches(options)
    if options.applied:
        if options.upto or options.tree:
            raise Usage("--applied excludes --upto and --tree")
        if not Path(options.applied).is_dir():
            raise Usage(f"--applied {options.applied}: no such directory")
        trees.check(series, options.applied, "--applied")


def find(options: Namespace) -> Path:
    """The path of the tree that --applied or --upto asks for; by default that of the whole series."""
    series = options.series
    check(options)
    if options.applied:
        return Path(options.applied).absolute()
    return trees.worktree(series, _count(options), options.tree).path
