"""scripts/series test"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from migrate import functional as qemu_functional

from ..base import paths
from ..base.progress import say
from ..kernel import kconfig
from ..source import catalog
from ..verify import functional
from ..vm import machine as machines
from . import labs, options as shared, show

HELP = "run the functional selftests on base and series and compare; for QEMU its unit tests and migration qtests"
SERIES = True


def add_arguments(parser: ArgumentParser, project: str | None) -> None:
    """What runs where."""
    shared.kernels(parser)
    shared.tree(parser)
    if project == "linux":
        shared.arch(parser)
    else:
        parser.add_argument("--arch", help="arm64 (default) or x86_64; for QEMU, what it emulates (default: both)")
        parser.add_argument(
            "--pattern",
            default="",
            metavar="TEXT",
            help="for QEMU: only the tests with TEXT in their name, such as precopy/unix or unit/",
        )
    if project == "qemu":
        shared.accel(parser)
    else:
        shared.configs(parser)
        shared.machine(parser)
        labs.add_reports(parser)


def run(options: Namespace) -> None:
    """Print a table and write a file; raise Fail if the series is not as base."""
    if options.series.project == "qemu":
        _qemu(options)
    else:
        _selftests(options)


def _selftests(options: Namespace) -> None:
    points = catalog.points(options.series, options.kernels)
    labs.check_reports(options)
    machines.check(machines.Machine(options.arch, options.cpu, options.accel))
    verdicts, complaints, machine = functional.run(
        options.series, options.arch, points, options.cpu, options.accel, options.config, options.param, options.tree
    )
    config = kconfig.name(options.config)
    about = {
        "series": options.series.name,
        "arch": options.arch,
        "cpu": options.cpu,
        "config": config,
        "params": " ".join(options.param),
    }
    if not labs.reports(options, verdicts, complaints, about):
        show.table(functional.table(verdicts, [point.label for point in points]))
    where = functional.place(options.cpu, options.config, options.param)
    target = paths.out("results", f"{options.series.name}-{options.arch}-tests-{where}.json")
    functional.save(
        target,
        machine,
        verdicts,
        {
            "series": options.series.name,
            "arch": options.arch,
            "cpu": options.cpu,
            "accel": options.accel,
            "config": config,
            "params": options.param,
        },
    )
    show.complain(complaints, paths.out("runs", "x").parent)
    say(f"series is as base; results in {target}")


def _qemu(options: Namespace) -> None:
    series = options.series
    targets = (options.arch,) if options.arch else series.arches
    points = catalog.points(series, options.kernels if series.patches else "base")
    verdicts, complaints, machine = qemu_functional.run(
        series, points, targets, options.accel, options.pattern, options.tree
    )
    show.table(functional.table(verdicts, [point.label for point in points], "unit tests and migration qtests"))
    target = paths.out("results", "-".join([series.name, *targets, "tests", options.accel]) + ".json")
    functional.save(
        target,
        machine,
        verdicts,
        {"series": series.name, "targets": list(targets), "accel": options.accel, "pattern": options.pattern},
    )
    for verdict in verdicts:
        if verdict.known and not {"fail", "timeout"} & set(verdict.results.values()):
            say(f"{verdict.name} is listed as a known failure but did not fail")
    show.complain(complaints, f"{paths.out('logs', 'x').parent}/qemu-tests-*")
    say(f"series is as base; results in {target}")
