"""The tables of the report as text cells, which table.py and page.py only have to draw: their columns are bench.yaml's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Optional, Union

from ..data import benchmarks, repeat, summary as s
from ..data.benchmarks import Column
from . import state

MISSING = "\u2014"  # em dash: not measured, or a ratio that would mean nothing
RATIO = f"/{s.BASE}"  # ends the label of a row of ratios
TO = "\u2013"  # en dash, between the ends of a spread
DIFFERS = "*"  # behind what does not repeat from round to round
SCALES = {**benchmarks.TIMES, "MB": 1e-6, "%": 100.0}

# Writes a number.
Text = Callable[[float], str]
# What a column shows of a kernel with so many vCPUs.
Getter = Callable[[str, int], Optional[Union[s.Value, s.Ratio]]]


@dataclass(frozen=True)
class Cell:
    """A number as text; spread is "least-greatest" of its samples, "" where that says nothing."""

    text: str = MISSING
    spread: str = ""


@dataclass(frozen=True)
class Head:
    """The head of a column: head spans neighbouring ones that share it, name is its own."""

    head: str
    name: str


# Label, cells; and what a block is of (a number of vCPUs, a phase), its rows.
Row = tuple[str, list[Cell]]
Block = tuple[Union[int, str], list[Row]]


@dataclass
class Sheet:
    """A table: blocks is [(vcpus, [(row label, [Cell for each column])])]; block_head: what the blocks are; notes: lines below
    it."""

    columns: list[Head]
    blocks: list[Block]
    notes: list[str] = field(default_factory=list)
    block_head: str = "vCPUs"

    def __bool__(self) -> bool:
        return bool(self.columns and self.blocks)

    @property
    def names(self) -> list[str]:
        """The names of the columns, with the head where it takes that to tell them apart."""
        names = [column.name for column in self.columns]
        return [
            f"{column.head}: {column.name}" if names.count(column.name) > 1 else column.name for column in self.columns
        ]

    def part(self, first: int, last: int) -> Sheet:
        """Some of the columns, without the notes."""
        blocks: list[Block] = [(of, [(label, cells[first:last]) for label, cells in rows]) for of, rows in self.blocks]
        return replace(self, columns=self.columns[first:last], blocks=blocks, notes=[])

    def by_heading(self) -> list[Sheet]:
        """One Sheet for each heading of columns, the notes below the last."""
        starts = [
            number
            for number, column in enumerate(self.columns)
            if not number or column.head != self.columns[number - 1].head
        ]
        found = [self.part(first, last) for first, last in zip(starts, [*starts[1:], len(self.columns)])]
        found[-1].notes = self.notes
        return found


def count_text(number: float) -> str:
    """A count for people: "1,234,567"."""
    return f"{number:,.0f}"


def _three_digits(number: float) -> str:
    """A number from 1 on to three significant digits: "1,234", "12.3", "1.04"."""
    return f"{number:,.{0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2}f}"


def ratio_text(number: float) -> str:
    """A ratio to two or three significant digits: "1.04", "0.087", "0.0012", "127"."""
    if number >= 0.0995 or number == 0:
        return _three_digits(number)
    return f"{number:.3f}" if number >= 0.00995 else f"{number:.2g}"


def text_of(column: Column) -> Text:
    """How a table writes a number of a Column: times and MB with one decimal below 100."""
    scale = SCALES.get(column.unit, 1.0)
    if column.unit == "count":
        return lambda number: count_text(number) if abs(number) >= 99.95 or number == int(number) else f"{number:.1f}"
    if column.unit == "x":
        return lambda number: ratio_text(number) if number > 0 else f"{number:.2f}"
    return lambda number: f"{number * scale:,.{int(abs(number * scale) < 99.95)}f}"


def value_cell(value: s.Value | s.Ratio | None, text: Text = count_text, show: str = "") -> Cell:
    """The Cell of a Value or Ratio (or None), its numbers written by `text`; of one that does not repeat the range."""
    if value is None:
        return Cell()
    if show and isinstance(value, s.Value):
        samples = list(value.samples.values())
        return Cell(f"{sum(map(bool, samples))} of {len(samples)}" if show == "count" else text(max(samples)))
    low, high = value.low, value.high
    if not value.repeats:
        ends = [value.median] if low is None or high is None else [low, high]
        return Cell(TO.join(dict.fromkeys(map(text, ends))) + DIFFERS)
    if low is None or high is None or text(low) == text(high):
        return Cell(text(value.median))
    return Cell(text(value.median), f"{text(low)}{TO}{text(high)}")


def rows_of(summary: s.Summary, vcpus: int, columns: Sequence[tuple[Text, Getter, str]]) -> list[Row]:
    """Rows of the kernels, and of the compared one's ratio to base; [] where nothing was measured."""
    rows: list[Row] = [
        (kernel, [value_cell(value(kernel, vcpus), text, show) for text, value, show in columns])
        for kernel in summary.kernels
    ]
    rows = [row for row in rows if any(cell != Cell() for cell in row[1])]
    compared = summary.compared
    if rows and compared:
        ratios = [
            Cell() if show else value_cell(s.ratio(value(compared, vcpus), value(s.BASE, vcpus)), ratio_text)
            for _, value, show in columns
        ]
        if any(cell != Cell() for cell in ratios):
            rows.append((s.short(compared) + RATIO, ratios))
    return rows


