"""How time grows with vCPUs: curves, sensitivity bands, and how far they are off published ones.

Growth is a time relative to that of 1 vCPU of the same curve, so that machines and models whose page faults
cost differently can be compared.  Times with iterations are those of one: the published figures'
own, else the last.  Growth means nothing on the wall clock of an emulator, which gets no curves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..data import published, summary as s
from . import layout

PAGE = 4096


@dataclass(frozen=True)
class Curve:
    """One metric on one kernel.

    values: vCPUs -> Value (seconds) of the nominal model.  growth: vCPUs -> relative to 1 vCPU, {} if that
    was not measured.  band: vCPUs -> (least, greatest) growth over the nominal model and its
    variants, {} without variants.  column: the published.Column that the kernel stands for, else
    None.
    """

    kernel: str
    values: dict[int, s.Value]
    growth: dict[int, float]
    band: dict[int, tuple[float, float]]
    column: published.Column | None

    def error(self, vcpus: int) -> float | None:
        """Growth by published growth, minus 1; None where there is not both, or by definition 0."""
        if vcpus == 1 or self.column is None or vcpus not in self.growth or vcpus not in self.column.growth:
            return None
        return self.growth[vcpus] / self.column.growth[vcpus] - 1

    @property
    def worst(self) -> tuple[float, int] | None:
        """(error, vCPUs) where it is furthest off, or None."""
        errors = ((self.error(vcpus), vcpus) for vcpus in sorted(self.growth))
        return max(
            ((error, vcpus) for error, vcpus in errors if error is not None),
            key=lambda pair: abs(pair[0]),
            default=None,
        )


@functools.lru_cache(maxsize=None)
def _published() -> tuple[published.Column, ...]:
    return published.load()


def chosen(summary: s.Summary, metric: str) -> tuple[int | None, list[published.Column]]:
    """(the iteration that curves of `metric` are of, the published Columns that fit it)."""
    group = summary.group
    columns = [
        column
        for column in _published()
        if column.metric == metric and column.fits(group.series, group.arch, group.test, group.args)
    ]
    known = summary.iterations(metric)
    # Of the whole test, where there are no iterations.
    there: list[int | None] = [*known] or [None]
    wanted = [column.iteration for column in columns if column.iteration in there]
    iteration = wanted[0] if wanted else max(known, default=None)
    return iteration, [column for column in columns if column.iteration == iteration]


def curves(summary: s.Summary, metric: str) -> list[Curve]:
    """A Curve for each kernel that has `metric`; [] for emulated wall-clock."""
    if summary.group.emulated:
        return []
    iteration, columns = chosen(summary, metric)
    found = []
    for kernel in summary.kernels:
        values = _values(summary, kernel, metric, iteration, s.NOMINAL)
        if not values:
            continue
        growths = [_growth(values)] + [
            _growth(_values(summary, kernel, metric, iteration, model)) for model in summary.variants
        ]
        band = {
            vcpus: (
                min(line[vcpus] for line in growths if vcpus in line),
                max(line[vcpus] for line in growths if vcpus in line),
            )
            for vcpus in growths[0]
            if any(vcpus in line for line in growths[1:])
        }
        column = next((one for one in columns if kernel in one.kernels), None)
        found.append(Curve(kernel, values, growths[0], band, column))
    return found


def _values(summary: s.Summary, kernel: str, metric: str, iteration: int | None, model: str) -> dict[int, s.Value]:
    values = {vcpus: summary.at(kernel, vcpus, metric, iteration, model) for vcpus in summary.vcpus if vcpus > 0}
    return {vcpus: value for vcpus, value in values.items() if value and value.median > 0}


def _growth(values: Mapping[int, s.Value]) -> dict[int, float]:
    return {vcpus: value.median / values[1].median for vcpus, value in values.items()} if 1 in values else {}


def pages(args: str) -> int | None:
    """Pages of 4 KiB that a vCPU has by the test's arguments, or None if they do not say."""
    size = published.options(args).get("-b") or ""
    unit = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}.get(size[-1:].lower())
    digits = size[:-1] if unit else size
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits) * (unit or 1) // PAGE or None


def error_text(error: float) -> str:
    """A relative error for people: "+3.4%"."""
    return f"{error * 100:+.1f}%"


def name(summary: s.Summary, metric: str) -> str:
    """ "dirty memory time, iteration 2"."""
    iteration = chosen(summary, metric)[0]
    words = metric.replace("_", " ")
    return words if iteration is None else f"{words}, iteration {iteration}"


def errors(lines: Iterable[Curve]) -> list[str]:
    """For each of these curves that has a published one, a sentence: the worst error and where."""
    found = []
    for curve in lines:
        if curve.column:
            how = "fitted on it" if curve.column.fitted else "predicted"
            text = f"{error_text(curve.worst[0])} at {curve.worst[1]} vCPUs" if curve.worst else "no point in common"
            found.append(f"{s.short(curve.kernel)} against {curve.column.what} ({how}): worst error {text}.")
    return found


