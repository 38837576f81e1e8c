"""scripts/series apply"""

from ..base.progress import say
from ..source import trees
from . import options as shared

HELP = "make a git tree: a tag for the base, one commit for each patch"
SERIES = True


def add_arguments(parser, _project):
    """Where, on which base, how much of the series."""
    parser.add_argument("dir", metavar="DIR", help="directory to make; new or empty")
    shared.tree(parser)
    shared.version(parser)
    parser.add_argument("--upto", metavar="N", help="only the first N patches, or those up to the milestone N")
    parser.add_argument("--signoff", action="store_true", help="add your Signed-off-by: you certify the DCO")


def run(options):
    """Print the path of the tree."""
    series = options.series
    count = len(series.patches) if options.upto is None else series.upto(options.upto)
    path = trees.copy(series, options.dir, count, options.tree, options.version, options.signoff)
    say(f"{count} of {len(series.patches)} patches of {series.name}, branch kvm-{series.name}, tag base:")
    print(path)
