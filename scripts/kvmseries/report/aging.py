"""access_tracking_stress_test: what vCPUs do to aging, and aging to vCPUs.

Runs come in pairs: with aging, and the same arguments with "-a 0", without.  The Summary of the
latter becomes `.alone` of the former.  All figures are of the last iteration; see NOTE.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Optional

from ..data import published, summary as s
from ..data.shape import Results
from . import layout
from .last import Last
from .measures import Measure, time_text

TEST = "access_tracking_stress_test"
IDLE, RUNNING = "pass_median.idle", "pass_median.running"
P99, MAX = "pass_p99.running", "pass_max.running"
YOUNG = "young.idle", "young.running"
FALSE, TOUCHED = "false_idle.after", "touched.after"
# What vCPUs do meanwhile, with -p and without: (their time, phase of the counters, word for it).
KINDS = (("fault_memory_time", "fault", "faulting"), ("access_memory_time", "access", "running"))
METRICS = (IDLE, RUNNING, P99, MAX, *YOUNG, FALSE, TOUCHED, *(time for time, _, _ in KINDS))
LAST = Last(METRICS)
NOTE = "the last, as with -S the first activates the pages in the host"

# A curve: label, kernel or None for two of them, {vCPUs: ratio}.
Drawn = tuple[str, Optional[str], dict[int, float]]


def is_aging(summary: s.Summary) -> bool:
    """True if a Summary is of this test."""
    return summary.group.test == TEST


def summarise(results: Sequence[Results]) -> list[s.Summary]:
    """summary.summarise(), with runs without aging in `.alone` of those that they belong to; they
    stand for themselves only where there are none."""
    found = s.summarise(results)
    aging = [one for one in found if is_aging(one)]
    alone: dict[tuple[s.Group, frozenset[tuple[str, str | None]]], s.Summary] = {}
    for one in aging:
        if _without_aging(one):
            alone.setdefault(_key(one), one)
    taken = set()
    for one in aging:
        if not _without_aging(one) and _key(one) in alone:
            one.alone = alone[_key(one)]
            taken.add(id(one.alone))
    return [one for one in found if id(one) not in taken]


def _without_aging(summary: s.Summary) -> bool:
    return published.options(summary.group.args).get("-a") == "0"


def _key(summary: s.Summary) -> tuple[s.Group, frozenset[tuple[str, str | None]]]:
    options = published.options(summary.group.args)
    options.pop("-a", None)
    return replace(summary.group, args=""), frozenset(options.items())


def _sides(summary: s.Summary) -> tuple[s.Summary | None, s.Summary | None]:
    """(Summary with aging, without), None for one that is not there."""
    return (None, summary) if _without_aging(summary) else (summary, summary.alone)


def _kernels(summary: s.Summary) -> list[str]:
    """The kernels of both sides."""
    more = summary.alone.kernels if summary.alone else []
    return summary.kernels + [kernel for kernel in more if kernel not in summary.kernels]


def _vcpus(summary: s.Summary) -> list[int]:
    return sorted({*summary.vcpus, *(summary.alone.vcpus if summary.alone else ())})


def kind(summary: s.Summary) -> tuple[str, str, str]:
    """The entry of KINDS that a Summary has, the first if it has none."""
    return next((one for one in KINDS if summary.has(one[0])), KINDS[0])


def beside(summary: s.Summary, kernel: str, vcpus: int) -> s.Ratio | None:
    """Ratio of a pass while vCPUs fault (or access) memory to one while they are idle."""
    aged = _sides(summary)[0]
    return s.ratio(LAST.value(aged, kernel, vcpus, RUNNING), LAST.value(aged, kernel, vcpus, IDLE))


def slowdown(summary: s.Summary, kernel: str, vcpus: int) -> s.Ratio | None:
    """Ratio of the vCPUs' time with aging to that without."""
    time = kind(summary)[0]
    aged, alone = _sides(summary)
    return s.ratio(LAST.value(aged, kernel, vcpus, time), LAST.value(alone, kernel, vcpus, time))


def passes(summary: s.Summary, vcpus: int) -> s.Ratio | None:
    """Ratio of the compared kernel's pass while vCPUs fault to base's."""
    aged = _sides(summary)[0]
    return s.ratio(LAST.value(aged, summary.compared, vcpus, RUNNING), LAST.value(aged, s.BASE, vcpus, RUNNING))


