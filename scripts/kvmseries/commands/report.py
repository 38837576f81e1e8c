"""scripts/series report

FILES are results of bench.  --texts makes README, letters and other texts that quote results from Documentation/texts
instead."""

import click

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import results
from . import shared
from .shared import flag, Option

PARAMS = [
    click.Argument(["files"], nargs=-1),
    Option("--picture", "PNG", "also draw the plot of growth, or of aging or merging", type=shared.Output()),
    Option("--table", None, "print the tables, or none", type=click.Choice(["text", "none"]), default="text"),
    flag("--texts", "make the texts that quote results"),
    flag("--check", "with --texts: change nothing, and fail if a text would change"),
    flag("--old", "with --texts: print the commands that measure again what is old, or of too few rounds"),
]


def run(options: shared.Options) -> None:
    """Write the page, print the table."""
    if options.texts:
        _texts(options)
        return
    if not options.files:
        raise Usage("say which results files, or --texts")
    loaded = [results.load(path) for path in options.files]
    # Here: --texts takes no matplotlib.
    from ..report import page, plots, table

    if options.table == "text":
        table.print_table(loaded, shared.console())
    commands = [data["made"]["command"] for data in loaded if data["made"]["command"]]
    where = page.write_page(loaded, paths.out("report", "index.html").parent, commands)
    if options.picture:
        plots.plot_png(loaded, options.picture)
    say(f"page: {where}")


def _texts(options: shared.Options) -> None:
    """Make the texts; raise Fail if one is not right."""
    from ..figures import query, texts

    data = texts.load()
    files = query.Files(data["results"])
    made = [texts.make(files, name) for name in texts.names()]
    if options.old:
        print("\n".join(texts.old(data, files, made)))
        return
    if not options.check:
        for text in made:
            if text.write():
                say(f"{text.where} is new: read what has changed")
                text.there = text.made
    problems = [line for text in made for line in texts.problems(data, files, text)]
    if problems:
        print("\n".join(problems))
        raise Fail(f"{len(problems)} things are not right in texts that quote results, the first: {problems[0]}")
