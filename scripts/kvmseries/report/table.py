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

from ..data import summary as s
from ..data.shape import Results
from . import layout, migrating, own, scaling, state, verdict

WIDTH = 75  # of an ASCII table: it survives being quoted in mail
NOTHING = "No runs in these results."
PLAIN = str.maketrans({layout.MISSING: "-", layout.TO: "-", "\u00d7": "x", verdict.ARROW: "->"})

# Makes a text one that the output can show.
Clean = Callable[[str], str]


def _ascii(text: str) -> str:
    return text.translate(PLAIN).encode("ascii", "replace").decode("ascii")


def _cell_texts(cells: Sequence[layout.Cell], column: layout.Column, aligned: bool) -> list[str]:
    """The texts of one column; aligned: pad them so that numbers stay below each other."""
    if not column.timed:
        return [cell.text for cell in cells]
    spreads = [f"({cell.spread})" if cell.spread else "" for cell in cells]
    room = max(map(len, spreads))
    if not aligned or not room:
        return [f"{cell.text} {spread}".strip() for cell, spread in zip(cells, spreads)]
    return [f"{cell.text} {spread:<{room}}" for cell, spread in zip(cells, spreads)]


def _grid(sheet: layout.Sheet, aligned: bool = True) -> list[tuple[str, list[list[str]]]]:
    """Lines of text cells of a Sheet: [(vcpus, [[label, cell, ...] for each row])]."""
    rows = [cells for _, block in sheet.blocks for _, cells in block]
    columns = [
        _cell_texts([cells[number] for cells in rows], column, aligned) for number, column in enumerate(sheet.columns)
    ]
    lines = iter(zip(*columns))
    return [(str(vcpus), [[label, *next(lines)] for label, _ in block]) for vcpus, block in sheet.blocks]


def _main_sheets(summary: s.Summary) -> tuple[layout.Sheet, layout.Sheet]:
    locks = layout.marked(layout.lock_sheet(summary), summary)
    if own.of(summary):
        return locks, layout.Sheet([], [])
    return locks, layout.marked(layout.time_sheet(summary, s.MAIN_TIMES), summary)


def _further_sheets(summary: s.Summary) -> list[layout.Sheet]:
    module = own.of(summary)
    if module:
        sheets = [module.sheet(summary)]
        if isinstance(summary, migrating.Family):
            sheets.append(migrating.mechanisms(summary))
    else:
        sheets = [layout.part(sheet, lambda column: bool(column.full)) for sheet in scaling.sheets(summary)]
        sheets += [layout.latency_sheet(summary), layout.time_sheet(summary, s.OTHER_TIMES)]
    return [layout.marked(sheet, summary) for sheet in sheets if sheet]


def _describe(summary: s.Summary) -> list[str]:
    """Two lines: what was run, and how; the only place that names the clock."""
    group = summary.group
    lines = [f"{group.series}, {group.arch}, cpu {group.cpu}: {group.test} {group.args}".rstrip()]
    how = [f"accel {group.accel}", group.clock_name]
    if group.variant:
        how.append(f"config {group.variant}")
    if group.params:
        how.append(f"params {group.params}")
    return lines + [", ".join(how)]


def _judgement(summary: s.Summary) -> tuple[list[str], list[str]]:
    """Lines: the verdict, what does not repeat, which kernels are old."""
    found = verdict.of(summary)
    return [line for line in (found.head, *found.lines()) if line], layout.repeat_notes(summary)


def _texts(sheet: layout.Sheet, clean: Clean) -> tuple[list[str], list[list[str]], list[int]]:
    """(headings, [[text of each cell] for each row], numbers of the rows that end a block) of a Sheet."""
    heads, rows, ends = (
        [sheet.block_head, sheet.row_head] + [column.full or column.name for column in sheet.columns],
        [],
        [],
    )
    for block, lines in _grid(sheet):
        rows += [[clean(cell) for cell in (block if number == 0 else "", *line)] for number, line in enumerate(lines)]
        ends.append(len(rows) - 1)
    return [clean(head) for head in heads], rows, ends


def _rich_table(sheet: layout.Sheet, clean: Clean, lines: box.Box = box.SIMPLE_HEAD) -> Table:
    """The Sheet as a rich Table, as narrow as its cells and the longest words of its headings; lines: a box."""
    framed = lines is not box.SIMPLE_HEAD
    table = Table(box=lines, pad_edge=framed, show_edge=framed)
    heads, rows, ends = _texts(sheet, clean)
    for number, head in enumerate(heads):
        room = max([len(row[number]) for row in rows] + [len(word) for word in head.split()])
        table.add_column(
            Text("\n".join(textwrap.wrap(head, room, break_on_hyphens=False))),
            no_wrap=True,
            justify="left" if number == 1 or (framed and not number) else "right",
            min_width=room,
        )
    for number, row in enumerate(rows):
        table.add_row(
            *map(Text, row),
            style="bold" if row[1].endswith(layout.RATIO) and not framed else "",
            end_section=number in ends,
        )
    return table


_WIDE = Console(width=10000, file=io.StringIO())


def _width(table: Table) -> int:
    return Measurement.get(_WIDE, _WIDE.options, table).maximum


