"""scripts/series build

Prints the path of each image, or with --package of each package, which is installed on a machine of yours to run
`scripts/series bench --here` there."""

import os
import platform
from collections.abc import Sequence

import click

from migrate import build as qemu_build

from ..base import progress
from ..base.progress import say
from ..kernel import build, hostkernel
from ..source import catalog, trees
from . import shared
from .shared import Option

PARAMS = [
    shared.SERIES,
    shared.ARCH,
    shared.kernels("series", "what is built"),
    shared.TREE,
    *shared.of(
        "linux",
        shared.CONFIG,
        Option(
            "--package",
            None,
            "a package (.deb) or archive (tar) with a machine's configuration, instead of a small kernel for guests",
            type=click.Choice(sorted(hostkernel.FORMATS)),
        ),
        Option(
            "--host-config", "FILE", "that configuration, for --package", default=f"/boot/config-{platform.release()}"
        ),
    ),
]


def run(options: shared.Options) -> None:
    """Print the path of what was built."""
    points = catalog.points(options.series, options.kernels)
    if options.package:
        _packages(options, points)
        return
    for point in points:
        series = point.series
        if series.project == "qemu":
            program = qemu_build.program(series, point.count, options.arch, options.tree)
            say(f"QEMU {program.version} for {program.arch} with {point.count} of {len(series.patches)} patches:")
            print(program.path)
        else:
            kernel = build.kernel(series, point.count, options.arch, options.config, options.tree)
            say(f"{point.label}: linux {kernel.release} for {kernel.arch} ({kernel.config.name}):")
            print(kernel.image)


def _packages(options: shared.Options, points: Sequence[catalog.Point]) -> None:
    text = hostkernel.read_config(options.host_config, options.arch)
    key, source = f"hostkernel-{options.arch}", os.path.basename(options.host_config)
    steps = progress.Steps([(key, f"build {point.label} from {source}", 1800) for point in points])
    for point in points:
        with steps.step(key) as note:
            tree = trees.worktree(point.series, point.count, options.tree)
            kernel = hostkernel.build(tree, options.arch, text, options.package, options.config, note)
        say(
            f"{point.label}: linux {kernel.release}; install it, boot it, and run `scripts/series bench "
            f"{options.series.name} --here`"
        )
        print(kernel.package)
