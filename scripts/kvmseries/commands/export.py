"""scripts/series export

DIR is a tree that apply has made; by default the tool's own, below out/trees."""

import click

from ..base.progress import say
from ..source import export
from . import shared

PARAMS = [shared.SERIES, click.Argument(["dir"], required=False)]


def run(options: shared.Options) -> None:
    """Write the patches."""
    count = export.export(options.series, options.dir)
    say(f"{count} patches in {options.series.path}")
