"""Which tree the model is of: options of model, mutants and proof, and which architectures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from runner import mutants, prove, source

from ..base.errors import Usage
from ..base.progress import say
from ..source import trees
from ..verify.mutants import Mutant
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
    """The names of the architectures that --arch asks for, as far as there is something to check."""
    return tuple(name for name in _asked(options) if not too_early(options, name))


def _asked(options: Namespace) -> tuple[str, ...]:
    chosen = source.of_series(options.series.name)
    found = tuple(name for name in chosen if options.arch in (None, name.partition("-")[0].replace("x86", "x86_64")))
    if not found:
        raise Usage(f"--arch {options.arch}: the model has of {options.series.name} only {', '.join(chosen)}")
    return found


def too_early(options: Namespace, name: str) -> str:
    """Why there is nothing to check for the Arch of that name in the tree that the options ask for: one line. "" if there is.
    With --applied nobody knows, so there is."""
    arch = source.ARCHES[name]
    if options.applied or _count(options) >= options.series.upto(arch.first):
        return ""
    first = f"patch {arch.first}" if arch.first.isdecimal() else f"the milestone {arch.first}"
    return f"{name}: nothing to check before {first}: {arch.before}"


def mutants_of(options: Namespace) -> list[Mutant]:
    """The Mutants of the model in the tree that is asked for. Those of a milestone's own code go with the whole series."""
    every = mutants.every(arches(options))
    return [m for m in every if not m.milestone] if options.applied or options.upto else every


def later(options: Namespace) -> set[str]:
    """The names of scenarios that need not hold, as the tree lacks the milestone that makes them hold. None with --applied,
    for nobody knows what that tree has."""
    if options.applied:
        return set()
    return prove.later(options.series, _count(options))


def large(options: Namespace) -> tuple[str, ...]:
    """How the names of scenarios begin that have too many executions in that tree for a bound of their own."""
    return () if options.applied else prove.large(options.series, _count(options))


def _count(options: Namespace) -> int:
    return len(options.series.patches) if options.upto is None else int(options.series.upto(options.upto))


def check(options: Namespace) -> None:
    """Raise Usage or Fail, before anything is built or fetched, for options that name no tree that the model is of."""
    series = options.series
    if not source.of_series(series.name):
        raise Usage(
            f"the model knows {', '.join(sorted({arch.series for arch in source.ARCHES.values()}))}, not {series.name}"
        )
    if not arches(options):
        raise Usage("; ".join(too_early(options, name) for name in _asked(options)))
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
    for name in _asked(options):
        if too_early(options, name):
            say(too_early(options, name))
    return trees.worktree(series, _count(options), options.tree).path
