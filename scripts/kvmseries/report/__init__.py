"""Reports on loaded results files: terminal, cover letter, README and HTML page.

Every function takes `results`, a list of what kvmseries.results.load() returns.  Shapes that the
loader lets through never make them crash: what was not measured is an em dash.  They raise
kvmseries.errors.Fail, and only when a file cannot be written.

    results, bench.yaml -> summary (medians, spreads, ratios) -> layout, scaling (tables of text cells), verdict
            -> table (terminal, markdown, ASCII), plots (SVG, PNG), page (HTML; style, templates/)

rich and matplotlib are imported when first used, so importing this package is cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..data.shape import Results


def write_page(results: Sequence[Results], out: str | Path, commands: Sequence[str]) -> Path:
    """Write the self-contained page to the folder `out`, atomically.

    commands: the shell commands that reproduce the results, one string each.
    Returns the Path of index.html.
    """
    from .page import write_page as write

    return write(results, out, commands)


def print_table(results: Sequence[Results], console: Console) -> None:
    """Print the main table of each group of runs to `console` (a rich.console.Console)."""
    from .table import print_table as write

    write(results, console)


def markdown_table(results: Sequence[Results]) -> str:
    """The main tables as Markdown, for README.md; ends with a newline."""
    from .table import markdown_table as make

    return make(results)


def ascii_table(results: Sequence[Results]) -> str:
    """The main tables in ASCII, at most 75 columns wide, for a cover letter; ends in a newline."""
    from .table import ascii_table as make

    return make(results)


def plot_png(results: Sequence[Results], out: str | Path) -> None:
    """Write a picture of the results, a PNG 1200 pixels wide, to the file `out`, atomically."""
    from .plots import plot_png as write

    write(results, out)
