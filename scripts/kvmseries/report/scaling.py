"""How time grows with vCPUs: curves, sensitivity bands, and how far they are off published ones.

Growth is a time relative to that of 1 vCPU of the same curve, so that machines and models whose page faults
cost differently can be compared.  Times with iterations are those of one: the published figures'
own, else the last.  Growth means nothing on the wall clock of an emulator, which gets no curves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
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

    def number(value: float | None, text: Callable[[float], str] = layout.ratio_text) -> layout.Cell:
        return layout.Cell() if value is None else layout.Cell(text(value))

    def page(curve: Curve, vcpus: int) -> layout.Cell:
        return layout.value_cell(curve.values[vcpus], lambda seconds: f"{seconds / (count or 1) * 1e9:,.0f}")

    def band(curve: Curve, vcpus: int) -> layout.Cell:
        ends = [layout.ratio_text(end) for end in curve.band.get(vcpus, ())]
        return layout.Cell(layout.TO.join(ends)) if ends else layout.Cell()

    head, theirs = name(summary, metric), "published"
    columns: list[tuple[layout.Head, Callable[[Curve, int], layout.Cell]]] = [
        (layout.Head(head, "ns a page" if count else "ns"), page),
        (layout.Head(head, "growth"), lambda curve, vcpus: number(curve.growth.get(vcpus))),
    ]
    if any(curve.band for curve in lines):
        columns.append((layout.Head(head, "band"), band))
    if any(curve.column for curve in lines):
        columns += [
            (
                layout.Head(theirs, "ns a page"),
                lambda curve, vcpus: number(curve.column.page_ns(vcpus) if curve.column else None, layout.count_text),
            ),
            (
                layout.Head(theirs, "growth"),
                lambda curve, vcpus: number(curve.column.growth.get(vcpus) if curve.column else None),
            ),
            (layout.Head(theirs, "error of growth"), lambda curve, vcpus: number(curve.error(vcpus), error_text)),
        ]
    blocks: list[layout.Block] = [
        (
            vcpus,
            [
                (s.short(curve.kernel), [cell(curve, vcpus) for _, cell in columns])
                for curve in lines
                if vcpus in curve.values
            ],
        )
        for vcpus in summary.vcpus
    ]
    notes = [f"{head}. Growth: relative to the time with 1 vCPU of the same kernel."]
    if any(curve.band for curve in lines):
        notes[0] += (
            f" Band: least and greatest growth over {len(summary.variants)} variants of "
            "the model, one parameter halved or doubled in each."
        )
    return layout.Sheet(
        [column for column, _ in columns], [block for block in blocks if block[1]], notes + errors(lines)
    )


def sheets(summary: s.Summary) -> list[layout.Sheet]:
    """The Sheets of the main times whose growth is known."""
    return [sheet(summary, metric) for metric in growing(summary)]


def growing(summary: s.Summary) -> list[str]:
    """The main times of which a kernel's growth is known at more than 1 vCPU."""
    shown = {column.name for column in summary.columns()}
    return [
        metric
        for metric in s.MAIN_TIMES
        if metric in shown and any(len(curve.growth) > 1 for curve in curves(summary, metric))
    ]
