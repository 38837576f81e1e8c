"""scripts/series hunt"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..base.errors import Usage
from ..guest import machine as machines
from ..verify import hunt
from . import options as shared, show

HELP = "run COMMAND again and again on base and series, and count its failures"
SERIES = True
PROJECTS = ("linux",)
COMMAND = True


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """How often, on which kernels, on which machine."""
    shared.arch(parser)
    shared.machine(parser)
    shared.kernels(parser)
    parser.add_argument(
        "--runs",
        type=shared.number(),
        default=200,
        metavar="N",
        help="runs of each kernel, earlier ones included (default: 200)",
    )
    parser.add_argument(
        "--batch", type=shared.number(), default=10, metavar="N", help="runs in each boot (default: 10)"
    )
    parser.add_argument(
        "--timeout",
        type=shared.number(),
        default=120,
        metavar="S",
        help="time limit of a run in seconds (default: 120)",
    )
    parser.add_argument(
        "--all-cpus",
        action="store_true",
        help="let the command run on CPU 0 of emulated x86-64, too, where QEMU can lose the state of a guest",
    )
    parser.add_argument(
        "--json", required=True, metavar="FILE", help="file with the counts; the same command again continues from it"
    )
    parser.usage = "scripts/series hunt SERIES [options] -- COMMAND"


def run(options: Namespace) -> None:
    """Print how often each kernel failed, and how."""
    if not options.command:
        raise Usage("hunt needs a command: -- /tests/NAME ARGUMENT...")
    wanted = hunt.Hunt(
        options.arch,
        options.cpu,
        tuple(options.param),
        tuple(options.command),
        options.timeout,
        options.accel,
        all_cpus=options.all_cpus,
    )
    show.check_writable(Path(options.json))
    machines.check(machines.Machine(options.arch, options.cpu, options.accel, all_cpus=options.all_cpus))
    data = hunt.run(options.series, wanted, options.kernels, options.runs, options.batch, Path(options.json))
    for label, counts in data["kernels"].items():
        failed = ", ".join(f"{times} {why}" for why, times in counts["failures"].items())
        print(f"{label}: {counts['runs']} runs in {counts['boots']} boots; failed: {failed or 'none'}")