def _fitted(sheet: layout.Sheet, width: int, draw: Callable[[layout.Sheet], Table]) -> list[layout.Sheet]:
    """Sheets that draw() makes into tables of at most `width`: the Sheet itself, or one for each heading, or less; columns
    that share a heading are kept together if possible.  Notes stay with the last."""
    if _width(draw(sheet)) <= width:
        return [sheet]
    found = []
    for one in layout.by_heading(sheet):
        first = 0
        for last in range(1, len(one.columns) + 1):
            if last - first > 1 and _width(draw(_columns(one, first, last))) > width:
                found.append(_columns(one, first, last - 1))
                first = last - 1
        found.append(_columns(one, first, len(one.columns)))
    for one in found:
        one.notes = []
    found[-1].notes = sheet.notes
    return found


def _columns(sheet: layout.Sheet, first: int, last: int) -> layout.Sheet:
    wanted = sheet.columns[first:last]
    return layout.part(sheet, lambda column: any(column is one for one in wanted))


def print_table(results: Sequence[Results], console: Console) -> None:
    """Print for each group the verdict and its tables, in parts where the console is too narrow."""
    clean = str if (console.encoding or "").lower().startswith("utf") else _ascii
    summaries = own.summarise(results)
    if not summaries:
        console.print(NOTHING)
    for summary in summaries:
        what, how = _describe(summary)
        console.print()
        console.print(Text(clean(what), style="bold"))
        console.print(Text(clean(how), style="yellow" if summary.group.emulated else "dim"))
        judged, notes = _judgement(summary)
        for number, line in enumerate(judged):
            console.print(Text(clean(line), style="" if number else "bold"))
        for line in notes:
            console.print(Text(clean(line), style="yellow"))
        locks, times = _main_sheets(summary)
        main = layout.join(locks, times)
        sheets = [main] if main and _width(_rich_table(main, clean)) <= console.width else [locks, times]
        sheets = [
            part
            for sheet in filter(None, [*sheets, *_further_sheets(summary)])
            for part in _fitted(sheet, console.width, lambda one: _rich_table(one, clean))
        ]
        for sheet in sheets:
            console.print()
            console.print(_rich_table(sheet, clean))
            for note in sheet.notes:
                console.print(Text(clean(note), style="dim"))
        if not sheets:
            console.print(Text(clean("No lock counts or times of the main table in these runs.")))
    for line in state.notes(results):
        console.print(Text(clean(line), style="yellow"))


def _markdown(text: str) -> str:
    for character in "\\|*_`<>[]":
        text = text.replace(character, "\\" + character)
    return text


def _markdown_sheet(sheet: layout.Sheet) -> str:
    heads = [sheet.block_head, sheet.row_head] + [column.full or column.name for column in sheet.columns]
    lines = [heads, ["--:", ":--"] + ["--:"] * len(sheet.columns)]
    for block, rows in _grid(sheet, aligned=False):
        for number, row in enumerate(rows):
            lines.append([block if number == 0 else ""] + row)
    lines = [line if number == 1 else [_markdown(cell) for cell in line] for number, line in enumerate(lines)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown_table(results: Sequence[Results]) -> str:
    """The tables as Markdown; for each group a heading line, the verdict, tables and notes."""
    parts = []
    for summary in own.summarise(results):
        title, how = _describe(summary)
        parts.append(f"**{_markdown(title)}** ({_markdown(how)})")
        judged, notes = _judgement(summary)
        parts += [_markdown(line) for line in (*judged, *notes)]
        for sheet in filter(None, [layout.join(*_main_sheets(summary)), *_further_sheets(summary)]):
            parts.append(_markdown_sheet(sheet))
            parts += [_markdown(note) for note in sheet.notes]
    parts += [_markdown(line) for line in state.notes(results)]
    return "\n\n".join(parts or [NOTHING]) + "\n"


def _ascii_table(sheet: layout.Sheet) -> Table:
    """The Sheet as a rich Table of ASCII characters."""
    return _rich_table(
        layout.Sheet(
            sheet.columns,
            sheet.blocks,
            sheet.row_head,
            block_head=f"#{sheet.block_head}" if sheet.block_head != "vCPUs" else "#vCPU",
        ),
        _ascii,
        box.ASCII,
    )


def ascii_table(results: Sequence[Results]) -> str:
    """The tables in the style of kvmarm's cover letters: counts, then times."""
    file = io.StringIO()
    console = Console(file=file, width=WIDTH, color_system=None, legacy_windows=False)

    def wrapped(text: str) -> None:
        for line in textwrap.wrap(_ascii(text), WIDTH):
            print(line, file=file)

    for summary in own.summarise(results):
        judged, notes = _judgement(summary)
        for text in (*_describe(summary), *judged, *notes):
            wrapped(text)
        for sheet in filter(None, [*_main_sheets(summary), *_further_sheets(summary)]):
            print(file=file)
            for note in sheet.notes:
                wrapped(note)
            for part in _fitted(sheet, WIDTH, _ascii_table):
                console.print(_ascii_table(part))
        print(file=file)
    for line in state.notes(results):
        wrapped(line)
    return (file.getvalue() or f"{NOTHING}\n").rstrip("\n") + "\n"
