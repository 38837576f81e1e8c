"""The tables of the report as text cells, which table.py and page.py only have to draw."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Optional, TypeVar, Union

from ..data import repeat, summary as s

MISSING = "\u2014"  # em dash: not measured, or a ratio that would mean nothing
RATIO = f"/{s.BASE}"  # ends the label of a row of ratios
TO = "\u2013"  # en dash, between the ends of a spread
OLD = " (old)"  # behind the label of a kernel that patches/ make of another source today
DIFFERS = "*"  # behind what does not repeat from round to round

# Writes a number.
Text = Callable[[float], str]
# What a column shows of a kernel with so many vCPUs.
Getter = Callable[[str, int], Optional[s.Value]]
V = TypeVar("V")


@dataclass(frozen=True)
class Cell:
    """A number as text; spread is "least-greatest" of its samples, "" where that says nothing."""

    text: str = MISSING
    spread: str = ""


@dataclass(frozen=True)
class Column:
    """head spans neighbouring columns that share it; name is the column's own; full says all of
    it, where only one line of headings is drawn; text leaves out columns without it."""

    head: str
    name: str
    full: str = ""
    timed: bool = False  # a time: its spread is shown wherever the table is drawn


# Label, cells; and what a block is of (a number of vCPUs, a phase), its rows.
Row = tuple[str, list[Cell]]
Block = tuple[Union[int, str], list[Row]]


@dataclass
class Sheet:
    """A table: blocks is [(vcpus, [(row label, [Cell for each column])])].

    row_head: what the rows of a block are; block_head: what the blocks are, "vCPUs" unless said; notes: lines to print with
    the table.
    """

    columns: list[Column]
    blocks: list[Block]
    row_head: str = "kernel"
    notes: list[str] = field(default_factory=list)
    block_head: str = "vCPUs"

    def __bool__(self) -> bool:
        return bool(self.columns and self.blocks)


def count_text(number: float) -> str:
    """A count for people: "1,234,567"."""
    return f"{number:,.0f}"


def ratio_text(number: float) -> str:
    """A ratio to two or three significant digits: "1.04", "0.087", "0.0012", "127"."""
    if number >= 99.95:
        return f"{number:,.0f}"
    if number >= 9.995:
        return f"{number:.1f}"
    if number >= 0.0995 or number == 0:
        return f"{number:.2f}"
    return f"{number:.3f}" if number >= 0.00995 else f"{number:.2g}"


def time_unit(values: Iterable[s.Value]) -> tuple[str, float, int]:
    """(unit, how many make a second, decimals) in which to show these Values (seconds)."""
    medians = [value.median for value in values]
    greatest = max(medians, default=0)
    unit, scale = ("s", 1) if greatest >= 10 else ("us", 10**6) if 0 < greatest < 1e-3 else ("ms", 1000)
    least = min((median for median in medians if median > 0), default=0) * scale
    decimals = next((places for places, limit in enumerate((100, 10, 1)) if least >= limit), 3)
    return unit, scale, decimals


def value_cell(value: s.Value | s.Ratio | None, text: Text = count_text) -> Cell:
    """The Cell of a Value or Ratio (or None), its numbers written by `text`; of one that does not repeat the range."""
    if value is None:
        return Cell()
    low, high = value.low, value.high
    if not value.repeats:
        ends = [value.median] if low is None or high is None else [low, high]
        return Cell(TO.join(dict.fromkeys(map(text, ends))) + DIFFERS)
    if low is None or high is None or text(low) == text(high):
        return Cell(text(value.median))
    return Cell(text(value.median), f"{text(low)}{TO}{text(high)}")


def sheet_of(
    summary: s.Summary,
    columns: Sequence[tuple[Column, Text, Getter]],
    notes: list[str],
    counts: Sequence[int] | None = None,
) -> Sheet:
    """A Sheet of (Column, how to write a number, value(kernel, vcpus)) for all kernels; counts: of vCPUs, all unless said."""
    compared = summary.compared
    blocks: list[Block] = []
    for vcpus in counts or summary.vcpus:
        rows = [
            (kernel, [value_cell(value(kernel, vcpus), text) for _, text, value in columns])
            for kernel in summary.kernels
        ]
        if all(cell == Cell() for _, cells in rows for cell in cells):
            continue
        if compared:
            cells = [
                value_cell(s.ratio(value(compared, vcpus), value(s.BASE, vcpus)), ratio_text) for _, _, value in columns
            ]
            rows.append((s.short(compared) + RATIO, cells))
        blocks.append((vcpus, rows))
    return Sheet([column for column, _, _ in columns], blocks, notes=notes)


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
        where = "; ".join(
            f"{kernel} with {', '.join(map(str, dict.fromkeys(counts)))} vCPUs" for kernel, counts in kernels.items()
        )
        lines.append(
            f"{DIFFERS} {metric} does not repeat from round to round ({where}): the least and the greatest "
            f"are shown. {f'By chance: {why}.' if why else 'No reason is known.'}"
        )
    if summary.retries:
        lines.append(
            "Measured again, because rounds did not agree: "
            + "; ".join(
                f"{s.short(kernel)} with {vcpus} vCPU{'s' * (vcpus > 1)}, {count} retr{'ies' if count > 1 else 'y'}"
                for (kernel, vcpus), count in summary.retries.items()
            )
            + ". The results file keeps the earlier samples."
        )
    return lines


def getter(summary: s.Summary, metric: str) -> Getter:
    """Summary.value() of one metric."""
    return lambda kernel, vcpus: summary.value(kernel, vcpus, metric)


def getter_at(summary: s.Summary, metric: str, iteration: int | None) -> Getter:
    """Summary.at() of one metric and iteration."""
    return lambda kernel, vcpus: summary.at(kernel, vcpus, metric, iteration)


def _unsplit(summary: s.Summary, phase: str | None = None) -> bool:
    """True if some contentions are known only as a total, not by write and read."""
    return any(
        summary.value(kernel, vcpus, s.in_phase(s.CONTENDED, phase))
        and not summary.value(kernel, vcpus, s.in_phase(s.CONTENDED_WRITES, phase))
        for kernel in summary.kernels
        for vcpus in summary.vcpus
    )


def lock_sheet(summary: s.Summary) -> Sheet:
    """mmu_lock acquisitions and contentions per vCPU count and kernel."""
    if not any(summary.has(metric) for metric in s.LOCK_METRICS):
        return Sheet([], [])
    split = not _unsplit(summary) or summary.has(s.CONTENDED_WRITES)
    taken, waited = "mmu_lock acquisitions", "mmu_lock contentions"
    columns = [(Column(taken, "write", "write acquired"), s.WRITES), (Column(taken, "read", "read acquired"), s.READS)]
    if _unsplit(summary):
        columns.append((Column(waited, "all", "all contended"), s.CONTENDED))
    if split:
        columns += [
            (Column(waited, "write", "write contended"), s.CONTENDED_WRITES),
            (Column(waited, "read", "read contended"), s.CONTENDED_READS),
        ]
    note = (
        f"mmu_lock, counts of the whole test: {_samples(summary, s.LOCK_METRICS)}, lockstat "
        "kernels. A spinlock counts as write."
    )
    return sheet_of(summary, [(column, count_text, getter(summary, metric)) for column, metric in columns], [note])


def _samples(summary: s.Summary, metrics: Collection[str]) -> str:
    """ "median of 3 samples", or "one sample"."""
    note = summary.sample_note(metrics)
    return "one sample" if note == "1 sample" else f"median of {note}"


def iterations_note(summary: s.Summary, metric: str) -> str:
    """What a column's number is made of: "sum of 2 iterations", or "" for the whole test."""
    kinds = {value.iterations for value in summary.values(metric)}
    if kinds == {()} or not kinds:
        return ""
    counts = {len(kind) for kind in kinds}
    if len(counts) > 1:
        return "sum over iterations"
    count = counts.pop()
    return "1 iteration" if count == 1 else f"sum of {count} iterations"


