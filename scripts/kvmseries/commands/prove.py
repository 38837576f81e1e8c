"""scripts/series prove

Alone: the whole model of the MMU code, which is calibration, all scenarios and all mutants, on one screen (see
model/README.md).

With --model: the scenarios NAMES of the model, by default all short ones.

With --litmus: herd7 on the litmus tests NAMES and their variants, with the memory model of the base.

With --mutants: whether each mutant of patches/mutants/mutants.yaml is found, and prints where, and how long it took."""

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from runner import build, coverage, mutants, prove, runs, source, tree as modeltree

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..source import trees
from ..verify import litmus, mutants as booted, mutanttable
from . import shared
from .shared import COUNT, flag, Option

PROJECT = "linux"
# Schedules of --model, and of the whole proof, where --schedules does not say.
_SCHEDULES, _ALL = 2000, 5000
PARAMS = [
    shared.SERIES,
    click.Argument(["names"], nargs=-1),
    flag("--model", "run scenarios of the model"),
    flag("--litmus", "run litmus tests"),
    flag("--mutants", "check that mutants are found"),
    shared.ANY_ARCH,
    shared.UPTO,
    shared.TREE,
    Option("--applied", "DIR", "a tree that apply has made (default: the tool's own)"),
    Option("--plant", "PATCH", "add this patch, a mutant that --model must find"),
    Option(
        "--engine",
        None,
        "of --model: loom, every execution (default); random or pct, schedules of shuttle, of the long scenarios",
        type=click.Choice(["loom", "random", "pct"]),
    ),
    Option("--bound", "N", "of loom: at most N preemptions, or all (default: each scenario's own)"),
    Option("--schedules", "N", f"number of schedules (default: {_SCHEDULES}; of all: {_ALL})", type=COUNT),
    Option("--seed", "N", "random seed of the schedules", type=click.IntRange(0), default=1),
    flag("--coverage", "list the lines of the kernel's functions that no short scenario of --model runs"),
    flag("--guests", "of --mutants: also boot guests (hours); those of virtual time only if NAMES has them"),
]


def run(options: shared.Options) -> None:
    """Print what was proved; raise Fail if anything is not as it must be."""
    if options.litmus:
        _litmus(options)
    elif options.mutants:
        _mutants(options)
    elif options.model:
        _model(options)
    else:
        _all(options)


def _litmus(options: shared.Options) -> None:
    every = litmus.tests()
    names = options.names
    chosen = [test for test in every if not names or test.name in names or test.twin_of in names]
    unknown = set(names) - {test.name for test in every}
    if unknown:
        raise Usage(f"no test '{min(unknown)}' in {' or '.join(map(str, litmus.FOLDERS))}")
    program = litmus.herd()
    base = trees.base(options.series, options.tree)
    view = Table("test", "model", "expected", "herd7", "s")
    complaints = litmus.unpaired(every)
    for test in chosen:
        verdict = litmus.run(program, test, base.path / "tools/memory-model")
        complaints.append(litmus.complaint(test, verdict))
        view.add_row(test.name, test.model, test.result, verdict.result, f"{verdict.seconds:.2f}")
    shared.table(view)
    shared.complain(list(filter(None, complaints)))
    say(f"{len(chosen)} tests as expected by herd7 {program.version}; LKMM is that of linux {base.version}")


def _mutants(options: shared.Options) -> None:
    names = options.names
    if options.guests and options.tree:
        raise Usage("--guests excludes --tree, also from $TREE: the checks are of the whole series")
    part = bool(options.applied or options.upto or options.arch or options.tree)
    every = modeltree.mutants_of(options)
    others = [] if part else [mutant for mutant in booted.of_series(options.series.name) if mutant.booted]
    unknown = set(names) - {mutant.name for mutant in (*every, *others)}
    if unknown:
        raise Usage(f"no mutant '{min(unknown)}' of {options.series.name} in {booted.FILE}")
    modeltree.check(options)
    chosen = [mutant for mutant in every if not names or mutant.name in names]
    others = [mutant for mutant in others if not names or mutant.name in names]
    outcomes: Sequence[mutants.Outcome] = ()
    if chosen:
        tree = modeltree.find(options)
        outcomes = mutants.judge_all(chosen, tree, build.checker(), lambda outcome: say(outcome.line))
    rows = [mutanttable.of_model(outcome) for outcome in outcomes]
    rows += [mutanttable.of_booted(one) for one in booted.judge(others, options.series, options.guests, names)]
    shared.table(mutanttable.table(rows))
    if chosen:
        say(prove.summary(outcomes))
    say(mutanttable.summary(rows))
    bad = [row for row in rows if not row.good]
    if bad:
        raise Fail(f"{len(bad)} of {len(rows)} mutants are not found, the first: {bad[0].name}: {bad[0].by}")


