"""What the report says first of each group of runs: what became better than on base, and with equal weight what
became worse, from the data alone.

A module in own.py has measures(summary) for its test; of the dirty log and of lock counts they are here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..data import summary as s
from . import layout, own, scaling
from .measures import Measure, of_base, time_text, vcpus_text

# Beyond what rounds of the virtual clock may differ by, see repeat.py.
FLOOR = 0.05
ARROW = "\u2192"


@dataclass
class Verdict:
    """One group's.  head: one line, "" where nothing can be compared; better, worse: lines, times first, of these the
    greatest change;
    unsteady: words of the measures that do not repeat, with the places where only some do not: those are in none of
    these."""

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


def measures(summary: s.Summary) -> list[Measure]:
    """The Measures of a Summary."""
    module = own.of(summary)
    if module:
        return module.measures(summary)
    return ([] if summary.group.emulated else _times(summary)) + _counts(summary)


# How people call what is timed.
_WORDS = {
    "populate_memory_time": "populate",
    "enable_dirty_log_time": "turning the log on",
    "get_dirty_log_time": "harvest (KVM_GET_DIRTY_LOG)",
    "clear_dirty_log_time": "KVM_CLEAR_DIRTY_LOG",
    "disable_dirty_log_time": "turning the log off",
}


def _times(summary: s.Summary) -> list[Measure]:
    return (
        [_dirty(summary)]
        + [
            Measure(words, layout.getter(summary, metric), time_text, main=metric == s.POPULATE)
            for metric, words in _WORDS.items()
        ]
        + [
            Measure(
                metric.replace("_", " "),
                layout.getter_at(summary, metric, max(summary.iterations(metric), default=None)),
                time_text,
            )
            for metric in s.LATENCIES
            if summary.has(metric)
        ]
    )


def _dirty(summary: s.Summary) -> Measure:
    iteration, _ = scaling.chosen(summary, s.DIRTY)
    pages = scaling.pages(summary.group.args)

    def value(kernel: str, vcpus: int) -> s.Value | None:
        found = summary.at(kernel, vcpus, s.DIRTY, iteration)
        return found and replace(found, samples={key: one / (pages or 1) for key, one in found.samples.items()})

    return Measure("dirty memory", value, lambda number: time_text(number) + " a page" * bool(pages), main=True)


def _counts(summary: s.Summary) -> list[Measure]:
    found = [
        Measure(words, value, layout.count_text, main=metric == s.WRITES, count=True, each=True)
        for words, metric, value in (
            ("mmu_lock taken for write", s.WRITES, layout.getter(summary, s.WRITES)),
            ("waits for mmu_lock", s.CONTENDED, summary.contended),
        )
    ]
    for phase in summary.counted_phases():
        for counter, words in (
            (s.PER_FAULT, "instructions a fault"),
            ("foreign_atomics", "cache lines moved by atomics"),
        ):
            metric = s.in_phase(counter, phase)
            iteration = max(summary.iterations(metric), default=None)
            found.append(
                Measure(
                    f"{words} ({phase})",
                    layout.getter_at(summary, metric, iteration),
                    layout.count_text,
                    count=True,
                    each=counter != s.PER_FAULT,
                )
            )
    return found


@dataclass(frozen=True)
class _Change:
    """Values of base and of the compared kernel at a place: a vCPU count, or of a migrating.Family (vCPUs, tracking)."""

    place: s.Place
    base: s.Value
    ours: s.Value

    @property
    def vcpus(self) -> int:
        """How many vCPUs there are."""
        return self.place[0] if isinstance(self.place, tuple) else self.place

    @property
    def where(self) -> str:
        """The place in words."""
        more = f", {self.place[1]}" if isinstance(self.place, tuple) else ""
        return vcpus_text(self.vcpus) + more

    @property
    def ratio(self) -> float | None:
        """ours / base; None where base is 0."""
        return self.ours.median / self.base.median if self.base.median > 0 else None


def _changes(summary: s.Summary, compared: str, measure: Measure) -> tuple[list[_Change], list[_Change]]:
    """Lists of _Change for the places that both have: of those where both repeat, and of the others."""
    found: list[_Change] = []
    unsteady: list[_Change] = []
    for place in summary.places:
        base, ours = (measure.value(kernel, place) for kernel in (s.BASE, compared))
        if base is None or ours is None or base.iterations != ours.iterations:
            continue
        (found if base.repeats and ours.repeats else unsteady).append(_Change(place, base, ours))
    return found, unsteady


def _side(measure: Measure, change: _Change) -> int:
    """1 where it became worse, -1 where it became better, 0 where it did not change by more than FLOOR."""
    base, ours = change.base.median, change.ours.median
    if (
        abs(ours - base) <= FLOOR * abs(base)
        or min(base, ours) < 0
        or (measure.each and abs(ours - base) <= change.vcpus + 1)
    ):
        return 0
    return 1 if (ours > base) != measure.more else -1


def _said(measure: Measure, change: _Change, several: bool) -> str:
    """What changed, and how far at most; several: there are other places."""
    if change.ratio is None:
        return measure.words
    far = f" {'up' if change.ratio > 1 else 'down'} to" if several else ""
    return f"{measure.words}{far} {of_base(change.ratio)}"


def _numbers(measure: Measure, change: _Change) -> str:
    return f" ({change.where}: {measure.text(change.base.median)} {ARROW} {measure.text(change.ours.median)})"


def _much(change: _Change) -> float:
    """How far apart the two are, for counts: 2 instead of 34 is no more than that."""
    return abs(change.ours.median - change.base.median)


def _far(change: _Change) -> float:
    """How far from base a change is, for sorting: 2 for twice and for half."""
    if not change.ratio:
        return float("inf")
    return max(change.ratio, 1 / change.ratio)


def of(summary: s.Summary) -> Verdict:
    """The Verdict of a Summary: of the kernel that is compared with base."""
    found = Verdict()
    if not summary.compared:
        return found
    sides: dict[int, list[tuple[bool, float, str, str]]] = {1: [], -1: []}
    for measure in measures(summary):
        changes, unsteady = _changes(summary, summary.compared, measure)
        if unsteady:
            where = f" ({', '.join(change.where for change in unsteady)})" if changes else ""
            found.unsteady.append(measure.words + where)
        if measure.main and changes and not found.head:
            fair = [change for change in changes if measure.fair(change.place)]
            found.head = head(measure, (fair or changes)[-1], s.short(summary.compared))
        for side, lines in sides.items():
            those = [change for change in changes if _side(measure, change) == side]
            if those:
                one = max(those, key=_much if measure.count else _far)
                lines.append((measure.count, -_far(one), _said(measure, one, len(changes) > 1), _numbers(measure, one)))
    found.worse, found.better = (
        [said + numbers for _, _, said, numbers in sorted(lines)] for lines in (sides[1], sides[-1])
    )
    worst = [said for _, _, said, _ in sorted(sides[1])][:2]
    if found.head and worst:
        found.head += f"; worse: {', '.join(worst)}"
    return found


def head(measure: Measure, change: _Change, kernel: str) -> str:
    """The first line: "16 vCPUs: dirty memory 19.6 us -> 0.57 us a page, 0.029 of base"; the kernel is named where it is
    not all of a series."""
    name = "" if kernel == s.SERIES else f", {kernel}"
    ratio = "" if change.ratio is None else f", {of_base(change.ratio)}"
    before, after = measure.text(change.base.median), measure.text(change.ours.median)
    ending = " a page"
    if before.endswith(ending) and after.endswith(ending):
        before = before[: -len(ending)]
    return f"{change.where}{name}: {measure.words} {before} {ARROW} {after}{ratio}"
