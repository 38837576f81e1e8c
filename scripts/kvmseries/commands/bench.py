"""scripts/series bench: of linux a selftest, of QEMU live migrations"""

from __future__ import annotations

import functools
import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from migrate import migration
from vtime import vtime

from .. import report
from ..base import numbers, paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import repeat, results, unfinished
from ..data.shape import Host, Ids, Run
from ..kernel import toolchain
from ..measure import bench, here
from ..source import catalog
from ..vm import machine as machines
from . import options as shared, show

_TEST, _SLICE = "dirty_log_perf_test", 500
HELP = "measure kernels against each other; for QEMU, live migrations"
SERIES = True


def add_arguments(parser: ArgumentParser, project: str | None) -> None:
    """What is measured, how, and where the results go."""
    parser.add_argument(
        "--vcpus", metavar="N,...", help="numbers of vCPUs, up to 64 (default: 1,2,4,8,16; for QEMU 1,2,4,8)"
    )
    parser.add_argument(
        "--test",
        default=migration.TEST if project == "qemu" else _TEST,
        help=f"a test of bench.yaml (default: {_TEST}; for QEMU {migration.TEST}, the only one)",
    )
    parser.add_argument(
        "--kernels",
        metavar="K,...",
        help="kernels to measure: base, series, upto:MILESTONE, OTHER:base (default: base,series)",
    )
    parser.add_argument(
        "--samples",
        type=shared.number(),
        metavar="N",
        help="rounds in which the kernels take turns (default: bench.yaml's; for QEMU 2)",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="results file (default: out/results/<series>-<arch>-<test>.json)"
    )
    shared.tree(parser)
    if project != "qemu":
        _kernel_options(parser)
        shared.machine(parser, None)
        # None: not given, which is tcg where something is emulated.
        parser.set_defaults(accel=None)
    else:
        shared.arch(parser)
        shared.accel(parser)
    if project != "linux":
        _migration_options(parser)


def _kernel_options(parser: ArgumentParser) -> None:
    parser.add_argument("--arch", help="arm64 or x86_64 (default: arm64; with --here this machine's)")
    shared.configs(parser)
    parser.add_argument(
        "--test-args",
        default="",
        metavar="ARGS",
        help='arguments that replace or extend the defaults of bench.yaml, as in --test-args "-i 3"',
    )
    parser.add_argument(
        "--only-args", action="store_true", help="run with --test-args alone, without the defaults of bench.yaml"
    )
    parser.add_argument(
        "--case",
        default="",
        metavar="NAME",
        help="a case of bench.yaml: arguments of a published table, or others that are named",
    )
    parser.add_argument(
        "--clock",
        choices=("virtual", "wall"),
        help="virtual: every emulated CPU has its own clock, see Documentation/measurement.md "
        "(default with --accel tcg)",
    )
    parser.add_argument(
        "--model",
        metavar="M",
        help="change the model of the virtual clock: a parameter of "
        "scripts/vtime/model.yaml times a factor, such as line*2",
    )
    parser.add_argument(
        "--sensitivity", action="store_true", help="also run with each parameter of the model halved and doubled"
    )
    parser.add_argument(
        "--slice",
        type=shared.number(),
        metavar="NS",
        help=f"how far an emulated CPU may run ahead of the others (default: {_SLICE})",
    )
    parser.add_argument(
        "--must-repeat",
        default="",
        metavar="METRIC,...",
        help="times whose rounds must agree, or none: the exit status is 1 where they do not "
        "(default: all that bench.yaml does not list as differing by chance)",
    )
    parser.add_argument(
        "--retry",
        type=shared.number(0),
        default=0,
        metavar="N",
        help="for a busy host: if the rounds of a kernel do not agree, measure all of them again, up to N times; "
        "the results keep the earlier samples",
    )
    parser.add_argument("--no-counts", action="store_true", help="leave out the lock counts")
    parser.add_argument("--no-times", action="store_true", help="leave out the times")
    parser.add_argument(
        "--here",
        metavar="LABEL",
        nargs="?",
        const="",
        help="run on this machine, booted with the kernel under test, instead of in guests; LABEL "
        "names it (base, series, upto:MILESTONE) if its release does not end in -base, -series "
        "or -upto-N",
    )


