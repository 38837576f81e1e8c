"""Which tree the model is of, by options of `scripts/series prove`: --applied, --upto, --arch, --tree."""

from pathlib import Path
from types import SimpleNamespace as Options

from kvmseries.base.errors import Usage
from kvmseries.base.progress import say
from kvmseries.source import trees
from kvmseries.verify.mutants import Mutant

from . import mutants, prove, source


def arches(options: Options) -> tuple[str, ...]:
    """The names of the architectures that --arch asks for, as far as there is something to check."""
    return tuple(name for name in _asked(options) if not too_early(options, name))


def _asked(options: Options) -> tuple[str, ...]:
    chosen = source.of_series(options.series.name)
    found = tuple(name for name in chosen if options.arch in (None, name.partition("-")[0].replace("x86", "x86_64")))
    if not found:
        raise Usage(f"--arch {options.arch}: the model has of {options.series.name} only {', '.join(chosen)}")
    return found


def too_early(options: Options, name: str) -> str:
    """Why there is nothing to check for the Arch of that name in the tree that the options ask for: one line. "" if there is.
    With --applied nobody knows, so there is."""
    arch = source.ARCHES[name]
    if options.applied or _count(options) >= options.series.upto(arch.first):
        return ""
    first = f"patch {arch.first}" if arch.first.isdecimal() else f"the milestone {arch.first}"
    return f"{name}: nothing to check before {first}: {arch.before}"


def mutants_of(options: Options) -> list[Mutant]:
    """The Mutants of the model in the tree that is asked for. Those of a milestone's own code go with the whole series."""
    every = mutants.every(arches(options))
    return [m for m in every if not m.milestone] if options.applied or options.upto else every


def later(options: Options) -> set[str]:
    """The names of scenarios that need not hold, as the tree lacks the milestone that makes them hold. None with --applied,
    for nobody knows what that tree has."""
    if options.applied:
        return set()
    return prove.later(options.series, _count(options))


def large(options: Options) -> tuple[str, ...]:
    """How the names of scenarios begin that have too many executions in that tree for a bound of their own."""
    return () if options.applied else prove.large(options.series, _count(options))


def _count(options: Options) -> int:
    return len(options.series.patches) if options.upto is None else int(options.series.upto(options.upto))


def check(options: Options) -> None:
    """Raise Usage or Fail, before anything is built or fetched, for options that name no tree that the model is of."""
    series = options.series
    if not source.of_series(series.name):
        raise Usage(
            f"the model knows {', '.join(sorted({arch.series for arch in source.ARCHES.values()}))}, not {series.name}"
        )
    if not arches(options):
        raise Usage("; ".join(too_early(options, name) for name in _asked(options)))
    if options.applied:
        if options.tree:
            raise Usage("--applied excludes --tree, also from $TREE: it is a tree with patches")
        if not Path(options.applied).is_dir():
            raise Usage(f"--applied {options.applied}: no such directory")
        trees.check(series, options.applied, "--applied")


def find(options: Options) -> Path:
    """The path of the tree that --applied or --upto asks for; by default that of the whole series."""
    series = options.series
    check(options)
    if options.applied:
        return Path(options.applied).absolute()
    for name in _asked(options):
        if too_early(options, name):
            say(too_early(options, name))
    return trees.worktree(series, _count(options), options.tree).path
