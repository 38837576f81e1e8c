"""What the verbs of scripts/series do for a series of QEMU, where that is not what they do for kernels.

VERBS maps a verb to its function; SAME are those that need no other.  A verb in neither is refused.
"""

import re
import sys
import time
from pathlib import Path

from rich.console import Console

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import results
from ..source import catalog
from ..verify import check as checking, functional as judging, soakfile
from . import build, check, functional, migration, migration_table, soak

SAME = ("list", "fetch", "apply", "export")


def function(options):
    """The function of the verb in `options` for the series in it; Usage if there is none."""
    if options.verb in SAME:
        return options.function
    if options.verb not in VERBS:
        raise Usage(f"{options.series.name} is for QEMU: '{options.verb}' is for kernels "
                    f"(for QEMU: {', '.join((*SAME, *VERBS))})")
    # What these options mean is a kernel's.
    for name, default in (("config", []), ("param", []), ("cpu", "max"), ("only", []), ("minutes", None)):
        if getattr(options, name, default) not in (default, None):
            option = {"minutes": "for"}.get(name, name)
            raise Usage(f"{options.series.name} is for QEMU: --{option} is for kernels")
    return VERBS[options.verb]


def build_verb(options):
    """scripts/series build"""
    series = options.series
    count = 0 if options.base else len(series.patches) if options.upto is None else series.upto(options.upto)
    program = build.program(series, count, options.arch, options.kernel)
    say(f"QEMU {program.version} for {program.arch} with {count} of {len(series.patches)} patches:")
    print(program.path)


def check_verb(options):
    """scripts/series check"""
    series = options.series
    checking.every(series, [options.arch] if options.arch else series.arches, check, "qemu-check", (60, 10, 900),
                   not options.no_build, options.kernel)


def test_verb(options):
    """scripts/series test"""
    series = options.series
    targets = (options.arch,) if options.arch else series.arches
    kernels = options.kernels if series.patches else "base"
    points = catalog.points(series, kernels)
    verdicts, complaints, machine = functional.run(series, points, targets, options.accel, options.pattern,
                                                   options.kernel)
    Console(highlight=False).print(judging.table(verdicts, [point.label for point in points],
                                                 "unit tests and migration qtests"))
    target = paths.out("results", "-".join([series.name, *targets, "tests", options.accel]) + ".json")
    judging.save(target, machine, verdicts, {"series": series.name, "targets": list(targets),
                                             "accel": options.accel, "pattern": options.pattern})
    for verdict in verdicts:
        if verdict.known and not {"fail", "timeout"} & set(verdict.results.values()):
            say(f"{verdict.name} is listed as a known failure but did not fail")
    for complaint in complaints:
        say(complaint)
    if complaints:
        raise Fail(f"{len(complaints)} complaint{'s' if len(complaints) > 1 else ''}, the first: {complaints[0]} "
                   f"(see {paths.out('logs', 'x').parent}/qemu-tests-*)")
    say(f"series is as base; results in {target}")


def bench_verb(options):
    """scripts/series bench: live migrations"""
    series = options.series
    if options.test != "dirty_log_perf_test" and options.test != migration.TEST:
        raise Usage(f"{series.name}: bench knows the test {migration.TEST}, not '{options.test}'")
    points = catalog.points(series, options.kernels or ("base,series" if series.patches else "base"))
    migration.check(options.accel)
    job = migration.Job(
        series, points, migration.settings(
            migration.rings(options.rings), migration.numbers("--vcpus", options.vcpus or "1,2,4,8", 1, 64),
            migration.numbers("--working-set", options.working_set, 1, 1 << 18), rate=options.rate,
            bandwidth=round(options.bandwidth * 1e6), downtime=options.downtime, limit=options.limit),
        options.samples or 2, options.accel, tree=options.kernel)
    target = Path(options.json) if options.json else paths.out("results", f"{series.name}-arm64-migration.json")
    begin, before = time.monotonic(), migration.state(job)

    def save(runs, versions):
        info = migration.host(job, versions)
        found = migration.made_of(job) if migration.state(job) == before else {}
        if not found:
            say("patches/ or the driver have changed meanwhile: these results are of an unknown state")
        results.save(target, info, runs, {"ids": found, "command": results.command(sys.argv[1:]),
                                          "seconds": round(time.monotonic() - begin)})

    runs, _, wrong = migration.run(job, save)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    for table in migration_table.tables(runs):
        console.print(table)
    if wrong:
        raise Fail(f"{len(wrong)} complaints, the first: {wrong[0]} (results in {target})")
    say(f"results in {target}")


def soak_verb(options):
    """scripts/series soak: randomised live migrations"""
    series = options.series
    migration.check(options.accel)
    if not re.fullmatch(r"[\w.-]+", options.seed):
        raise Usage(f"--seed '{options.seed}': letters, digits, '-', '_' and '.'")
    mark = "" if options.seed == "1" else f"-{options.seed}"
    target = soakfile.target(options, f"{series.name}{mark}")
    # Before minutes of building.
    soak.interrupted(target, series, options.seed, soak.plan(options.seed, options.migrations))
    program = build.program(series, len(series.patches), migration.ARCH)
    wrong = soak.run(series, program, options.migrations, options.seed, target, options.accel, options.hours)
    if wrong:
        raise Fail(f"{len(wrong)} complaints, the first: {wrong[0]} (see {target})")
    say(f"results in {target}")


VERBS = {"build": build_verb, "check": check_verb, "test": test_verb, "bench": bench_verb, "soak": soak_verb}