def _migration_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group(
        "live migrations of QEMU",
        "A guest that dirties memory is migrated over a Unix socket; with --accel "
        "kvm by QEMUs on this machine itself, otherwise by QEMUs in an emulated one.",
    )
    group.add_argument(
        "--rings",
        default="bitmap,1024,4096,65536",
        metavar="N,...",
        help="sizes of the dirty ring (default: bitmap,1024,4096,65536)",
    )
    group.add_argument(
        "--working-set", default="2,8", metavar="MIB,...", help="memory that the guest dirties (default: 2,8)"
    )
    group.add_argument(
        "--rate",
        type=shared.number(0),
        default=2000,
        metavar="PAGES/S",
        help="pages that the guest dirties, 0: as fast as it can (default: 2000)",
    )
    group.add_argument(
        "--bandwidth",
        type=shared.number(0, 1e6, float),
        default=2.6,
        metavar="MB/S",
        help="limit of the bandwidth (default: 2.6)",
    )
    group.add_argument(
        "--downtime", type=shared.number(), default=300, metavar="MS", help="limit of the downtime (default: 300)"
    )
    group.add_argument(
        "--limit",
        type=shared.number(),
        default=120,
        metavar="S",
        help="give up a migration after S seconds (default: 120)",
    )


def settle(options: Namespace) -> None:
    """Set --arch where it is not given: with --here that of this machine, if the series has it; otherwise arm64."""
    if options.arch is None:
        own = [name for name in options.series.arches if toolchain.machine(name) == platform.machine()]
        options.arch = own[0] if options.here is not None and own else "arm64"


def run(options: Namespace) -> None:
    """Measure, write the results file, print its table; raise Fail where rounds differ that must not."""
    if options.series.project == "qemu":
        _migrations(options)
    else:
        _selftest(options)


def _selftest(options: Namespace) -> None:
    job = _job(options)
    target = (
        Path(options.json)
        if options.json
        else paths.out("results", "-".join([job.series.name, job.arch, options.case or job.test]) + ".json")
    )
    show.check_writable(target)
    runs, finished = _measured(job, options, target)
    finished()
    report.print_table([results.load(target)], show.console())
    if job.clock == "virtual" and job.samples < 2:
        say("one round: whether virtual time repeats was not checked")
    say(f"results in {target}")
    failed = repeat.failed(runs, job.must)
    if failed:
        raise Fail(repeat.complaint(failed))


def _measured(job: bench.Job, options: Namespace, target: Path) -> tuple[list[Run], Callable[[], object]]:
    """Measure in guests, or with --here on this machine, and write the results file; returns (runs, what to call at
    the end).  What was measured of a job that breaks off is kept, see unfinished.py."""
    before, label = bench.state(job), None
    if options.here is not None:
        label = options.here or here.label()
        catalog.points(job.series, label)
        host, made_of = here.host, functools.lru_cache(lambda: here.made_of(job, label))
    else:
        machines.check(machines.Machine(job.arch, job.cpu, job.accel, clock=job.clock, model=job.models[0]))
        host, made_of = functools.partial(bench.host, job), functools.lru_cache(lambda: bench.made_of(job))
    keeper = unfinished.Keeper(
        target,
        [*bench.what(job), label],
        lambda versions: (host(versions), made_of() if bench.state(job) == before else {}),
        _command(options),
    )
    try:
        runs, versions = (
            here.run(job, label, keeper.taken, keeper.keep) if label else bench.run(job, keeper.taken, keeper.keep)
        )
    except Fail as error:
        raise keeper.failed(error) from None
    keeper.save(host(versions), made_of() if _same(job, before) else {}, runs)
    return runs, keeper.done


def _same(job: bench.Job, before: list[str]) -> bool:
    """Whether what `job` measures is what it was before; says so if not."""
    same = bench.state(job) == before
    if not same:
        say("patches/, the guest or the virtual clock have changed meanwhile: these results are of an unknown state")
    return same


def _command(options: Namespace) -> str:
    """The command line, with the tree that came from the environment."""
    own = ["--tree", options.tree] if options.tree and "--tree" not in sys.argv else []
    return results.command([*sys.argv[1:], *own])


