"""scripts/series compare"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..data import results
from ..report import compare
from . import show

HELP = "list what is better or worse in B than in A, beyond the spread; the exit status is 1 if anything is worse"
SERIES = False


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Two files."""
    parser.add_argument("before", metavar="A", help="results file of bench")
    parser.add_argument("after", metavar="B", help="results file of bench")


def run(options: Namespace) -> int:
    """Print a table and a verdict; 1 if anything is worse."""
    files = options.before, options.after
    comparison = compare.compare(results.load(options.before), results.load(options.after), files)
    show.table(compare.view(comparison))
    print(compare.verdict(comparison))
    return comparison.status