def time_sheet(summary: s.Summary, metrics: Iterable[str]) -> Sheet:
    """Times of `metrics` per vCPU count and kernel, all in one unit, with spread."""
    metrics = [metric for metric in metrics if summary.has(metric)]
    unit, scale, decimals = time_unit([value for metric in metrics for value in summary.values(metric)])

    def text(seconds: float) -> str:
        return f"{seconds * scale:,.{decimals}f}"

    columns = []
    for metric in metrics:
        name, made = metric.replace("_", " "), iterations_note(summary, metric)
        full = [f"{name} ({unit})", made]
        columns.append(
            (
                Column(
                    f"times, {unit}", ", ".join(filter(None, (name, made))), ", ".join(filter(None, full)), timed=True
                ),
                text,
                getter(summary, metric),
            )
        )
    if not columns:
        return Sheet([], [])
    several = any(len(value.samples) > 1 for metric in metrics for value in summary.values(metric))
    note = f"Times: {_samples(summary, metrics)}{f' (min{TO}max)' * several}."
    if summary.compared:
        note += " Ratio: of the medians" + " (min and max of pairwise interleaved samples)" * several + "."
    return sheet_of(summary, columns, [note])


def latency_sheet(summary: s.Summary) -> Sheet:
    """Latencies of writes in the guest, and of harvests meanwhile (ns): of the last iteration."""
    columns = []
    for metric in s.LATENCIES:
        if not summary.has(metric):
            continue
        what, part = metric.replace("_", " ").rsplit(" ", 1)
        iteration = max(summary.iterations(metric), default=None)

        name = f"{what}{f', iteration {iteration}' if iteration else ''}"
        columns.append(
            (
                Column(name, part, f"{name}, {part} (ns)", timed=True),
                lambda seconds: count_text(seconds * 1e9),
                getter_at(summary, metric, iteration),
            )
        )
    if not columns:
        return Sheet([], [])
    return sheet_of(
        summary,
        columns,
        [
            "Latency, ns: of a write as the guest measures it, and of the "
            f"host's harvests while it writes; {_samples(summary, s.LATENCIES)}. p50 and p99: up to "
            "1/16 too large."
        ],
    )


