"""The tables as text, for the terminal."""

import textwrap
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..data import benchmarks, summary as s
from ..data.shape import Results
from . import layout, scaling, verdict

NOTHING = "No runs in these results."
PLAIN = str.maketrans({layout.MISSING: "-", layout.TO: "-", "\u00d7": "x", verdict.ARROW: "->"})

# Makes a text one that the output can show.
Clean = Callable[[str], str]


def _ascii(text: str) -> str:
    return text.translate(PLAIN).encode("ascii", "replace").decode("ascii")


def sheets(summary: s.Summary) -> list[layout.Sheet]:
    """The tables of a group."""
    growths = [scaling.sheet(summary, metric) for metric in scaling.growing(summary)]
    return [sheet for sheet in (*growths, layout.main_sheet(summary)) if sheet]


def _judgement(summary: s.Summary) -> list[str]:
    found = verdict.of(summary)
    return [line for line in (found.head, *found.lines()) if line]


def _cells(sheet: layout.Sheet) -> list[list[str]]:
    """[block, label, cell, ...] of each row; spreads are padded so that numbers stay below each other."""
    rows = [cells for _, block in sheet.blocks for _, cells in block]
    spreads = [[f"({cell.spread})" if cell.spread else "" for cell in cells] for cells in rows]
    rooms = [max(map(len, column)) for column in zip(*spreads)]
    texts = (
        [f"{cell.text} {spread:<{room}}" if room else cell.text for cell, spread, room in zip(cells, row, rooms)]
        for cells, row in zip(rows, spreads)
    )
    return [
        ["" if number else str(of), label, *next(texts)]
        for of, block in sheet.blocks
        for number, (label, _) in enumerate(block)
    ]


def _rich_table(sheet: layout.Sheet, clean: Clean) -> Table:
    """The Sheet as a rich Table, as narrow as its cells and the longest words of its headings."""
    heads = list(dict.fromkeys(column.head for column in sheet.columns))
    title = Text(clean(heads[0])) if len(heads) == 1 and heads[0] != benchmarks.PLAIN else None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, title=title, title_justify="left")
    rows = [[clean(cell) for cell in row] for row in _cells(sheet)]
    for number, head in enumerate([sheet.block_head, "kernel", *map(clean, sheet.names)]):
        room = max([len(row[number]) for row in rows] + [len(word) for word in head.split()])
        table.add_column(
            Text("\n".join(textwrap.wrap(head, room, break_on_hyphens=False))),
            no_wrap=True,
            justify="left" if number == 1 else "right",
            min_width=room,
        )
    for row, later in zip(rows, [*rows[1:], [""]]):
        ratio = row[1].endswith(layout.RATIO)
        table.add_row(*map(Text, row), style="bold" if ratio else "", end_section=bool(later[0]) or later == [""])
    return table


def _fitted(sheet: layout.Sheet, console: Console, clean: Clean) -> list[layout.Sheet]:
    """Sheets that fit the console as tables: the Sheet itself, or one for each heading, or less.  Notes stay with the last."""

    def fits(one: layout.Sheet) -> bool:
        options = console.options.update(width=10000)
        return Measurement.get(console, options, _rich_table(one, clean)).maximum <= console.width

    if fits(sheet):
        return [sheet]
    found = []
    for one in sheet.by_heading():
        first = 0
        for last in range(2, len(one.columns) + 1):
            if not fits(one.part(first, last)) and last - first > 1:
                found.append(one.part(first, last - 1))
                first = last - 1
        found.append(one.part(first, len(one.columns)))
    found[-1].notes = sheet.notes
    return found


def print_table(results: Sequence[Results], console: Console) -> None:
    """Print for each group the verdict and its tables, in parts where the console is too narrow."""
    clean = str if (console.encoding or "").lower().startswith("utf") else _ascii
    summaries = s.summarise(results)
    if not summaries:
        console.print(NOTHING)

    def say(text: str, style: str = "") -> None:
        console.print(Text(clean(text), style=style))

    for summary in summaries:
        what, how = layout.describe(summary.group)
        console.print()
        say(what, "bold")
        say(how, "yellow" if summary.group.emulated else "dim")
        for number, line in enumerate(_judgement(summary)):
            say(line, "" if number else "bold")
        found = sheets(summary)
        for sheet in found:
            for part in _fitted(sheet, console, clean):
                console.print()
                console.print(_rich_table(part, clean))
                for note in part.notes:
                    say(note, "dim")
        if not found:
            say("Nothing of these runs is in a table.")
        for line in layout.notes(results, summary):
            say(line, "yellow")
