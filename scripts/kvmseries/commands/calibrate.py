"""scripts/series calibrate"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..base.progress import say
from ..measure import bench, calibrate
from . import options as shared

HELP = "fit two parameters of the model of virtual time to figures that were published for base"
SERIES = True
PROJECTS = ("linux",)


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which machine."""
    shared.arch(parser)
    shared.tree(parser)


def run(options: Namespace) -> None:
    """Print the parameters as they are, and as they fit best."""
    wanted = calibrate.column(options.series, options.arch)
    runs, _ = bench.run(calibrate.job(options.series, options.arch, wanted, options.tree))
    found = calibrate.fit(runs, wanted, options.arch)
    say(
        f"{wanted.what}, ns a page, model.yaml as it is: "
        + ", ".join(f"{count} vCPUs {error:+.1%}" for count, error in found.errors.items())
    )
    for name, (now, better) in found.values.items():
        print(f"{name}: {now:.4g} ns, fits best at {better:.4g} ns")
    say(f"errors that remain: {found.residual:.1%} (root mean square); the values are in scripts/vtime/model.yaml")