def _job(options: Namespace) -> bench.Job:
    """The bench.Job that the options ask for."""
    series = options.series
    clock = _clock(options)
    entry, case = bench.settings(options.test), bench.case(options.test, options.case)
    bench.able(series, options.arch, options.test, options.case, case.get("since"))
    extra = case["args"] or options.test_args
    models: tuple[str, ...] = (options.model or vtime.NOMINAL,)
    if options.sensitivity:
        models = (vtime.NOMINAL, *vtime.variants(options.arch))
    return bench.Job(
        series=series,
        arch=options.arch,
        test=options.test,
        line=tuple(bench.arguments(options.test, options.arch, extra, series.kernel, options.only_args)),
        vcpus=numbers.vcpus(options.vcpus or "1,2,4,8,16"),
        points=catalog.points(series, options.kernels or ("base,series" if series.patches else "base")),
        samples=options.samples or entry["samples"],
        configs=tuple(options.config),
        counts=not options.no_counts,
        times=not options.no_times,
        cpu=options.cpu or case.get("cpu") or (vtime.CPUS[options.arch] if clock == "virtual" else "max"),
        accel=options.accel or "tcg",
        params=tuple(options.param),
        kernel=options.tree,
        clock=clock,
        models=models,
        slice_ns=options.slice or _SLICE,
        extra=(extra, options.only_args),
        must=repeat.metrics(options.must_repeat),
        retries=options.retry,
    )


def _clock(options: Namespace) -> str:
    """ "virtual" or "wall"; raises Usage for options that exclude each other."""
    real = options.here is not None
    clock = options.clock or ("virtual" if options.accel in (None, "tcg") and not real else "wall")
    if options.no_counts and options.no_times:
        raise Usage("--no-counts and --no-times leave nothing to measure")
    if options.case and (options.test_args or options.only_args):
        raise Usage("--case brings its own arguments: no --test-args or --only-args")
    if clock == "virtual" and options.here is not None:
        raise Usage("--here runs on this machine, whose clock is the wall's: no --clock virtual")
    if clock == "wall" and any((options.sensitivity, options.model, options.slice, options.must_repeat, options.retry)):
        raise Usage("--sensitivity, --model, --slice, --must-repeat and --retry are for --clock virtual")
    if options.sensitivity and options.model:
        raise Usage("--sensitivity runs all models: no --model")
    if options.no_times:
        why = "--no-times leaves the lock counts, which are of one boot and of no model"
        shared.refuse(options, why, "sensitivity", "model", "must_repeat")
        if options.retry or options.samples not in (None, 1):
            raise Usage(f"{why}: no --{'retry' if options.retry else 'samples'}")
    if options.here is not None and any(
        (
            options.param,
            options.config,
            options.no_counts,
            options.no_times,
            options.cpu,
            options.accel,
            options.kernels,
        )
    ):
        raise Usage(
            "--here runs on the kernel that is booted: no --param, --config, --cpu, --accel, --kernels, "
            "--no-counts or --no-times"
        )
    for name in options.config:
        if name in ("lockstat", "normal"):
            raise Usage(f"--config {name}: bench builds the normal and the lockstat kernel itself")
    return clock


def _migrations(options: Namespace) -> None:
    series = options.series
    if options.test != migration.TEST:
        raise Usage(f"{series.name}: bench knows the test {migration.TEST}, not '{options.test}'")
    points = catalog.points(series, options.kernels or ("base,series" if series.patches else "base"))
    migration.check(options.accel, options.arch)
    job = migration.Job(
        series,
        points,
        migration.settings(
            migration.rings(options.rings),
            numbers.vcpus(options.vcpus or "1,2,4,8"),
            numbers.numbers("--working-set", options.working_set, 1, 1 << 18),
            rate=options.rate,
            bandwidth=round(options.bandwidth * 1e6),
            downtime=options.downtime,
            limit=options.limit,
        ),
        options.samples or 2,
        options.accel,
        tree=options.tree,
        arch=options.arch,
    )
    target = (
        Path(options.json) if options.json else paths.out("results", f"{series.name}-{options.arch}-migration.json")
    )
    show.check_writable(target)
    before = migration.state(job)

    @functools.lru_cache
    def made_of() -> Ids:
        return migration.made_of(job)

    def about(versions: dict[str, str]) -> tuple[Host, Ids]:
        return migration.host(job, versions), made_of() if migration.state(job) == before else {}

    keeper = unfinished.Keeper(target, migration.what(job), about, _command(options))
    try:
        taken = migration.run(job, keeper.taken, keeper.keep)
    except Fail as error:
        raise keeper.failed(error) from None
    info, found = about(taken.versions)
    if not found:
        say("patches/ or the driver have changed meanwhile: these results are of an unknown state")
    keeper.save(info, found, taken.runs)
    keeper.done()
    wrong = taken.complaints
    report.print_table([results.load(target)], show.console(160))
    if wrong:
        raise Fail(f"{len(wrong)} complaints, the first: {wrong[0]} (results in {target})")
    say(f"results in {target}")
