"""scripts/series apply

DIR is a directory to make, new or empty."""

import click

from ..base.errors import Usage
from ..base.progress import say
from ..source import trees
from . import shared
from .shared import flag, Option

PARAMS = [
    shared.SERIES,
    click.Argument(["dir"], required=False),
    shared.TREE,
    shared.UPTO,
    Option("--milestone", "NAME", "only the patches of this milestone, on those that they need (tag `needed`)"),
    flag("--signoff", "add your Signed-off-by: you certify the DCO"),
    flag("--fetch-only", "fetch the base (cached), make no DIR, and print where the base is"),
]


def run(options: shared.Options) -> None:
    """Print the path of the tree."""
    series = options.series
    if options.fetch_only:
        print(trees.base(series, options.tree).path)
        return
    if not options.dir:
        raise Usage("apply needs DIR, a directory to make, or --fetch-only (see scripts/series apply -h)")
    part = series.milestone(options.milestone) if options.milestone else None
    count = series.upto(options.upto) if options.upto else len(series.patches)
    path = trees.copy(series, options.dir, count, options.tree, signoff=options.signoff, part=part)
    of, branch = f"of {len(series.patches)} patches of {series.name}", f"branch kvm-{series.name}"
    if part:
        needed = f"on {len(part.needed)} that they need"
        say(f"{len(part.patches)} {of} {needed}, {branch}-{part.name}, tags base and needed:")
    else:
        say(f"{count} {of}, {branch}, tag base:")
    print(path)