def curve(summary: s.Summary, value: Callable[[int], s.Ratio | None]) -> dict[int, float]:
    """{vCPUs: median} of value(vcpus), a Ratio or None, where it is above 0."""
    found = {vcpus: value(vcpus) for vcpus in _vcpus(summary) if vcpus > 0}
    return {vcpus: ratio.median for vcpus, ratio in found.items() if ratio and ratio.median > 0}


def curves(summary: s.Summary) -> tuple[list[Drawn], list[Drawn]]:
    """What of a Summary is drawn: (left, right), each a list of (label, kernel or None for two of
    them, {vCPUs: ratio}); [] for the wall clock of an emulator, which is no evidence."""
    if summary.group.emulated:
        return [], []
    word, kernels = kind(summary)[2], _kernels(summary)
    left: list[Drawn] = (
        [(f"{word}: {s.short(summary.compared)}/base", None, curve(summary, lambda vcpus: passes(summary, vcpus)))]
        if summary.compared
        else []
    )
    left += [
        (f"{s.short(kernel)}: {word}/idle", kernel, curve(summary, functools.partial(beside, summary, kernel)))
        for kernel in kernels
    ]
    right: list[Drawn] = [
        (s.short(kernel), kernel, curve(summary, functools.partial(slowdown, summary, kernel))) for kernel in kernels
    ]
    return [entry for entry in left if entry[2]], [entry for entry in right if entry[2]]


@functools.lru_cache(maxsize=None)
def entries() -> tuple[published.Aging, ...]:
    """The published figures."""
    return published.load_aging()


def source() -> str:
    """Whose the published figures are, one sentence."""
    told = dict.fromkeys(f"{entry.message} ({entry.workload}; machine: {entry.machine})" for entry in entries())
    return (
        f"Published: {', '.join(told)}. Those are other machines and, but for arm64, another "
        "architecture: their shape alone compares."
    )


def _decimals(values: Iterable[s.Value]) -> int:
    return 1 if min((value.median for value in values), default=0) < 100e-6 else 0


def sheet(summary: s.Summary) -> layout.Sheet:
    """The Sheet: passes, vCPU time, instructions per fault, false idle; per vCPUs and kernel."""
    aged, alone = _sides(summary)
    time, phase, word = kind(summary)
    count = s.in_phase(s.PER_FAULT, phase)
    kernels, number = _kernels(summary), LAST.iteration(summary)
    where = [(kernel, vcpus) for kernel in kernels for vcpus in _vcpus(summary)]
    decimals = _decimals(
        [
            value
            for side in (aged, alone)
            for metric in (IDLE, RUNNING, time)
            for value in (LAST.value(side, *place, metric) for place in where)
            if value
        ]
    )

    def micros(seconds: float) -> str:
        return f"{seconds * 1e6:,.{decimals}f}"

    passing, taking = "time of an aging pass, us", "time of the vCPUs, us, with aging and without"
    busy = f"vCPUs {word}"
    of = LAST.of
    # A column: (Column, how to write a number, value(kernel, vcpus)).  Of a Value there is a ratio of kernels.
    columns: list[tuple[layout.Column, layout.Text, Callable[[str, int], s.Value | s.Ratio | None]]] = [
        (layout.Column(passing, "vCPUs idle", "pass, vCPUs idle (us)"), micros, of(aged, IDLE)),
        (layout.Column(passing, busy, f"pass, {busy} (us)"), micros, of(aged, RUNNING)),
        (layout.Column(passing, "p99", "p99 (us)"), micros, of(aged, P99)),
        (layout.Column(passing, "max", "max (us)"), micros, of(aged, MAX)),
        (
            layout.Column(passing, f"{word}/idle", f"{word}/idle"),
            layout.ratio_text,
            lambda kernel, vcpus: beside(summary, kernel, vcpus),
        ),
        (layout.Column(taking, "vCPU time, aging", "vCPU time, aging (us)"), micros, of(aged, time)),
        (layout.Column(taking, "no aging", "vCPU time, no aging (us)"), micros, of(alone, time)),
        (
            layout.Column(taking, "aging/no aging", "aging/no aging"),
            layout.ratio_text,
            lambda kernel, vcpus: slowdown(summary, kernel, vcpus),
        ),
        (
            layout.Column(taking, "instructions per fault, aging", "insns per fault, aging"),
            layout.count_text,
            of(aged, count),
        ),
        (layout.Column(taking, "no aging", "insns per fault, no aging"), layout.count_text, of(alone, count)),
    ]
    if not alone:
        columns = [column for column in columns if "no aging" not in column[0].name]
    blocks: list[layout.Block] = []
    for vcpus in _vcpus(summary):
        rows = [
            (
                kernel,
                [layout.value_cell(value(kernel, vcpus), text) for _, text, value in columns]
                + [_young(aged, kernel, vcpus), _false_idle(aged, kernel, vcpus)],
            )
            for kernel in kernels
        ]
        if all(cell == layout.Cell() for _, cells in rows for cell in cells):
            continue
        if summary.compared:
            rows.append(
                (
                    s.short(summary.compared) + layout.RATIO,
                    [_by_base(value(summary.compared, vcpus), value(s.BASE, vcpus)) for _, _, value in columns]
                    + [layout.Cell()] * 2,
                )
            )
        blocks.append((vcpus, rows))
    heads = [column for column, *_ in columns]
    heads.append(layout.Column("pages found young", "vCPUs idle, running", "young pages: idle, running"))
    heads.append(layout.Column("after a flush", "false idle of touched pages", "false idle, flushed"))
    return layout.Sheet(heads if blocks else [], blocks, notes=_notes(summary, number, time))


