"""scripts/series apply"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..base.errors import Usage
from ..base.progress import say
from ..source import letters, trees
from . import options as shared

HELP = "make a git tree: a tag for the base, one commit for each patch"
SERIES = True


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Where, on which base, how much of the series."""
    parser.add_argument("dir", metavar="DIR", help="directory to make; new or empty")
    shared.tree(parser)
    shared.version(parser)
    parser.add_argument("--upto", metavar="N", help="only the first N patches, or those up to the milestone N")
    parser.add_argument(
        "--milestone",
        metavar="NAME",
        help="the patches of this milestone on a branch of their own, on "
        "the patches that they need; the tag `needed` is between them",
    )
    parser.add_argument(
        "--b4",
        action="store_true",
        help="make the branch one that b4 tracks (b4 prep, b4 send), with "
        "the cover letter of the series or the milestone",
    )
    parser.add_argument("--signoff", action="store_true", help="add your Signed-off-by: you certify the DCO")


def run(options: Namespace) -> None:
    """Print the path of the tree."""
    series = options.series
    if options.upto is not None and (options.milestone is not None or options.b4):
        raise Usage("--upto excludes --milestone and --b4: a cover letter is for a milestone or for the whole series")
    part = series.milestone(options.milestone) if options.milestone is not None else None
    letter = letters.text(series, options.milestone) if options.b4 else None
    count = len(series.patches) if options.upto is None else series.upto(options.upto)
    path = trees.copy(series, options.dir, count, options.tree, options.version, options.signoff, part, letter)
    if part:
        say(
            f"{len(part.patches)} of {len(series.patches)} patches of {series.name} on {len(part.needed)} that they need, "
            f"branch kvm-{series.name}-{part.name}, tags base and needed:"
        )
    else:
        say(f"{count} of {len(series.patches)} patches of {series.name}, branch kvm-{series.name}, tag base:")
    if letter and not options.tree:
        say("its base-commit is a commit of this tree alone: give --tree with a tree that others have before you send")
    print(path)
