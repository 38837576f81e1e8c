"""Figures in texts: where figures.yaml says that they stand, what stands there, and writing what should.

An entry of a text is one of
    {text: "takes {a} to {b} of the time of base", a: FIGURE, b: FIGURE}    anywhere, once; lines may break
    {table: "| vCPUs | base, ns |", rows: [...], columns: [...]}            a line that begins so, rows below it
    {table: "| series |", ignore: "why"}                                   no figures
with, in a table, FIGURE = the table's `all`, a row's and a column's keys put together; Documentation/figures.yaml
says the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..base.errors import Fail

NUMBER = r"[-+]?(?:\d[\d,]*\d|\d)(?:\.\d+)?"
_VALUE = rf"{NUMBER}(?:\s+to\s+{NUMBER})?"

# What figures.yaml says of a place.
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a figure stands: begin and end in the text, what stands there, the figure, and words that name it."""

    begin: int
    end: int
    there: str
    figure: dict[str, Any]
    what: str
    column: bool = False  # of a table aligned by spaces


def places(text: str, entries: Iterable[Entry], where: str) -> list[Place]:
    """The Places of all figures of `entries` in a text; Fail for an entry that is not found.  where: the file."""
    found = []
    for entry in entries:
        if "text" in entry:
            found += _inwords(text, entry, where)
        elif "ignore" not in entry:
            found += _in_table(text, entry, where)
        else:
            _table_at(text, entry["table"], where)
    return found


def words(literal: str, blank: str = r"\s+") -> str:
    """A regular expression for `literal`, whose blanks may be line breaks."""
    parts = re.split(r"(\s+)", literal)
    return "".join(blank if part.isspace() else re.escape(part) for part in parts)


def _inwords(text: str, entry: Entry, where: str) -> list[Place]:
    parts = re.split(r"\{(\w+)\}", entry["text"])
    pattern = "".join(words(part) if number % 2 == 0 else f"(?P<{part}>{_VALUE})" for number, part in enumerate(parts))
    # A number that is longer at its end is another one.
    found = list(re.finditer(rf"{pattern}(?!\d|[.,]\d)", text)) if parts[-1] == "" else list(re.finditer(pattern, text))
    if len(found) != 1:
        raise Fail(f"{where}: '{entry['text']}' stands there {len(found)} times, not once")
    for name in parts[1::2]:
        if name not in entry:
            raise Fail(f"{where}: '{entry['text']}' does not say what {{{name}}} is")
    return [
        Place(
            *found[0].span(name),
            " ".join(found[0][name].split()),
            {**entry.get("all", {}), **entry[name]},
            entry["text"],
        )
        for name in parts[1::2]
    ]


def _table_at(text: str, head: str, where: str) -> tuple[int, int]:
    """Where the lines below the line that begins with `head` begin and end.  Words of `head` may be the next
    line's, where tables have the same first line."""
    found = list(re.finditer("^ *" + words(head, r"[ \n]+"), text, re.M))
    if len(found) != 1:
        raise Fail(f"{where}: the table '{head}' is there {len(found)} times, not once")
    begin = text.index("\n", found[0].start()) + 1
    end = next(re.compile(r"^\s*$|^---$|\Z", re.M).finditer(text, begin)).start()
    return begin, end


def _in_table(text: str, entry: Entry, where: str) -> list[Place]:
    begin, end = _table_at(text, entry["table"], where)
    lines = []
    for match in re.finditer(r"^.*\S.*$", text[begin:end], re.M):
        if not re.fullmatch(r"[|\s:-]+", match[0]):
            lines.append((begin + match.start(), match[0]))
    rows = entry["rows"]
    if len(lines) != len(rows):
        raise Fail(f"{where}: the table '{entry['table']}' has {len(lines)} rows, its entry {len(rows)}")
    found = []
    for (offset, line), row in zip(lines, rows):
        if row is not None:
            found += _in_row(offset, line, row, entry, where)
    return found


