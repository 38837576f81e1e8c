"""scripts/series export"""

from ..base.progress import say
from ..source import export

HELP = "write patches/ from the commits of a git tree"
SERIES = True


def add_arguments(parser, _project):
    """Which tree."""
    parser.add_argument("dir", nargs="?", metavar="DIR", help="a tree that apply has made (default: the tool's own)")


def run(options):
    """Write the patches."""
    count = export.export(options.series, options.dir)
    say(f"{count} patches in {options.series.path}")
