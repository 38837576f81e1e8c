"""scripts/series export"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..base.progress import say
from ..source import export

HELP = "write patches/ from the commits of a git tree"
SERIES = True


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which tree."""
    parser.add_argument("dir", nargs="?", metavar="DIR", help="a tree that apply has made (default: the tool's own)")


def run(options: Namespace) -> None:
    """Write the patches."""
    count = export.export(options.series, options.dir)
    say(f"{count} patches in {options.series.path}")
