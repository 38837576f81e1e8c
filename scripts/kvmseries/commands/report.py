"""scripts/series report"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from .. import report
from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import results
from . import show

HELP = "print tables of results and write out/report/index.html, or make the texts that quote results"
SERIES = False


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Of which files, in which form."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="results files of bench")
    parser.add_argument(
        "--texts",
        action="store_true",
        help="instead of a report, make README, letters and other texts from Documentation/texts and the results",
    )
    parser.add_argument(
        "--check", action="store_true", help="with --texts: change nothing, and fail if one would change"
    )
    parser.add_argument(
        "--old",
        action="store_true",
        help="with --texts: print the commands that measure again what is old, or of too few rounds",
    )
    parser.add_argument(
        "--picture", metavar="PNG", help="also draw the plot of growth; for results of aging or merging only, theirs"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    form.add_argument("--ascii", action="store_true", help="print the table in ASCII, for a cover letter")
    form.add_argument("--quiet", action="store_true", help="write the page, print no table")


def run(options: Namespace) -> None:
    """Write the page, print the table."""
    if options.texts:
        _texts(options)
        return
    if not options.files:
        raise Usage("say which results files, or --texts")
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


def _texts(options: Namespace) -> None:
    """Make the texts; raise Fail if one is not right."""
    from ..figures import query, texts

    data = texts.load()
    files = query.Files(data["results"])
    made = [texts.make(files, name) for name in texts.names()]
    if options.old:
        show.lines(texts.old(data, files, made))
        return
    if not options.check:
        for text in made:
            if text.write():
                say(f"{text.where} is new: read what has changed")
                text.there = text.made
    problems = [line for text in made for line in texts.problems(data, files, text)]
    if problems:
        show.lines(problems)
        raise Fail(f"{len(problems)} things are not right in texts that quote results, the first: {problems[0]}")
