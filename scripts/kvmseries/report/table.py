"""The main table as text: for the terminal (rich), as Markdown, and as ASCII for mail."""

import textwrap

from rich import box
from rich.table import Table
from rich.text import Text

from ..data import summary as s
from . import aging, layout, own, scaling, state

WIDTH = 75      # of an ASCII table: it survives being quoted in mail
NOTHING = "No runs in these results."
PLAIN = str.maketrans({layout.MISSING: "-", layout.TO: "-", "\u00d7": "x"})


def _ascii(text):
    return text.translate(PLAIN).encode("ascii", "replace").decode("ascii")


def _cell_texts(cells, column, aligned):
    """The texts of one column; aligned: pad them so that numbers stay below each other."""
    if not column.timed:
        return [cell.text for cell in cells]
    spreads = [f"({cell.spread})" if cell.spread else "" for cell in cells]
    room = max(map(len, spreads))
    if not aligned or not room:
        return [f"{cell.text} {spread}".strip() for cell, spread in zip(cells, spreads)]
    return [f"{cell.text} {spread:<{room}}" for cell, spread in zip(cells, spreads)]


def _grid(sheet, aligned=True):
    """Lines of text cells of a Sheet: [(vcpus, [[label, cell, ...] for each row])]."""
    rows = [cells for _, block in sheet.blocks for _, cells in block]
    columns = [_cell_texts([cells[number] for cells in rows], column, aligned)
               for number, column in enumerate(sheet.columns)]
    lines = iter(zip(*columns))
    return [(str(vcpus), [[label, *next(lines)] for label, _ in block])
            for vcpus, block in sheet.blocks]


def _main_sheets(summary):
    if own.of(summary):
        return layout.lock_sheet(summary), layout.Sheet([], [])
    return layout.lock_sheet(summary), layout.time_sheet(summary, s.MAIN_TIMES)


def _further_sheets(summary):
    if own.of(summary):
        return list(filter(None, [own.of(summary).sheet(summary)]))
    sheets = [layout.part(sheet, lambda column: column.full) for sheet in scaling.sheets(summary)]
    return sheets + list(filter(None, [layout.latency_sheet(summary)]))


def _describe(summary):
    """Two lines: what was run, and how."""
    group = summary.group
    lines = [f"{group.series}, {group.arch}, cpu {group.cpu}: {group.test} {group.args}".rstrip()]
    how = [f"accel {group.accel}", group.clock_name]
    if group.variant:
        how.append(f"config {group.variant}")
    if group.params:
        how.append(f"params {group.params}")
    return lines + [", ".join(how)]


