"""scripts/series model"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path

from runner import build, coverage, mutants, prove, runs, source

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from . import modeltree, options as shared

HELP = "run the MMU code of a tree under a model checker: see model/README.md"
SERIES = True
PROJECTS = ("linux",)
# Defaults for random and pct.
_SCHEDULES, _SEED = 2000, 1


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which tree, which scenarios, by which engine."""
    modeltree.add_arguments(parser)
    parser.add_argument("--plant", metavar="PATCH", help="add this patch, a mistake that must be found")
    parser.add_argument(
        "--scenario",
        action="append",
        default=[],
        metavar="NAME",
        help="run this scenario; may be repeated (default: all short ones; with random and pct the long ones)",
    )
    parser.add_argument(
        "--engine",
        choices=("loom", "random", "pct"),
        help="loom: every execution (default); random, pct: schedules of shuttle",
    )
    parser.add_argument(
        "--bound", metavar="N", help="for loom: at most N preemptions, or all (default: each scenario's own)"
    )
    parser.add_argument(
        "--schedules",
        type=shared.number(),
        metavar="N",
        help=f"number of schedules, for random and pct (default: {_SCHEDULES})",
    )
    parser.add_argument(
        "--seed", type=shared.number(0), metavar="N", help=f"random seed, for random and pct (default: {_SEED})"
    )
    parser.add_argument(
        "--coverage", action="store_true", help="list the lines of the kernel's functions that no short scenario runs"
    )


def _check(options: Namespace) -> None:
    """Raise Usage for options that exclude each other, or that would be ignored."""
    if options.coverage:
        why = "--coverage is of all short scenarios"
        shared.refuse(options, why, "scenario", "engine", "bound", "schedules", "seed")
    elif options.engine in ("random", "pct"):
        shared.refuse(options, f"--engine {options.engine} has no bound of preemptions", "bound")
    else:
        shared.refuse(
            options, "loom runs every execution, --engine random or pct a number of them", "schedules", "seed"
        )


def run(options: Namespace) -> None:
    """Print what the scenarios come to; raise Fail if one fails."""
    _check(options)
    if options.bound not in (None, "all") and not (options.bound.isdecimal() and len(options.bound) < 3):
        raise Usage(f"--bound {options.bound}: give a number from 0 to 99, or all")
    plant = Path(options.plant).absolute() if options.plant else None
    if plant and not plant.is_file():
        raise Usage(f"--plant {options.plant}: no such file")
    modeltree.check(options)
    if options.scenario:
        prove.known(options.scenario, modeltree.arches(options))
    tree = modeltree.find(options)
    if plant:
        tree = mutants.plant(tree, plant, paths.out("model", "mutants", "by-hand"), options.series.name)
    if options.coverage:
        _coverage(tree, modeltree.arches(options))
        return
    program, libraries = runs.ready(tree, modeltree.arches(options))
    if options.engine in ("random", "pct"):
        seed = _SEED if options.seed is None else options.seed
        results = prove.shuttle(
            program, libraries, options.scenario, options.engine, options.schedules or _SCHEDULES, seed, say
        )
    else:
        large = modeltree.large(options)
        results = prove.loom(program, libraries, options.scenario, options.bound, say, large)
    later = modeltree.later(options)
    bad = [result for result in results if not result.good and result.name not in later]
    for result in bad:
        print(result.trace)
    missing = [name for arch in libraries for name in source.absent(tree, source.ARCHES[arch])]
    if missing:
        say(f"not in this tree, which is of an earlier milestone: {', '.join(missing)}")
    if later:
        say(f"need not hold before a later milestone: {', '.join(sorted(later))}")
    say(
        f"{len(results)} scenarios, {sum(r.executions for r in results):,} executions, "
        f"{len({arm for r in results for arm in r.arms})} arms reached"
    )
    if bad:
        raise Fail(f"{len(bad)} of {len(results)} scenarios fail, the first: {bad[0].line}")


def _coverage(tree: Path, arches: Iterable[str]) -> None:
    for arch in arches:
        functions = coverage.measure(tree, build.checker(), arch)
        for function in functions:
            if function.missed:
                print(function.text)
        say(f"{arch}: {coverage.summary(functions)}")
