"""scripts/series fetch"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..source import trees
from . import options as shared

HELP = "fetch the base tree (cached) and print its path"
SERIES = True


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which base."""
    shared.tree(parser)
    shared.version(parser)


def run(options: Namespace) -> None:
    """Print the path of the base."""
    print(trees.base(options.series, options.tree, options.version).path)