def _in_row(offset: int, line: str, row: dict[str, Any], entry: Entry, where: str) -> list[Place]:
    columns = row.get("columns", entry.get("columns"))
    if columns is None:
        raise Fail(
            f"{where}: the table '{entry['table']}' has no columns in its entry, and its row '{line.strip()}' neither"
        )
    common = _merged(entry.get("all", {}), {key: value for key, value in row.items() if key != "columns"})
    aligned = not line.lstrip().startswith("|")
    # The cells that figures are for: the last ones.
    if aligned:
        cells = [(match.start(), match[0]) for match in re.finditer(r"\S+(?: \S+)*", line)][-len(columns) :]
    else:
        cells = [(match.start(1), match[1]) for match in re.finditer(r"\|([^|\n]*)(?=\|)", line)][-len(columns) :]
    what = " ".join(line.split()) if aligned else line
    if len(cells) != len(columns):
        raise Fail(f"{where}: '{what}' has {len(cells)} cells, its entry {len(columns)}")
    found = []
    for (begin, cell), column in zip(cells, columns):
        figures = [] if column is None else column if isinstance(column, list) else [column]
        numbers = list(re.finditer(_VALUE if any(_range(figure, common) for figure in figures) else NUMBER, cell))
        if len(numbers) != len(figures):
            raise Fail(
                f"{where}: the cell '{cell.strip()}' of '{what}' has {len(numbers)} figures, its entry {len(figures)}"
            )
        found += [
            Place(
                offset + begin + match.start(),
                offset + begin + match.end(),
                match[0],
                _merged(common, figure),
                what,
                aligned,
            )
            for match, figure in zip(numbers, figures)
        ]
    return found


def _merged(common: Entry, figure: Entry) -> dict[str, Any]:
    """`figure` over `common`; `by` and `over` key by key; a key that is null goes."""
    merged = {**common, **figure}
    for key in ("by", "over"):
        if isinstance(common.get(key), dict) and isinstance(figure.get(key), dict):
            merged[key] = {**common[key], **figure[key]}
    return {key: value for key, value in merged.items() if not (key in ("by", "over", "op") and value is None)}


def _range(figure: Entry, common: Entry) -> bool:
    return _merged(common, figure).get("op") in ("range", "rounds")


def unlisted(text: str, entries: Iterable[Entry], places_: Iterable[Place], where: str) -> list[str]:
    """Lines about numbers in tables of a text that no entry lists."""
    spans = [(place.begin, place.end) for place in places_]
    # Whole tables whose first cells are labels, or that have none.
    known = [_table_at(text, entry["table"], where) + ("ignore" in entry,) for entry in entries if "table" in entry]
    wrong = []
    for line in re.finditer(r"^\|.*\|\s*$|^  \S.*?\S {2,}(?:\S+ {2,})*[-\d.,]*\d[\d.,]*$", text, re.M):
        if re.fullmatch(r"[|\s:-]+", line[0]):
            continue
        table = [ignored for begin, end, ignored in known if begin <= line.start() < end]
        if table and table[0]:
            continue
        head = not table and _is_head(text, line.start(), known)
        numbers = [
            match
            for match in re.finditer(NUMBER, line[0])
            if not any(begin <= line.start() + match.start() < end for begin, end in spans)
        ]
        if not table and not head and numbers:
            wrong.append(f"{where}: no entry of figures.yaml lists the table of '{line[0].strip()}'")
        elif table:
            # Labels come first: what is not listed behind a figure, or in a row without one, is.
            first = min((begin for begin, end in spans if line.start() <= begin < line.end()), default=line.end())
            wrong += [
                f"{where}: no entry of figures.yaml lists '{match[0]}' of '{' '.join(line[0].split())}'"
                for match in numbers
                if line.start() + match.start() > first
            ]
    return wrong


def _is_head(text: str, begin: int, known: Iterable[tuple[int, int, bool]]) -> bool:
    """Whether the line at `begin` is the head of a table that is listed."""
    end = text.index("\n", begin) + 1 if "\n" in text[begin:] else len(text)
    return any(first == end for first, _, _ in known)


def replace(text: str, changes: Iterable[tuple[Place, str]]) -> str:
    """The text with `changes`, a list of (Place, new text), made.  In tables aligned by spaces a longer number
    takes blanks before it, of which two must stay: where there are no more the line gets longer."""
    for place, new in sorted(changes, key=lambda change: -change[0].begin):
        begin = place.begin
        grow = len(new) - len(place.there)
        if place.column:
            blanks = len(text[:begin]) - len(text[:begin].rstrip(" "))
            if grow > 0:
                begin -= min(grow, max(0, blanks - 2))
            else:
                new = " " * -grow + new
        text = text[:begin] + new + text[place.end :]
    return text