def main_sheet(summary: s.Summary) -> Sheet:
    """All that the head of a test's columns in bench.yaml says is shown: per vCPU count and kernel."""
    columns = summary.columns()
    made = [(text_of(column), functools.partial(summary.value, column=column), column.show) for column in columns]
    blocks: list[Block] = [(vcpus, rows_of(summary, vcpus, made)) for vcpus in summary.vcpus]
    heads = [Head(column.head, _with_unit(column)) for column in columns]
    return Sheet(heads, [block for block in blocks if block[1]], _notes(summary, columns))


def _with_unit(column: Column) -> str:
    return column.title if column.unit in ("count", "x") else f"{column.title}, {column.unit}"


def _notes(summary: s.Summary, columns: Sequence[Column]) -> list[str]:
    """What the numbers of the main table are."""
    if not columns:
        return []
    last = {max(summary.iterations(name), default=None) for one in columns for name in one.sum or (one.name,)} - {None}
    which = f" iteration {', '.join(map(str, sorted(number for number in last if number)))}," if last else ""
    note = f"Medians of {summary.samples_text(columns)},{which} with the least and the greatest."
    if summary.compared:
        note += " Ratio: of the medians, with the least and the greatest of pairs that were taken one after the other."
    if any(column.name.startswith(s.LOCK) for column in columns):
        note += " mmu_lock: the whole test, kernels with lock_stat; a spinlock counts as write."
    if summary.alone:
        note += f" No aging: {summary.alone.group.args}."
    return [note]


def describe(group: s.Group) -> list[str]:
    """Two lines: what was run, and how, with the clock."""
    lines = [f"{group.series}, {group.arch}, cpu {group.cpu}: {group.test} {group.args}".rstrip()]
    how = [f"accel {group.accel}", group.clock_name]
    how += [f"config {group.variant}"] if group.variant else []
    how += [f"params {group.params}"] if group.params else []
    return lines + [", ".join(how)]


def phase_sheet(summary: s.Summary, vcpus: int) -> Sheet:
    """Counts by phase of the test with so many vCPUs: of mmu_lock, and of the virtual clock."""
    names = [metric for metric in summary.metrics() if benchmarks.counted(metric)]
    metrics = list(dict.fromkeys(name.split(".", 1)[0] for name in names))

    blocks: list[Block] = [
        (
            phase,
            rows_of(
                summary,
                vcpus,
                [(count_text, functools.partial(summary.last, metric=f"{metric}.{phase}"), "") for metric in metrics],
            ),
        )
        for phase in summary.phases()
    ]
    return Sheet(
        [Head("", metric.replace("_", " ")) for metric in metrics],
        [block for block in blocks if block[1]],
        [f"Counts by phase of the test, {vcpus_text(vcpus)}, of the last iteration of each: medians."],
        "phase",
    )


def repeat_notes(summary: s.Summary) -> list[str]:
    """Lines about what does not repeat from round to round, with the reason that bench.yaml has; and about what was
    measured again."""
    places: dict[tuple[str, str], dict[str, list[int]]] = {}
    for run in summary.unsteady:
        metric = run["metric"].replace("_", " ")
        metric += f", iteration {run['iteration']}" if run["iteration"] else ""
        found = places.setdefault((metric, str(repeat.chance(run) or "")), {})
        found.setdefault(s.short(run["kernel"]), []).append(run["vcpus"])
    lines = []
    for (metric, why), kernels in places.items():
        counts = {kernel: ", ".join(map(str, dict.fromkeys(vcpus))) for kernel, vcpus in kernels.items()}
        where = "; ".join(f"{kernel} with {vcpus} vCPUs" for kernel, vcpus in counts.items())
        lines.append(
            f"{DIFFERS} {metric} does not repeat from round to round ({where}): the least and the greatest "
            f"are shown. {f'By chance: {why}.' if why else 'No reason is known.'}"
        )
    again = [
        f"{s.short(kernel)} with {vcpus_text(vcpus)}, {count} retr{'ies' if count > 1 else 'y'}"
        for (kernel, vcpus), count in summary.retries.items()
    ]
    if again:
        what = f"Measured again, because rounds did not agree: {'; '.join(again)}."
        lines.append(f"{what} The results file keeps the earlier samples.")
    return lines


def notes(results: Iterable[state.Results], summary: s.Summary) -> list[str]:
    """Lines below a group's tables: what does not repeat, what is old."""
    return [*repeat_notes(summary), *state.notes(results, summary.group.series, summary.group.arch, summary.group.test)]


def time_text(seconds: float) -> str:
    """A time with its unit to three significant digits: "19.6 us", "507 ns"."""
    unit, scale = next(
        ((unit, scale) for unit, scale in benchmarks.TIMES.items() if abs(seconds) * scale >= 0.9995), ("ns", 1e9)
    )
    return f"{_three_digits(seconds * scale)} {unit}"


def vcpus_text(count: int) -> str:
    """ "1 vCPU", "16 vCPUs"."""
    return f"{count} vCPU{'s' * (count > 1)}"