def _rich_table(sheet, clean):
    """(a rich Table of the Sheet, its width in columns)."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid = _grid(sheet)
    widths = []
    heads = ["vCPUs", sheet.row_head] + [column.full for column in sheet.columns]
    for number, head in enumerate(heads):
        if number == 0:
            cells = [vcpus for vcpus, _ in grid]
        else:
            cells = [row[number - 1] for _, rows in grid for row in rows]
        room = max([len(cell) for cell in cells] + [len(word) for word in head.split()])
        widths.append(room)
        table.add_column(Text(clean("\n".join(_wrap(head, room)))), no_wrap=True,
                         justify="left" if number == 1 else "right", min_width=room)
    for vcpus, rows in grid:
        for number, row in enumerate(rows):
            last = number == len(rows) - 1
            is_ratio = row[0].endswith(layout.RATIO)
            table.add_row(Text(vcpus if number == 0 else ""), *(Text(clean(cell)) for cell in row),
                          style="bold" if is_ratio else "", end_section=last)
    return table, sum(widths) + 3 * len(widths)


def print_table(results, console):
    """Print the main table of each group; as two tables where the console is too narrow."""
    clean = str if (console.encoding or "").lower().startswith("utf") else _ascii
    summaries = aging.summarise(results)
    if not summaries:
        console.print(NOTHING)
    for summary in summaries:
        lines = _describe(summary)
        console.print()
        console.print(Text(clean(lines[0]), style="bold"))
        console.print(Text(clean(lines[1]), style="dim"))
        locks, times = _main_sheets(summary)
        sheets = [layout.join(locks, times)]
        if _rich_table(sheets[0], clean)[1] > console.width:
            sheets = [locks, times]
        for sheet in _further_sheets(summary):
            fits = _rich_table(sheet, clean)[1] <= console.width
            sheets += [sheet] if fits else layout.by_heading(sheet)
        for sheet in filter(None, sheets):
            console.print()
            console.print(_rich_table(sheet, clean)[0])
            for note in sheet.notes:
                loud = summary.group.emulated and s.EMULATED in note
                console.print(Text(clean(note), style="yellow" if loud else "dim"))
        for line in layout.repeat_notes(summary):
            console.print(Text(clean(line), style="yellow"))
        if not any(sheets):
            console.print(Text(clean("No lock counts or times of the main table in these runs.")))
    for line in state.notes(results):
        console.print(Text(clean(line), style="yellow"))


def _markdown(text):
    for character in "\\|*_`<>[]":
        text = text.replace(character, "\\" + character)
    return text


def _markdown_sheet(sheet):
    heads = ["vCPUs", sheet.row_head] + [column.full for column in sheet.columns]
    lines = [heads, ["--:", ":--"] + ["--:"] * len(sheet.columns)]
    for vcpus, rows in _grid(sheet, aligned=False):
        for number, row in enumerate(rows):
            lines.append([vcpus if number == 0 else ""] + row)
    lines = [line if number == 1 else [_markdown(cell) for cell in line]
             for number, line in enumerate(lines)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown_table(results):
    """The main tables as Markdown, a heading line, a table and notes for each group."""
    parts = []
    for summary in aging.summarise(results):
        title, how = _describe(summary)
        parts.append(f"**{_markdown(title)}** ({_markdown(how)})")
        for sheet in filter(None, [layout.join(*_main_sheets(summary)),
                                   *_further_sheets(summary)]):
            parts.append(_markdown_sheet(sheet))
            parts += [_markdown(note) for note in sheet.notes]
        parts += [_markdown(line) for line in layout.repeat_notes(summary)]
    parts += [_markdown(line) for line in state.notes(results)]
    return "\n\n".join(parts or [NOTHING]) + "\n"


def _ascii_columns(sheet):
    """[(heading, [cell of each row])] without vCPU counts, and how many rows each block has."""
    grid = _grid(sheet)
    heads = [sheet.row_head] + [column.full for column in sheet.columns]
    columns = [(head, [_ascii(row[number]) for _, rows in grid for row in rows])
               for number, head in enumerate(heads)]
    return [("#vCPU", [vcpus if number == 0 else "" for vcpus, rows in grid
                       for number in range(len(rows))])] + columns, [len(rows) for _, rows in grid]


def _wrap(head, room):
    return textwrap.wrap(head, room, break_on_hyphens=False)


def _room(column):
    head, cells = column
    return max(len(text) for text in head.split() + cells)


def _draw(columns, blocks):
    """The +----+ table of columns, a rule below each block of rows; returns its lines."""
    rooms = [_room(column) for column in columns]
    sides = ["<", "<"] + [">"] * (len(columns) - 2)
    rule = "+" + "+".join("-" * (room + 2) for room in rooms) + "+"

    def line(cells):
        return "|" + "|".join(f" {cell:{side}{room}} " for cell, side, room
                              in zip(cells, sides, rooms)) + "|"

    heads = [_wrap(head, room) for (head, _), room in zip(columns, rooms)]
    lines = [rule]
    for number in range(max(len(head) for head in heads)):
        lines.append(line([head[number] if number < len(head) else "" for head in heads]))
    lines.append(rule)
    row = 0
    for block in blocks:
        for row in range(row, row + block):
            lines.append(line([cells[row] for _, cells in columns]))
        row += 1
        lines.append(rule)
    return lines


def _fit(columns, heads):
    """Split columns into tables of at most WIDTH, each led by the first two columns.

    heads: what each other column belongs to; columns that share it are kept together if possible.
    """
    keys, groups = columns[:2], {}
    for column, head in zip(columns[2:], heads):
        groups.setdefault(head, []).append(column)
    whole = list(groups.values())
    parts = [sum(whole, [])] if _width(keys + sum(whole, [])) <= WIDTH else whole
    tables = []
    for part in parts:
        tables.append([])
        for column in part:
            if tables[-1] and _width(keys + tables[-1] + [column]) > WIDTH:
                tables.append([])
            tables[-1].append(column)
    return [keys + table for table in tables]


def _width(columns):
    return 1 + sum(_room(column) + 3 for column in columns)


def ascii_table(results):
    """The main tables in the style of kvmarm's cover letters: counts, then times."""
    lines = []
    for summary in aging.summarise(results):
        for text in _describe(summary):
            lines += textwrap.wrap(_ascii(text), WIDTH)
        for sheet in filter(None, [*_main_sheets(summary), *_further_sheets(summary)]):
            lines.append("")
            for note in sheet.notes:
                lines += textwrap.wrap(_ascii(note), WIDTH)
            columns, blocks = _ascii_columns(sheet)
            for table in _fit(columns, [column.head for column in sheet.columns]):
                lines += _draw(table, blocks)
        for line in layout.repeat_notes(summary):
            lines += textwrap.wrap(_ascii(line), WIDTH)
        lines.append("")
    for line in state.notes(results):
        lines += textwrap.wrap(_ascii(line), WIDTH)
    return "\n".join(lines or [NOTHING, ""]).rstrip("\n") + "\n"
