"""scripts/series bench

Kernels take turns in guests, in virtual time (Documentation/measurement.md); with --here the kernel that this machine
has booted is measured.

For QEMU a guest that dirties memory is migrated over a Unix socket, with --accel kvm by QEMUs on this machine itself,
otherwise by QEMUs in an emulated one.

With --calibrate: measures base and prints how two parameters of the model of virtual time fit published figures best."""

import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from migrate import migration
from vtime import vtime

from ..base import numbers, paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import repeat, results
from ..data.shape import Ids, Run, Trace
from ..kernel import toolchain
from ..measure import bench, calibrate, here
from ..report import table
from ..source import catalog
from ..vm import machine as machines
from . import shared
from .shared import COUNT, flag, Option, Positive

_TEST = "dirty_log_perf_test"
# The label of --here without one: the release says it.
_RELEASE = "release"
PARAMS = [
    shared.SERIES,
    shared.kernels(None, "kernels to measure (default: base,series)"),
    Option("--vcpus", "N,...", "numbers of vCPUs, up to 64 (default: 1,2,4,8,16; for QEMU 1,2,4,8)"),
    Option("--test", "NAME", f"a test of bench.yaml (default: {_TEST}; for QEMU {migration.TEST}, the only one)"),
    Option("--samples", "N", "rounds in which the kernels take turns (default: bench.yaml's; for QEMU 2)", type=COUNT),
    Option("--json", "FILE", "results (default: out/results/<series>-<arch>-<test>.json)", type=shared.Output()),
    shared.TREE,
    Option("--arch", "ARCH", "arm64 or x86_64 (default: arm64; with --here this machine's)"),
    shared.accel(None),
    *shared.of(
        "linux",
        Option("--case", "NAME", "a case of bench.yaml, such as the arguments of a published table"),
        Option(
            "--test-args", "ARGS", 'arguments over bench.yaml\'s, as in "-i 3 -g-", where -g- takes -g away', raw=True
        ),
        shared.CONFIG,
        shared.cpu(None, "QEMU's CPU (default: max; in virtual time neoverse-n1, which the model describes)"),
        shared.PARAM,
        Option(
            "--here",
            "[LABEL]",
            "measure this machine; LABEL is the kernel that it has booted (base, series, upto:MILESTONE), if its release "
            "does not end in -base, -series or -upto-N",
            is_flag=False,
            flag_value=_RELEASE,
        ),
        Option(
            "--clock",
            None,
            "virtual: each emulated CPU has its own clock (default where CPUs are emulated)",
            type=click.Choice(["virtual", "wall"]),
        ),
        flag("--sensitivity", "also run with each parameter of the model halved and doubled"),
        Option(
            "--retry", "N", "measure rounds that do not agree again, up to N times", type=click.IntRange(0), default=0
        ),
        flag("--no-counts", "leave out the lock counts"),
        flag("--no-times", "leave out the times"),
        flag("--calibrate", "fit the model of virtual time"),
    ),
    *shared.of(
        "qemu",
        Option("--rings", "N,...", "sizes of the dirty ring", default="bitmap,1024,4096,65536"),
        Option("--working-set", "MIB,...", "memory that the guest dirties", default="2,8"),
        Option("--rate", "PAGES/S", "how fast; 0: as fast as it can", type=click.IntRange(0), default=2000),
        Option("--bandwidth", "MB/S", "limit of the bandwidth", type=Positive(1e6), default=2.6),
        Option("--limit", "S", "give up a migration after S seconds", type=COUNT, default=120),
    ),
]


def settle(options: shared.Options) -> None:
    """Set --arch where it is not given: with --here that of this machine, if the series has it; otherwise arm64."""
    if options.arch is None:
        own = [name for name in options.series.arches if toolchain.machine(name) == platform.machine()]
        options.arch = own[0] if options.here and own else "arm64"


def run(options: shared.Options) -> None:
    """Measure, write the results file, print its table; raise Fail where rounds differ that must not."""
    if options.calibrate:
        _calibrate(options)
    elif options.series.project == "qemu":
        _migrations(options)
    else:
        _selftest(options)


def _points(options: shared.Options) -> tuple[catalog.Point, ...]:
    return catalog.points(options.series, options.kernels or ("base,series" if options.series.patches else "base"))


def _target(options: shared.Options, what: str) -> Path:
    """The results file."""
    name = f"{options.series.name}-{options.arch}-{what}.json"
    return options.json or shared.writable(paths.out("results", name), "--json")


