"""scripts/series soak"""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

from migrate import build as qemu_build, migration, soak as migrations

from ..base.errors import Fail, Usage
from ..base.progress import say
from ..verify import soak, soakfile
from . import options as shared, show

HELP = (
    "run selftests and stress tests for hours, on all configurations of soak.yaml, in short parts that add up in "
    "one file; for QEMU, random live migrations"
)
SERIES = True


def add_arguments(parser: ArgumentParser, project: str | None) -> None:
    """How long, and into which file."""
    parser.add_argument(
        "--hours",
        type=shared.number(0, kind=float),
        default=4,
        help="stop when the parts in the file add up to HOURS (default: 4); for QEMU, after HOURS of this run",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--json", metavar="FILE", help="the file to add to (default: out/results/soak-<series>.json)")
    where.add_argument("--commit-results", action="store_true", help="add to the file in Documentation/results/")
    parser.add_argument(
        "--accel",
        default="tcg",
        choices=("tcg", "kvm"),
        help="kvm: with this machine's KVM; for QEMU, on this machine itself, which must be of the same --arch",
    )
    if project != "qemu":
        group = parser.add_argument_group("series of linux")
        group.add_argument(
            "--for",
            type=shared.number(),
            dest="minutes",
            metavar="MINUTES",
            help="stop this run after so many minutes, at the end of a part",
        )
        group.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="CONFIGURATION",
            help="only this configuration of soak.yaml; may be repeated",
        )
        group.add_argument(
            "--part", action="append", default=[], metavar="PART", help="only this part of soak.yaml; may be repeated"
        )
    if project != "linux":
        shared.arch(parser)
        group = parser.add_argument_group("randomised live migrations of QEMU")
        group.add_argument(
            "--migrations", type=shared.number(), default=200, metavar="N", help="number of migrations (default: 200)"
        )
        group.add_argument("--seed", default="1", help="random seed of the migrations (default: 1)")


def run(options: Namespace) -> None:
    """Raise Fail if anything was found."""
    if options.json:
        show.check_writable(Path(options.json))
    if options.series.project == "qemu":
        _migrations(options)
        return
    target = soakfile.target(options, options.series.name)
    done = soak.run(options.series, target, options.hours, options.minutes, options.only, options.part, options.accel)
    soak.verdict(done, target)
    say(f"{sum(part['seconds'] for part in done) / 3600:.2f} hours in {len(done)} parts; results in {target}")


def _migrations(options: Namespace) -> None:
    series = options.series
    migration.check(options.accel, options.arch)
    if not re.fullmatch(r"[\w.-]+", options.seed):
        raise Usage(f"--seed '{options.seed}': letters, digits, '-', '_' and '.'")
    mark = "" if options.arch == migration.ARCH else f"-{options.arch}"
    mark += "" if options.seed == "1" else f"-{options.seed}"
    target = soakfile.target(options, f"{series.name}{mark}")
    # Before minutes of building.
    plan = migrations.plan(options.seed, options.migrations)
    migrations.interrupted(target, series, options.seed, plan, options.arch)
    program = qemu_build.program(series, len(series.patches), options.arch)
    wrong = migrations.run(
        series, program, options.migrations, options.seed, target, options.accel, options.hours, options.arch
    )
    if wrong:
        raise Fail(f"{len(wrong)} complaints, the first: {wrong[0]} (see {target})")
    say(f"results in {target}")
