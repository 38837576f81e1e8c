"""The tables as text: for the terminal, as Markdown, and as ASCII for mail."""

from __future__ import annotations

import io
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

WIDTH = 75  # of an ASCII table: it survives being quoted in mail
NOTHING = "No runs in these results."
PLAIN = str.maketrans({layout.MISSING: "-", layout.TO: "-", "\u00d7": "x", verdict.ARROW: "->"})

# Makes a text one that the output can show.
Clean = Callable[[str], str]


def _ascii(text: str) -> str:
    return text.translate(PLAIN).encode("ascii", "replace").decode("ascii")


def sheets(summary: s.Summary) -> list[layout.Sheet]:
    """The tables of a group."""
    return [sheet for sheet in (*scaling.sheets(summary), layout.main_sheet(summary)) if sheet]


def describe(summary: s.Summary) -> list[str]:
    """Two lines: what was run, and how; the only place that names the clock."""
    group = summary.group
    lines = [f"{group.series}, {group.arch}, cpu {group.cpu}: {group.test} {group.args}".rstrip()]
    how = [f"accel {group.accel}", group.clock_name]
    how += [f"config {group.variant}"] if group.variant else []
    how += [f"params {group.params}"] if group.params else []
    return lines + [", ".join(how)]


def _judgement(summary: s.Summary) -> list[str]:
    found = verdict.of(summary)
    return [line for line in (found.head, *found.lines()) if line]


def _cells(sheet: layout.Sheet, aligned: bool = True) -> list[list[str]]:
    """[block, label, cell, ...] of each row; aligned: spreads are padded so that numbers stay below each other."""
    rows = [cells for _, block in sheet.blocks for _, cells in block]
    columns = []
    for number in range(len(sheet.columns)):
        cells = [row[number] for row in rows]
        spreads = [f"({cell.spread})" if cell.spread else "" for cell in cells]
        room = max(map(len, spreads)) if aligned else 0
        columns.append(
            [
                f"{cell.text} {spread:<{room}}" if room else f"{cell.text} {spread}".strip()
                for cell, spread in zip(cells, spreads)
            ]
        )
    lines = iter(zip(*columns))
    return [
        [str(of) if number == 0 else "", label, *next(lines)]
        for of, block in sheet.blocks
        for number, (label, _) in enumerate(block)
    ]


def _rich_table(sheet: layout.Sheet, clean: Clean, lines: box.Box = box.SIMPLE_HEAD) -> Table:
    """The Sheet as a rich Table, as narrow as its cells and the longest words of its headings; lines: a box."""
    framed = lines is not box.SIMPLE_HEAD
    heads = list(dict.fromkeys(column.head for column in sheet.columns))
    title = Text(clean(heads[0])) if len(heads) == 1 and heads[0] != benchmarks.PLAIN else None
    table = Table(box=lines, pad_edge=framed, show_edge=framed, title=title, title_justify="left")
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
        ratio = row[1].endswith(layout.RATIO) and not framed
        table.add_row(*map(Text, row), style="bold" if ratio else "", end_section=bool(later[0]) or later == [""])
    return table


_WIDE = Console(width=10000, file=io.StringIO())


def _fitted(sheet: layout.Sheet, width: int, draw: Callable[[layout.Sheet], Table]) -> list[layout.Sheet]:
    """Sheets that draw() makes into tables of at most `width`: the Sheet itself, or one for each heading, or less.  Notes stay
    with the last."""

    def fits(one: layout.Sheet) -> bool:
        return Measurement.get(_WIDE, _WIDE.options, draw(one)).maximum <= width

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
        what, how = describe(summary)
        console.print()
        say(what, "bold")
        say(how, "yellow" if summary.group.emulated else "dim")
        for number, line in enumerate(_judgement(summary)):
            say(line, "" if number else "bold")
        found = sheets(summary)
        for sheet in found:
            for part in _fitted(sheet, console.width, lambda one: _rich_table(one, clean)):
                console.print()
                console.print(_rich_table(part, clean))
                for note in part.notes:
                    say(note, "dim")
        if not found:
            say("Nothing of these runs is in a table.")
        for line in layout.notes(results, summary):
            say(line, "yellow")


def _markdown(text: str) -> str:
    for character in "\\|*_`<>[]":
        text = text.replace(character, "\\" + character)
    return text


def _markdown_sheet(sheet: layout.Sheet) -> str:
    heads = [sheet.block_head, "kernel", *sheet.names]
    lines = [[_markdown(cell) for cell in row] for row in [heads, *_cells(sheet, aligned=False)]]
    lines.insert(1, ["--:", ":--", *["--:"] * len(sheet.columns)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown_table(results: Sequence[Results]) -> str:
    """The tables as Markdown; for each group a heading line, the verdict, tables and notes."""
    parts = []
    for summary in s.summarise(results):
        title, how = describe(summary)
        parts.append(f"**{_markdown(title)}** ({_markdown(how)})")
        parts += map(_markdown, _judgement(summary))
        for sheet in sheets(summary):
            parts += [_markdown_sheet(sheet), *map(_markdown, sheet.notes)]
        parts += map(_markdown, layout.notes(results, summary))
    return "\n\n".join(parts or [NOTHING]) + "\n"


def ascii_table(results: Sequence[Results]) -> str:
    """The tables in the style of kvmarm's cover letters, at most WIDTH columns wide."""
    file = io.StringIO()
    console = Console(file=file, width=WIDTH, color_system=None, legacy_windows=False)

    def draw(sheet: layout.Sheet) -> Table:
        return _rich_table(sheet, _ascii, box.ASCII)

    for summary in s.summarise(results):
        for text in (*describe(summary), *_judgement(summary)):
            print("\n".join(textwrap.wrap(_ascii(text), WIDTH)), file=file)
        for sheet in sheets(summary):
            print(file=file)
            for part in _fitted(sheet, WIDTH, draw):
                console.print(draw(part))
            for note in sheet.notes:
                print("\n".join(textwrap.wrap(_ascii(note), WIDTH)), file=file)
        for text in layout.notes(results, summary):
            print("\n".join(textwrap.wrap(_ascii(text), WIDTH)), file=file)
        print(file=file)
    return (file.getvalue() or f"{NOTHING}\n").rstrip("\n") + "\n"
