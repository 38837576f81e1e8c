"""How time grows with vCPUs: curves, sensitivity bands, and how far they are off published ones.

Growth is a time relative to that of 1 vCPU of the same curve, so that machines and models whose page faults
cost differently can be compared.  Times with iterations are those of one: the published figures'
own, else the last.  Growth means nothing on the wall clock of an emulator, which gets no curves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..data import published, summary as s
from . import layout


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
        errors = {vcpus: self.error(vcpus) for vcpus in sorted(self.growth)}
        known = [(error, vcpus) for vcpus, error in errors.items() if error is not None]
        return max(known, key=lambda pair: abs(pair[0]), default=None)


def chosen(summary: s.Summary, metric: str) -> tuple[int | None, list[published.Column]]:
    """(the iteration that curves of `metric` are of, the published Columns that fit it)."""
    group = summary.group
    columns = [
        column
        for column in published.load()
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
        growth = _growth(values)
        others = [_growth(_values(summary, kernel, metric, iteration, model)) for model in summary.variants]
        ends = {vcpus: [line[vcpus] for line in (growth, *others) if vcpus in line] for vcpus in growth}
        band = {vcpus: (min(all_), max(all_)) for vcpus, all_ in ends.items() if len(all_) > 1}
        column = next((one for one in columns if kernel in one.kernels), None)
        found.append(Curve(kernel, values, growth, band, column))
    return found


def _values(summary: s.Summary, kernel: str, metric: str, iteration: int | None, model: str) -> dict[int, s.Value]:
    values = {vcpus: summary.at(kernel, vcpus, metric, iteration, model) for vcpus in summary.vcpus if vcpus > 0}
    return {vcpus: value for vcpus, value in values.items() if value and value.median > 0}


def _growth(values: Mapping[int, s.Value]) -> dict[int, float]:
    return {vcpus: value.median / values[1].median for vcpus, value in values.items()} if 1 in values else {}


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
    count = published.pages(summary.group.args)
    banded, compared = any(curve.band for curve in lines), any(curve.column for curve in lines)
    head, theirs = name(summary, metric), "published"
    columns = [layout.Head(head, "ns a page" if count else "ns"), layout.Head(head, "growth")]
    columns += [layout.Head(head, "band")] * banded
    columns += [layout.Head(theirs, of) for of in ("ns a page", "growth", "error of growth") if compared]

    def number(value: float | None, text: layout.Text = layout.ratio_text) -> layout.Cell:
        return layout.Cell() if value is None else layout.Cell(text(value))

    def cells(curve: Curve, vcpus: int) -> list[layout.Cell]:
        found = [
            layout.value_cell(curve.values[vcpus], lambda seconds: f"{seconds / (count or 1) * 1e9:,.0f}"),
            number(curve.growth.get(vcpus)),
        ]
        if banded:
            ends = map(layout.ratio_text, curve.band.get(vcpus, ()))
            found.append(layout.Cell(layout.TO.join(ends) or layout.MISSING))
        if compared:
            column = curve.column
            found.append(number(column.page_ns(vcpus) if column else None, layout.count_text))
            found.append(number(column.growth.get(vcpus) if column else None))
            found.append(number(curve.error(vcpus), error_text))
        return found

    blocks: list[layout.Block] = [
        (vcpus, [(s.short(curve.kernel), cells(curve, vcpus)) for curve in lines if vcpus in curve.values])
        for vcpus in summary.vcpus
    ]
    note = f"{head}. Growth: relative to the time with 1 vCPU of the same kernel."
    if banded:
        note += (
            f" Band: least and greatest growth over {len(summary.variants)} variants of "
            "the model, one parameter halved or doubled in each."
        )
    return layout.Sheet(columns, [block for block in blocks if block[1]], [note, *errors(lines)])


def growing(summary: s.Summary) -> list[str]:
    """The main times of which a kernel's growth is known at more than 1 vCPU."""
    shown = {column.name for column in summary.columns()}
    return [
        metric
        for metric in s.MAIN_TIMES
        if metric in shown and any(len(curve.growth) > 1 for curve in curves(summary, metric))
    ]
