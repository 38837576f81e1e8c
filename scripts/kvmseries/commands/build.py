"""scripts/series build"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from migrate import build as qemu_build

from ..base.progress import say
from ..kernel import build
from . import options as shared

HELP = "build a kernel (for QEMU, the emulator) and print the path of its image"
SERIES = True


def add_arguments(parser: ArgumentParser, project: str | None) -> None:
    """What is built."""
    shared.arch(parser)
    shared.point(parser)
    if project != "qemu":
        shared.configs(parser)
    shared.tree(parser)


def run(options: Namespace) -> None:
    """Print the path of what was built."""
    series, count = options.series, shared.count(options)
    if series.project == "qemu":
        program = qemu_build.program(series, count, options.arch, options.tree)
        say(f"QEMU {program.version} for {program.arch} with {count} of {len(series.patches)} patches:")
        print(program.path)
        return
    kernel = build.kernel(series, count, options.arch, options.config, options.tree)
    say(f"linux {kernel.release} for {kernel.arch} ({kernel.config.name}):")
    print(kernel.image)
