"""scripts/series check"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from migrate import check as qemu_check

from ..verify import check
from . import options as shared

HELP = (
    "check that the series applies, passes checkpatch --strict, exports to the same files, and builds after each patch"
)
SERIES = True


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """What is built."""
    parser.add_argument("--arch", help="build for this arch only (default: all of the series)")
    parser.add_argument("--no-build", action="store_true", help="only the checks that build nothing (a minute)")
    shared.tree(parser)


def run(options: Namespace) -> None:
    """Raise Fail with the first thing that is not as it must be."""
    series = options.series
    own, key, seconds = (
        (qemu_check, "qemu-check", (60, 10, 900)) if series.project == "qemu" else (check, "check", (90, 30, 300))
    )
    check.every(
        series, [options.arch] if options.arch else series.arches, own, key, seconds, not options.no_build, options.tree
    )