def _by_base(ours: s.Value | s.Ratio | None, base: s.Value | s.Ratio | None) -> layout.Cell:
    """The Cell of the ratio of two Values; empty for what is a ratio itself."""
    if isinstance(ours, s.Value) and isinstance(base, s.Value):
        return layout.value_cell(s.ratio(ours, base), layout.ratio_text)
    return layout.Cell()


def _young(aged: s.Summary | None, kernel: str, vcpus: int) -> layout.Cell:
    """So that a pass over pages that nobody touches shows."""
    found = [value for value in (LAST.value(aged, kernel, vcpus, metric) for metric in YOUNG) if value]
    if len(found) < len(YOUNG):
        return layout.Cell()
    return layout.Cell(", ".join(layout.count_text(value.median) for value in found))


def _false_idle(aged: s.Summary | None, kernel: str, vcpus: int) -> layout.Cell:
    false, touched = (LAST.value(aged, kernel, vcpus, metric) for metric in (FALSE, TOUCHED))
    if not false or not touched:
        return layout.Cell()
    return layout.Cell(" of ".join(layout.count_text(value.median) for value in (false, touched)))


def _notes(summary: s.Summary, number: int | None, time: str) -> list[str]:
    aged, alone = _sides(summary)
    made = [
        f"{words} {side.sample_note(METRICS)}"
        for words, side in (("with aging", aged), ("without", alone))
        if side and side.sample_note(METRICS)
    ]
    note = f"Aging: medians; {', '.join(made)}; iteration {number}, {NOTE}. "
    if alone:
        note += f"No aging: the same test with -a 0. vCPU time: {time}."
    else:
        note += f"No aging (-a 0): not in these results. vCPU time: {time}."
    if aged and alone and LAST.iteration(alone) != LAST.iteration(aged):
        note += f" Without aging the last iteration is {LAST.iteration(alone)}: another one, hence no ratio."
    return [note]


def measures(summary: s.Summary) -> list[Measure]:
    """The Measures of the verdict, the main one first."""
    aged, alone = _sides(summary)
    time, phase, word = kind(summary)

    of = LAST.of
    return [
        Measure(f"aging pass while vCPUs are {word}", of(aged, RUNNING), time_text, main=True),
        Measure(f"99th percentile of it while vCPUs are {word}", of(aged, P99), time_text),
        Measure("slowest of these passes", of(aged, MAX), time_text),
        Measure("aging pass while vCPUs are idle", of(aged, IDLE), time_text),
        Measure("vCPUs while memory is aged", of(aged, time), time_text),
        Measure("vCPUs without aging", of(alone, time), time_text, main=aged is None),
        Measure(
            f"instructions a fault ({phase})", of(aged, s.in_phase(s.PER_FAULT, phase)), layout.count_text, count=True
        ),
        Measure("false idle pages", of(aged, FALSE), layout.count_text, count=True, each=True),
    ]


def highlights(summary: s.Summary) -> list[str]:
    """Lines for the largest vCPU count that has them."""
    found = []
    for what, value in (
        (f"time of an aging pass while vCPUs are {kind(summary)[2]}, relative to idle ones", beside),
        ("time of the vCPUs with aging, relative to none", slowdown),
    ):
        lines = {kernel: curve(summary, functools.partial(value, summary, kernel)) for kernel in _kernels(summary)}
        most = max((vcpus for line in lines.values() for vcpus in line), default=None)
        if most:
            parts = [f"{layout.ratio_text(line[most])} on {kernel}" for kernel, line in lines.items() if most in line]
            found.append(f"{most} vCPU{'s' * (most > 1)}, {what}: {', '.join(parts)}")
    return found
