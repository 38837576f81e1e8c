"""scripts/series report

FILES are results of bench.  With --compare: what is better or worse in the second than in the first, beyond the
spread; the exit status is 1 if anything is worse."""

from __future__ import annotations

import click

from .. import report
from ..base import paths
from ..base.errors import Usage
from ..base.progress import say
from ..data import results
from ..report import compare
from . import shared
from .shared import flag, Option

PARAMS = [
    click.Argument(["files"], nargs=-1, required=True),
    Option("--picture", "PNG", "also draw the plot of growth, or of aging or merging", type=shared.Output()),
    Option(
        "--table",
        None,
        "how the table is printed; ascii is for cover letters",
        type=click.Choice(["text", "markdown", "ascii", "none"]),
        default="text",
    ),
    flag("--compare", "compare two files"),
]


def run(options: shared.Options) -> int:
    """Write the page, print the table; with --compare 1 if anything is worse."""
    loaded = [results.load(path) for path in options.files]
    if options.compare:
        if len(loaded) != 2:
            raise Usage(f"--compare needs two FILES, not {len(loaded)}")
        comparison = compare.compare(loaded[0], loaded[1], options.files)
        shared.table(compare.view(comparison))
        print(compare.verdict(comparison))
        return comparison.status
    if options.table == "markdown":
        print(report.markdown_table(loaded), end="")
    elif options.table == "ascii":
        print(report.ascii_table(loaded), end="")
    elif options.table == "text":
        report.print_table(loaded, shared.console())
    commands = [data["made"]["command"] for data in loaded if data["made"]["command"]]
    page = report.write_page(loaded, paths.out("report", "index.html").parent, commands)
    if options.picture:
        report.plot_png(loaded, options.picture)
    say(f"page: {page}")
    return 0