def sheet(summary: s.Summary, metric: str) -> layout.Sheet:
    """The Sheet of a metric's curves: time a page, growth, band, published growth, error."""
    lines = curves(summary, metric)
    count = pages(summary.group.args)

    def page(value: s.Value | None) -> layout.Cell:
        return (
            layout.value_cell(value, lambda seconds: f"{seconds / count * 1e9:,.0f}")
            if value and count
            else layout.Cell()
        )

    def number(value: float | None, text: Callable[[float], str] = layout.ratio_text) -> layout.Cell:
        return layout.Cell() if value is None else layout.Cell(text(value))

    def band(curve: Curve, vcpus: int) -> layout.Cell:
        ends = [layout.ratio_text(end) for end in curve.band.get(vcpus, ())]
        return layout.Cell(layout.TO.join(ends)) if ends else layout.Cell()

    head, what = name(summary, metric), metric.replace("_", " ")
    columns = [
        (layout.Column(head, "ns a page", f"{what}, ns a page"), lambda curve, vcpus: page(curve.values.get(vcpus))),
        (layout.Column(head, "growth", "growth"), lambda curve, vcpus: number(curve.growth.get(vcpus))),
    ]
    if any(curve.band for curve in lines):
        columns.append((layout.Column(head, "band", "band"), band))
    if any(curve.column for curve in lines):
        columns += [
            (
                layout.Column("published", "ns a page"),
                lambda curve, vcpus: number(curve.column and curve.column.page_ns(vcpus), layout.count_text),
            ),
            (
                layout.Column("published", "growth", "published growth"),
                lambda curve, vcpus: number(curve.column and curve.column.growth.get(vcpus)),
            ),
            (
                layout.Column("published", "error of growth", "error of growth"),
                lambda curve, vcpus: number(curve.error(vcpus), error_text),
            ),
        ]
    blocks = [
        (
            vcpus,
            [
                (s.short(curve.kernel), [cell(curve, vcpus) for _, cell in columns])
                for curve in lines
                if vcpus in curve.values
            ]
            + _ratio_row(summary, lines, vcpus, len(columns)),
        )
        for vcpus in summary.vcpus
    ]
    notes = [f"{name(summary, metric)}. Growth: relative to the time with 1 vCPU of the same kernel."]
    if any(curve.band for curve in lines):
        notes[0] += (
            f" Band: least and greatest growth over {len(summary.variants)} variants of "
            "the model, one parameter halved or doubled in each."
        )
    return layout.Sheet(
        [column for column, _ in columns],
        [(vcpus, rows) for vcpus, rows in blocks if rows],
        notes=notes + errors(lines),
    )


def _ratio_row(summary: s.Summary, lines: Sequence[Curve], vcpus: int, count: int) -> list[layout.Row]:
    """[(label, Cells)] of the compared kernel's time and growth relative to base's; [] where one of them is missing."""
    ours, base = (
        next((curve for curve in lines if curve.kernel == kernel and vcpus in curve.values), None)
        for kernel in (summary.compared, s.BASE)
    )
    if not summary.compared or not ours or not base:
        return []
    cells = [layout.value_cell(s.ratio(ours.values[vcpus], base.values[vcpus]), layout.ratio_text), layout.Cell()]
    if vcpus in ours.growth and vcpus in base.growth:
        cells[1] = layout.Cell(layout.ratio_text(ours.growth[vcpus] / base.growth[vcpus]))
    return [(s.short(summary.compared) + layout.RATIO, cells + [layout.Cell()] * (count - 2))]


def sheets(summary: s.Summary) -> list[layout.Sheet]:
    """The Sheets of the main times that have curves."""
    return [one for one in (sheet(summary, metric) for metric in s.MAIN_TIMES) if one]


def counter_sheet(summary: s.Summary, phase: str) -> layout.Sheet:
    """The Sheet of the instrument's counters in a phase of the test."""
    wanted = chosen(summary, s.DIRTY)[0]
    columns, made = [], set()
    for counter in s.COUNTERS:
        metric = s.in_phase(counter, phase)
        known = summary.iterations(metric)
        iteration = wanted if wanted in known else max(known, default=None)
        value = layout.getter_at(summary, metric, iteration)
        if any(value(kernel, vcpus) for kernel in summary.kernels for vcpus in summary.vcpus):
            made.add(iteration)
            columns.append(
                (
                    layout.Column(phase, counter.replace("_", " "), f"{counter.replace('_', ' ')}, {phase}"),
                    layout.count_text,
                    value,
                )
            )
    which = " and ".join(f"iteration {one}" for one in sorted(one for one in made if one is not None))
    return layout.sheet_of(
        summary, columns, [f"Counts in phase {phase}" + (f", {which}" if which else "") + ": median of the samples."]
    )


def highlights(summary: s.Summary) -> list[str]:
    """Lines for the largest vCPU count: how much each kernel's time has grown there."""
    found = []
    for metric in s.MAIN_TIMES:
        lines = [curve for curve in curves(summary, metric) if curve.growth]
        most = max((vcpus for curve in lines for vcpus in curve.growth), default=1)
        parts = [
            f"{layout.ratio_text(curve.growth[most])} on {curve.kernel}" for curve in lines if most in curve.growth
        ]
        if most > 1:
            found.append(f"Growth of {name(summary, metric)} from 1 to {most} vCPUs: {', '.join(parts)}")
    return found
