"""What the report says first of each group of runs: what became better than on base, and with equal weight what
became worse, from the data alone: the columns of bench.yaml for which less or more is better."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from ..data import benchmarks, summary as s
from ..data.benchmarks import Column
from . import layout
from .layout import Getter, vcpus_text

# Beyond what rounds of the virtual clock may differ by, see repeat.py.
FLOOR = 0.05
# Guests of migrations whose speed before differs by no more began alike.
ALIKE = 0.1
ARROW = "\u2192"


@dataclass
class Verdict:
    """One group's.  head: one line, "" where nothing can be compared; better, worse: lines, times first, of these the
    greatest change; unsteady: words of the columns that do not repeat, with the places where only some do not."""

    head: str = ""
    better: list[str] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """All of it as text, without the head."""
        return [
            f"{name}: {'; '.join(found)}."
            for name, found in (
                ("Better", self.better),
                ("Worse", self.worse),
                ("Does not repeat, and is not judged", self.unsteady),
            )
            if found
        ] + ([] if self.worse or not self.head else ["Worse: nothing that is compared here."])


@dataclass(frozen=True)
class _Measure:
    words: str
    column: Column
    value: Getter

    def text(self, number: float) -> str:
        if self.column.timed:
            return layout.time_text(number)
        return layout.text_of(self.column)(number) + (f" {self.column.unit}" if self.column.unit in ("MB", "%") else "")


def _measures(summary: s.Summary) -> list[_Measure]:
    """What is compared: the columns that are main first.  Nothing that depends on the wall clock of an emulator."""
    found = [
        _Measure(_words(column), column, functools.partial(summary.value, column=column))
        for column in sorted(summary.columns(), key=lambda column: not column.main)
        if column.better != "none"
    ]
    for metric in summary.metrics():
        counted = benchmarks.counted(metric)
        if counted and counted.title != counted.name:
            words = f"{counted.title} ({metric.split('.', 1)[1]})"
            found.append(_Measure(words, counted, functools.partial(summary.last, metric=metric)))
    if summary.group.emulated:
        found = [one for one in found if not one.column.timed and "contentions" not in one.column.name]
    return found


def _words(column: Column) -> str:
    return column.title if column.head == benchmarks.PLAIN else f"{column.title} ({column.head})"


@dataclass(frozen=True)
class _Change:
    """Values of base and of the compared kernel with so many vCPUs."""

    vcpus: int
    base: s.Value
    ours: s.Value

    @property
    def ratio(self) -> float | None:
        """ours / base; None where base is 0."""
        return self.ours.median / self.base.median if self.base.median > 0 else None

    def side(self, column: Column) -> int:
        """1 where it became worse, -1 where it became better, 0 where it did not change by more than FLOOR, or a count by one
        for each CPU."""
        base, ours = self.base.median, self.ours.median
        slack = self.vcpus + 1 if column.unit == "count" and not column.name.startswith(s.PER_FAULT) else 0
        if abs(ours - base) <= max(FLOOR * abs(base), slack) or min(base, ours) < 0:
            return 0
        return 1 if (ours > base) != (column.better == "more") else -1


def _changes(summary: s.Summary, compared: str, measure: _Measure) -> tuple[list[_Change], list[_Change]]:
    """Lists of _Change for the vCPU counts that both have: of those where both repeat, and of the others."""
    found: list[_Change] = []
    unsteady: list[_Change] = []
    for vcpus in summary.vcpus:
        base, ours = (measure.value(kernel, vcpus) for kernel in (s.BASE, compared))
        if isinstance(base, s.Value) and isinstance(ours, s.Value) and base.iteration == ours.iteration:
            (found if base.repeats and ours.repeats else unsteady).append(_Change(vcpus, base, ours))
    return found, unsteady


def of_base(ratio: float) -> str:
    """A ratio to base in words: "0.027 of base", "2.8 times base"."""
    return f"{layout.ratio_text(ratio)} {'times' if ratio > 1 else 'of'} base"


def _far(change: _Change) -> float:
    """How far from base a change is, for sorting: 2 for twice and for half."""
    return max(change.ratio, 1 / change.ratio) if change.ratio else float("inf")


def _much(change: _Change) -> float:
    """How far apart the two are, for counts: 2 instead of 34 is no more than that."""
    return abs(change.ours.median - change.base.median)


def alike(summary: s.Summary, vcpus: int) -> bool:
    """Whether guests of a migration began alike, so that times compare the QEMUs; True for other tests."""
    if summary.group.test != benchmarks.MIGRATION or not summary.compared:
        return True
    speeds = s.ratio(*(summary.last(kernel, vcpus, "guest_speed") for kernel in (summary.compared, s.BASE)))
    ends = (speeds.median, speeds.low, speeds.high) if speeds else (None,)
    as_fast_as_they_can = "rate=0" in summary.group.args.split()
    return not as_fast_as_they_can and all(end is not None and abs(end - 1) <= ALIKE for end in ends)


def of(summary: s.Summary) -> Verdict:
    """The Verdict of a Summary: of the kernel that is compared with base."""
    found = Verdict()
    if not summary.compared:
        return found
    sides: dict[int, list[tuple[bool, float, str, str]]] = {1: [], -1: []}
    for measure in _measures(summary):
        changes, unsteady = _changes(summary, summary.compared, measure)
        if unsteady:
            where = f" ({', '.join(vcpus_text(change.vcpus) for change in unsteady)})" if changes else ""
            found.unsteady.append(measure.words + where)
        if measure.column.main and changes and not found.head:
            fair = [change for change in changes if alike(summary, change.vcpus)]
            found.head = _head(measure, (fair or changes)[-1], s.short(summary.compared))
        counts = not measure.column.timed
        most: Callable[[_Change], float] = _much if counts else _far
        for side, lines in sides.items():
            those = [change for change in changes if change.side(measure.column) == side]
            if those:
                one = max(those, key=most)
                lines.append((counts, -_far(one), *_said(measure, one, len(changes) > 1)))
    found.worse, found.better = (
        [said + numbers for _, _, said, numbers in sorted(lines)] for lines in (sides[1], sides[-1])
    )
    worst = [said for _, _, said, _ in sorted(sides[1])][:2]
    if found.head and worst:
        found.head += f"; worse: {', '.join(worst)}"
    return found


def _said(measure: _Measure, change: _Change, several: bool) -> tuple[str, str]:
    """What changed and how far at most, and the numbers; several: there are other places."""
    base, ours = change.base.median, change.ours.median
    numbers = f" ({vcpus_text(change.vcpus)}: {measure.text(base)} {ARROW} {measure.text(ours)})"
    if change.ratio is None:
        return measure.words, numbers
    far = f" {'up' if change.ratio > 1 else 'down'} to" if several else ""
    return f"{measure.words}{far} {of_base(change.ratio)}", numbers


def _head(measure: _Measure, change: _Change, kernel: str) -> str:
    """The first line: "16 vCPUs: dirty memory 19.6 us -> 0.57 us, 0.029 of base"; the kernel is named where it is
    not all of a series."""
    name = "" if kernel == s.SERIES else f", {kernel}"
    ratio = "" if change.ratio is None else f", {of_base(change.ratio)}"
    before, after = measure.text(change.base.median), measure.text(change.ours.median)
    return f"{vcpus_text(change.vcpus)}{name}: {measure.words} {before} {ARROW} {after}{ratio}"