def _measure(options: shared.Options, target: Path, of: Any, job: Any, run: Callable[[Any], Any]) -> list[Run]:
    """Write the results file.

    of: has state(job), what must not change meanwhile; host(job, versions) and made_of(job), the results' own.  run: measures;
    returns runs, versions, and traces if there are any."""
    begin, before = time.monotonic(), of.state(job)
    runs, versions, *traces = run(job)
    ids: Ids = {}
    if of.state(job) == before:
        ids = of.made_of(job)
    else:
        say("the sources of what is measured have changed meanwhile: these results are of an unknown state")
    tree = ["--tree", options.tree] if options.tree and "--tree" not in options.given else []
    command = results.command([*sys.argv[1:], *tree])
    seconds = round(time.monotonic() - begin)
    results.save(target, of.host(job, versions), runs, {"ids": ids, "command": command, "seconds": seconds}, *traces)
    return runs


def _selftest(options: shared.Options) -> None:
    job = _job(options)
    target = _target(options, options.case or job.test)
    if options.here:
        label = here.label(platform.release()) if options.here == _RELEASE else options.here
        job = replace(job, points=(shared.point(job.series, "--here", label),))
    else:
        machines.check(machines.Machine(job.arch, job.cpu, job.accel, clock=job.clock, model=job.models[0]))
    of = here if options.here else bench
    runs = _measure(options, target, of, job, of.run)
    table.print_table([results.load(target)], shared.console())
    if job.clock == "virtual" and job.samples < 2:
        say("one round: whether virtual time repeats was not checked")
    say(f"results in {target}")
    failed = repeat.failed(runs)
    if failed:
        raise Fail(repeat.complaint(failed))


def _job(options: shared.Options) -> bench.Job:
    """The bench.Job that the options ask for."""
    series, test, name = options.series, options.test or _TEST, options.case or ""
    clock = options.clock or ("virtual" if options.accel in (None, "tcg") and not options.here else "wall")
    if options.no_times and options.samples not in (None, 1):
        raise Usage("--no-times excludes --samples above 1: lock counts are of one boot and of no model")
    for config in set(options.config) & {"lockstat", "normal"}:
        raise Usage(f"--config {config}: bench builds the normal and the lockstat kernel itself")
    entry, case = bench.settings(test), bench.case(test, name)
    bench.able(series, options.arch, test, name, case.get("since"))
    extra = case["args"] or options.test_args or ""
    return bench.Job(
        series=series,
        arch=options.arch,
        test=test,
        line=tuple(bench.arguments(test, options.arch, extra, series.kernel)),
        vcpus=numbers.vcpus(options.vcpus or "1,2,4,8,16"),
        points=_points(options),
        samples=options.samples or entry.get("samples", 3),
        configs=options.config,
        counts=not options.no_counts,
        times=not options.no_times,
        cpu=options.cpu or case.get("cpu") or (vtime.CPUS[options.arch] if clock == "virtual" else "max"),
        accel="here" if options.here else options.accel or "tcg",
        params=options.param,
        kernel=options.tree,
        clock=clock,
        models=(vtime.NOMINAL, *(vtime.variants(options.arch) if options.sensitivity else ())),
        extra=extra,
        retries=options.retry,
    )


def _migrations(options: shared.Options) -> None:
    series = options.series
    if options.test not in (None, migration.TEST):
        raise Usage(f"{series.name}: bench knows the test {migration.TEST}, not '{options.test}'")
    accel = options.accel or "tcg"
    points = _points(options)
    machines.check(machines.Machine(options.arch, accel=accel))
    settings = migration.settings(
        migration.rings(options.rings),
        numbers.vcpus(options.vcpus or "1,2,4,8"),
        numbers.numbers("--working-set", options.working_set, 1, 1 << 18),
        rate=options.rate,
        bandwidth=round(options.bandwidth * 1e6),
        limit=options.limit,
    )
    job = migration.Job(series, points, settings, options.samples or 2, accel, tree=options.tree, arch=options.arch)
    target, wrong = _target(options, migration.TEST), []

    def run(job: migration.Job) -> tuple[list[Run], dict[str, str], Sequence[Trace]]:
        taken = migration.run(job)
        wrong.extend(taken.complaints)
        return taken.runs, taken.versions, taken.traces

    _measure(options, target, migration, job, run)
    table.print_table([results.load(target)], shared.console(160))
    if wrong:
        raise Fail(f"{len(wrong)} complaints, the first: {wrong[0]} (results in {target})")
    say(f"results in {target}")


def _calibrate(options: shared.Options) -> None:
    wanted = calibrate.column(options.series, options.arch)
    runs, _ = bench.run(calibrate.job(options.series, options.arch, wanted, options.tree))
    found = calibrate.fit(runs, wanted, options.arch)
    errors = ", ".join(f"{count} vCPUs {error:+.1%}" for count, error in found.errors.items())
    say(f"{wanted.what}, ns a page, model.yaml as it is: {errors}")
    for name, (now, better) in found.values.items():
        print(f"{name}: {now:.4g} ns, fits best at {better:.4g} ns")
    say(f"errors that remain: {found.residual:.1%} (root mean square); the values are in scripts/vtime/model.yaml")
