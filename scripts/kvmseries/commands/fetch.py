"""scripts/series fetch"""

from ..source import trees
from . import options as shared

HELP = "fetch the base tree (cached) and print its path"
SERIES = True


def add_arguments(parser, _project):
    """Which base."""
    shared.tree(parser)
    shared.version(parser)


def run(options):
    """Print the path of the base."""
    print(trees.base(options.series, options.tree, options.version).path)