def _model(options: shared.Options) -> None:
    if options.bound not in (None, "all") and not (options.bound.isdecimal() and len(options.bound) < 3):
        raise Usage(f"--bound {options.bound}: give a number from 0 to 99, or all")
    plant = Path(options.plant).absolute() if options.plant else None
    if plant and not plant.is_file():
        raise Usage(f"--plant {options.plant}: no such file")
    if options.schedules and options.engine not in ("random", "pct"):
        raise Usage("--schedules needs --engine random or pct: loom runs every execution")
    modeltree.check(options)
    arches = modeltree.arches(options)
    if options.names:
        prove.known(options.names, arches)
    tree = modeltree.find(options)
    if plant:
        tree = mutants.planted(tree, plant, paths.out("model", "mutants", "by-hand"), options.series.name)
    if options.coverage:
        _coverage(tree, arches)
        return
    program, libraries = runs.ready(tree, arches)
    if options.engine in ("random", "pct"):
        count = options.schedules or _SCHEDULES
        results = prove.shuttle(program, libraries, options.names, options.engine, count, options.seed, say)
    else:
        results = prove.loom(program, libraries, options.names, options.bound, say, modeltree.large(options))
    bad = _bad(options, results)
    for result in bad:
        print(result.trace)
    missing = [name for arch in libraries for name in source.absent(tree, source.ARCHES[arch])]
    if missing:
        say(f"not in this tree, which is of an earlier milestone: {', '.join(missing)}")
    later = modeltree.later(options)
    if later:
        say(f"need not hold before a later milestone: {', '.join(sorted(later))}")
    say(
        f"{len(results)} scenarios, {sum(r.executions for r in results):,} executions, "
        f"{len({arm for r in results for arm in r.arms})} arms reached"
    )
    if bad:
        raise Fail(f"{len(bad)} of {len(results)} scenarios fail, the first: {bad[0].line}")


def _bad(options: shared.Options, results: Sequence[Any]) -> list[Any]:
    """Those of `results`, of scenarios, that must hold and do not."""
    later = modeltree.later(options)
    return [result for result in results if not result.good and result.name not in later]


def _coverage(tree: Path, arches: Sequence[str]) -> None:
    for arch in arches:
        functions = coverage.measure(tree, build.checker(), arch)
        for function in functions:
            if function.missed:
                print(function.text)
        say(f"{arch}: {coverage.summary(functions)}")


def _all(options: shared.Options) -> None:
    tree = modeltree.find(options)
    begun = time.monotonic()
    program, libraries = runs.ready(tree, modeltree.arches(options))
    complaints = prove.calibration(program, build.library(tree, source.of_series(options.series.name)[0]))
    results = prove.loom(program, libraries, (), None, lambda line: None, modeltree.large(options))
    random = prove.shuttle(program, libraries, (), "random", options.schedules or _ALL, 1, lambda line: None)
    outcomes = mutants.judge_all(modeltree.mutants_of(options), tree, program)
    covered = [f"{arch}: {coverage.summary(coverage.measure(tree, program, arch))}" for arch in libraries]
    arms = {arm for result in results + random for arm in result.arms}
    never = [place for arch in libraries for place in coverage.never_lost(tree, arch, arms)]
    covered.append(f"each cmpxchg was lost in some scenario{' but ' if never else ''}{', '.join(never)}")
    print(prove.screen(runs.scenarios(program), results, random, outcomes, complaints, covered))
    say(f"the proof took {time.monotonic() - begun:.0f} s, and {_cpu():.0f} s of CPU time, on {os.cpu_count()} CPUs")
    bad = complaints + [one.line for one in _bad(options, results + random)] + [o.line for o in outcomes if not o.good]
    if bad:
        raise Fail(f"{len(bad)} things are not as they must be, the first: {bad[0]}")


def _cpu() -> float:
    """Seconds of CPU time that this process and those that it has started have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)