def marked(sheet: Sheet, summary: s.Summary) -> Sheet:
    """The Sheet with OLD behind the labels of kernels that are old."""
    old = {name for kernel in summary.old for name in (kernel, s.short(kernel))}

    def label(text: str) -> str:
        return text + OLD if text.rpartition(": ")[2] in old else text

    return (
        Sheet(
            sheet.columns,
            [(block, [(label(name), cells) for name, cells in rows]) for block, rows in sheet.blocks],
            sheet.row_head,
            sheet.notes,
            sheet.block_head,
        )
        if old
        else sheet
    )


def join(left: Sheet, right: Sheet) -> Sheet:
    """One Sheet with the columns of both, block by block."""
    if not left or not right:
        return left or right
    blocks, others = [], dict(right.blocks)
    ours = dict(left.blocks)
    for vcpus in sorted(ours.keys() | others.keys()):
        labels = [label for label, _ in ours.get(vcpus) or others[vcpus]]
        rows = []
        for number, label in enumerate(labels):
            cells = []
            for sheet, found in ((left, ours.get(vcpus)), (right, others.get(vcpus))):
                cells += found[number][1] if found else [Cell()] * len(sheet.columns)
            rows.append((label, cells))
        blocks.append((vcpus, rows))
    return Sheet(left.columns + right.columns, blocks, notes=left.notes + right.notes)


def part(sheet: Sheet, wanted: Callable[[Column], bool]) -> Sheet:
    """The Sheet with the columns alone for which wanted(column)."""
    numbers = [number for number, column in enumerate(sheet.columns) if wanted(column)]
    return Sheet(
        [sheet.columns[number] for number in numbers],
        [
            (vcpus, [(label, [cells[number] for number in numbers]) for label, cells in rows])
            for vcpus, rows in sheet.blocks
        ],
        sheet.row_head,
        sheet.notes,
        sheet.block_head,
    )


