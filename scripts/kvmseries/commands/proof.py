"""scripts/series proof"""

from __future__ import annotations

import os
import resource
import time
from argparse import ArgumentParser, Namespace

from runner import build, coverage, mutants, prove, runs, source

from ..base.errors import Fail
from ..base.progress import say
from . import modeltree, options as shared

HELP = "run the whole model: calibration, all scenarios, all mutants; one screen"
SERIES = True
PROJECTS = ("linux",)


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which tree, how many random schedules."""
    modeltree.add_arguments(parser)
    parser.add_argument(
        "--schedules",
        type=shared.number(),
        default=5000,
        metavar="N",
        help="random schedules of each long scenario (default: 5000)",
    )


def run(options: Namespace) -> None:
    """Print one screen; raise Fail if anything is not as it must be."""
    tree = modeltree.find(options)
    begun = time.monotonic()
    program, libraries = runs.ready(tree, modeltree.arches(options))
    complaints = prove.calibration(program, build.library(tree, source.of_series(options.series.name)[0]))
    results = prove.loom(program, libraries, (), None, lambda line: None, modeltree.large(options))
    random = prove.shuttle(program, libraries, (), "random", options.schedules, 1, lambda line: None)
    outcomes = mutants.judge_all(modeltree.mutants_of(options), tree, program)
    covered = []
    for arch in libraries:
        covered.append(f"{arch}: {coverage.summary(coverage.measure(tree, program, arch))}")
    arms = {arm for result in results + random for arm in result.arms}
    never = [place for arch in libraries for place in coverage.never_lost(tree, arch, arms)]
    covered.append(
        f"each cmpxchg was lost in some scenario but {', '.join(never)}"
        if never
        else "each cmpxchg was lost in some scenario"
    )
    print(prove.screen(runs.scenarios(program), results, random, outcomes, complaints, covered))
    say(f"the proof took {time.monotonic() - begun:.0f} s, and {_cpu():.0f} s of CPU time, on {os.cpu_count()} CPUs")
    later = modeltree.later(options)
    bad = (
        complaints
        + [r.line for r in results + random if not r.good and r.name not in later]
        + [o.line for o in outcomes if not o.good]
    )
    if bad:
        raise Fail(f"{len(bad)} things are not as they must be, the first: {bad[0]}")


def _cpu() -> float:
    """Seconds of CPU time that this process and those that it has started have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)
