"""scripts/series hostkernel"""

from __future__ import annotations

import os
import platform
from argparse import ArgumentParser, Namespace

from ..base import progress
from ..base.progress import say
from ..kernel import hostkernel, kconfig
from ..source import catalog, trees
from . import options as shared

HELP = "build installable kernels for a machine of yours, from its own configuration"
SERIES = True
PROJECTS = ("linux",)


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which kernels, from what, as what."""
    shared.arch(parser)
    shared.kernels(parser)
    parser.add_argument(
        "--config",
        dest="host_config",
        default=f"/boot/config-{platform.release()}",
        metavar="FILE",
        help="the machine's kernel configuration (default: this machine's, /boot/config-RELEASE)",
    )
    parser.add_argument(
        "--format",
        default="deb",
        choices=sorted(hostkernel.FORMATS),
        help="what is built: a .deb package or a tar archive (default: deb)",
    )
    parser.add_argument(
        "--overlay",
        action="append",
        default=[],
        metavar="NAME",
        help="also apply this overlay, such as lockstat, as `build --config` does; may be repeated",
    )
    shared.tree(parser)


def run(options: Namespace) -> None:
    """Print the path of each package."""
    series, points = options.series, catalog.points(options.series, options.kernels)
    kconfig.load(options.arch, options.overlay, series.kernel)
    text = hostkernel.read_config(options.host_config, options.arch)
    steps = progress.Steps(
        [
            (f"hostkernel-{options.arch}", f"build {point.label} from {os.path.basename(options.host_config)}", 1800)
            for point in points
        ]
    )
    for point in points:
        with steps.step(f"hostkernel-{options.arch}") as note:
            tree = trees.worktree(point.series, point.count, options.tree)
            kernel = hostkernel.build(tree, options.arch, text, options.format, tuple(options.overlay), note)
        say(
            f"{point.label}: linux {kernel.release}; install it, boot it, and run `scripts/series bench {series.name} --here`"
        )
        for package in kernel.packages:
            print(package)