def _under(head: str, column: Column) -> bool:
    return column.head == head


def by_heading(sheet: Sheet) -> list[Sheet]:
    """One Sheet for each heading of columns, the notes below the last."""
    parts = [
        part(sheet, functools.partial(_under, head)) for head in dict.fromkeys(column.head for column in sheet.columns)
    ]
    for one in parts[:-1]:
        one.notes = []
    return parts


def most_vcpus(
    summary: s.Summary, kernels: Iterable[str], value: Callable[[str, int], V | None]
) -> tuple[int, dict[str, V]] | None:
    """(vCPUs, {kernel: value(kernel, vcpus)}) at the largest count where there is one, or None."""
    for vcpus in reversed(summary.vcpus):
        values = ((kernel, value(kernel, vcpus)) for kernel in kernels)
        found = {kernel: one for kernel, one in values if one is not None}
        if found:
            return vcpus, found
    return None


def most_line(
    summary: s.Summary,
    what: str,
    kernels: Iterable[str],
    value: Callable[[str, int], s.Value | s.Ratio | None],
    text: Text,
) -> list[str]:
    """One line about most_vcpus(): "16 vCPUs, WHAT: 1.2 on base, 0.3 on series"; [] where there is nothing."""
    most: tuple[int, dict[str, s.Value | s.Ratio]] | None = most_vcpus(summary, kernels, value)
    if not most:
        return []
    vcpus, values = most
    parts = [f"{text(one.median)} on {kernel}" for kernel, one in values.items()]
    return [f"{vcpus} vCPU{'s' * (vcpus > 1)}, {what}: {', '.join(parts)}"]


def phase_sheets(summary: s.Summary) -> list[tuple[int, Sheet]]:
    """[(vCPUs, Sheet)]: which phase takes mmu_lock how; a block for each phase, a row for each kernel, and the ratio."""
    phases = summary.phases()
    names = [
        ("acquisitions", "write", s.WRITES),
        ("acquisitions", "read", s.READS),
        ("contentions", "write", s.CONTENDED_WRITES),
        ("contentions", "read", s.CONTENDED_READS),
    ]
    if any(_unsplit(summary, phase) for phase in phases):
        names.append(("contentions", "all", s.CONTENDED))
    names = [
        (head, name, metric)
        for head, name, metric in names
        if any(summary.has(s.in_phase(metric, phase)) for phase in phases)
    ]
    found = []
    for vcpus in summary.vcpus:
        blocks: list[Block] = []
        for phase in phases:
            columns = [
                (Column(head, name), count_text, getter(summary, s.in_phase(metric, phase)))
                for head, name, metric in names
            ]
            blocks += [(phase, rows) for _, rows in sheet_of(summary, columns, [], [vcpus]).blocks]
        if blocks:
            found.append(
                (
                    vcpus,
                    Sheet(
                        [Column(head, name, f"{name} {head}") for head, name, _ in names],
                        blocks,
                        notes=[
                            "Counts by phase of the test, summed over its iterations: median of the samples, lockstat kernels."
                        ],
                        block_head="phase",
                    ),
                )
            )
    return found


def highlights(summary: s.Summary) -> list[str]:
    """Lines for the largest vCPU count that both kernels have: what changed, in counts."""
    lines: list[str] = []
    compared = summary.compared
    if not compared:
        return lines
    for name, value in (
        ("write acquisitions", getter(summary, s.WRITES)),
        ("read acquisitions", getter(summary, s.READS)),
        ("contentions", summary.contended),
    ):
        for vcpus in reversed(summary.vcpus):
            before, after = value(s.BASE, vcpus), value(compared, vcpus)
            if before and after:
                quotient = s.ratio(after, before)
                factor = f" (\u00d7 {ratio_text(quotient.median)})" if quotient else ""
                lines.append(
                    f"{vcpus} vCPU{'s' * (vcpus > 1)}, mmu_lock {name}: "
                    f"{count_text(before.median)} on {s.BASE}, "
                    f"{count_text(after.median)} on {compared}{factor}"
                )
                break
    return lines
