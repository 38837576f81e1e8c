"""scripts/series report"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .. import report
from ..base import paths
from ..base.progress import say
from ..data import results
from . import show

HELP = "print tables of results and write out/report/index.html"
SERIES = False


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Of which files, in which form."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="results files of bench")
    parser.add_argument(
        "--picture", metavar="PNG", help="also draw the plot of growth; for results of aging or merging only, theirs"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    form.add_argument("--ascii", action="store_true", help="print the table in ASCII, for a cover letter")
    form.add_argument("--quiet", action="store_true", help="write the page, print no table")


def run(options: Namespace) -> None:
    """Write the page, print the table."""
    if options.picture:
        show.check_writable(Path(options.picture), "--picture")
    loaded = [results.load(path) for path in options.files]
    commands = [data["made"]["command"] for data in loaded if data["made"]["command"]]
    if options.markdown:
        print(report.markdown_table(loaded), end="")
    elif options.ascii:
        print(report.ascii_table(loaded), end="")
    elif not options.quiet:
        report.print_table(loaded, show.console())
    page = report.write_page(loaded, paths.out("report", "index.html").parent, commands)
    if options.picture:
        report.plot_png(loaded, Path(options.picture))
    say(f"page: {page}")
