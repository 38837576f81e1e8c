"""scripts/series test

Without --soak and --trace: the functional selftests, or QEMU's unit tests and migration qtests; the series must do no
less than base.

With --soak: selftests and stress tests for hours, on all configurations of soak.yaml, in short parts that add up in
one file, so that it may be interrupted and repeated.  For QEMU: random live migrations that are disturbed.

With --trace: runs COMMAND in a guest (arm64), records in FILE stores to stage-2 page tables and TLBIs, and
checks that no TLBI is missing.  Without COMMAND it checks what FILE has."""

import re
from pathlib import Path

from migrate import build as qemu_build, functional as qemu_functional, migration, soak as migrations

from .. import labs
from ..base import files, paths
from ..base.errors import Usage
from ..base.progress import say
from ..kernel import kconfig
from ..source import catalog
from ..verify import functional, soak, trace
from ..vm import machine as machines
from . import shared
from .shared import COUNT, flag, Option, Positive, several

COMMAND = True
# Of a soak of QEMU.
_MIGRATIONS = 200
PARAMS = [
    shared.SERIES,
    shared.kernels(None, "which are compared (default: base,series), or the one that is traced (series)"),
    shared.TREE,
    Option("--arch", "ARCH", "arm64 or x86_64 (default: arm64; for QEMU's tests what it emulates, both)"),
    shared.accel(),
    Option("--repeat", "N", "run the tests N times, or until one fails; of QEMU's soak, N migrations", type=COUNT),
    several("--only", "NAME", "only this configuration or part of soak.yaml; for QEMU tests with NAME in their name"),
    Option("--soak", "HOURS", "soak until the parts in the file add up to HOURS", type=Positive()),
    Option("--json", "FILE", "the soak's file (default: out/results/soak-<series>.json)", type=shared.Output()),
    *shared.of(
        "linux",
        shared.CONFIG,
        shared.cpu(),
        shared.PARAM,
        flag("--ktap", "print KTAP instead of the table"),
        Option("--junit", "FILE", "also write JUnit's XML", type=shared.Output()),
        Option("--trace", "FILE", "check TLB maintenance of COMMAND, and keep the trace in FILE; or check FILE"),
    ),
    *shared.of("qemu", Option("--seed", "SEED", "random seed of the migrations", default="1")),
]


def run(options: shared.Options) -> None:
    """Print a table and write a file; raise Fail if something is not as it must be."""
    qemu = options.series.project == "qemu"
    if options.trace:
        _trace(options)
    elif options.soak:
        (_migrations if qemu else _soak)(options)
    else:
        count = options.repeat or 1
        for number in range(count):
            if count > 1:
                say(f"run {number + 1} of {count}")
            (_qtests if qemu else _selftests)(options)


def _points(options: shared.Options) -> tuple[catalog.Point, ...]:
    return catalog.points(options.series, options.kernels or ("base,series" if options.series.patches else "base"))


def _selftests(options: shared.Options) -> None:
    if options.only:
        raise Usage("--only needs --soak, or a series of QEMU")
    points, arch = _points(options), options.arch or "arm64"
    machines.check(machines.Machine(arch, options.cpu, options.accel))
    verdicts, complaints, machine = functional.run(
        options.series, arch, points, options.cpu, options.accel, options.config, options.param, options.tree
    )
    about = {
        "series": options.series.name,
        "arch": arch,
        "cpu": options.cpu,
        "config": kconfig.name(options.config),
        "params": options.param,
        "accel": options.accel,
    }
    found = labs.outcomes(verdicts, complaints)
    if options.junit:
        files.write(options.junit, labs.junit(found, f"{options.series.name}.{arch}"))
    if options.ktap:
        print(labs.ktap(found), end="")
    else:
        shared.table(functional.table(verdicts, [point.label for point in points]))
    where = functional.place(options.cpu, options.config, options.param)
    target = paths.out("results", f"{options.series.name}-{arch}-tests-{where}.json")
    functional.save(target, machine, verdicts, about)
    shared.complain(complaints, paths.out("runs", "x").parent)
    say(f"series is as base; results in {target}")


def _qtests(options: shared.Options) -> None:
    series, points = options.series, _points(options)
    if len(options.only) > 1:
        raise Usage("--only: give one NAME for QEMU's tests")
    pattern = "".join(options.only)
    targets = (options.arch,) if options.arch else series.arches
    verdicts, complaints, machine = qemu_functional.run(series, points, targets, options.accel, pattern, options.tree)
    shared.table(functional.table(verdicts, [point.label for point in points], "unit tests and migration qtests"))
    target = paths.out("results", "-".join([series.name, *targets, "tests", options.accel]) + ".json")
    about = {"series": series.name, "targets": list(targets), "accel": options.accel, "pattern": pattern}
    functional.save(target, machine, verdicts, about)
    for verdict in verdicts:
        if verdict.known and not {"fail", "timeout"} & set(verdict.results.values()):
            say(f"{verdict.name} is listed as a known failure but did not fail")
    shared.complain(complaints, f"{paths.out('logs', 'x').parent}/qemu-tests-*")
    say(f"series is as base; results in {target}")


def _trace(options: shared.Options) -> None:
    path = Path(options.trace)
    if not options.command:
        if more := options.given - {"--trace"}:
            raise Usage(f"--trace {path} without -- COMMAND checks a trace that is there: no {min(more)}")
        trace.verdict(trace.check(path))
        return
    shared.writable(path, "--trace")
    point = shared.point(options.series, "--kernels", options.kernels or "series")
    command = shared.words(options.command)
    trace.verdict(trace.record(point, command, path, options.config, options.cpu, options.param, options.tree))


def _soak(options: shared.Options) -> None:
    if options.repeat:
        raise Usage("--soak excludes --repeat: HOURS says how long")
    if options.arch:
        raise Usage("--soak excludes --arch: configurations of soak.yaml have theirs, and --only chooses among them")
    target = options.json or paths.out("results", f"soak-{options.series.name}.json")
    done = soak.run(options.series, target, options.soak, options.only, options.accel)
    soak.verdict(done, target)
    say(f"{sum(part['seconds'] for part in done) / 3600:.2f} hours in {len(done)} parts; results in {target}")


def _migrations(options: shared.Options) -> None:
    series, arch, count = options.series, options.arch or migration.ARCH, options.repeat or _MIGRATIONS
    if options.only:
        raise Usage("--only is for the tests of QEMU: --soak runs all migrations")
    machines.check(machines.Machine(arch, accel=options.accel))
    if not re.fullmatch(r"[\w.-]+", options.seed):
        raise Usage(f"--seed '{options.seed}': letters, digits, '-', '_' and '.'")
    mark = "" if arch == migration.ARCH else f"-{arch}"
    mark += "" if options.seed == "1" else f"-{options.seed}"
    target = options.json or paths.out("results", f"soak-{series.name}{mark}.json")
    # Before minutes of building.
    plan = migrations.plan(options.seed, count)
    migrations.interrupted(target, series, options.seed, plan, arch)
    program = qemu_build.program(series, len(series.patches), arch)
    wrong = migrations.run(series, program, count, options.seed, target, options.accel, options.soak, arch)
    shared.complain(wrong, target)
    say(f"results in {target}")
