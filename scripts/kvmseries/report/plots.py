"""Plots of a Summary: SVG to embed in the page, and README's PNG.

Drawn with matplotlib's Figure and no pyplot, hence without a display and without global state.
SVG colours are CSS variables of style.py, so that plots follow light and dark.
"""

from __future__ import annotations

import functools
import html
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ..base import files
from ..data import summary as s
from ..data.shape import Results, Trace
from . import aging, layout, merging, migrating, own, scaling, style

SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "text.color": style.light("ink"),
    "axes.labelcolor": style.light("ink"),
    "axes.titlecolor": style.light("ink"),
    "axes.edgecolor": style.light("muted"),
    "grid.color": style.light("line"),
    "xtick.color": style.light("muted"),
    "ytick.color": style.light("muted"),
    "xtick.labelcolor": style.light("ink"),
    "ytick.labelcolor": style.light("ink"),
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}
MARKERS = "so^Dv"
ROLE_MARKERS = {"kernel-base": "s", "kernel-series": "^", "kernel-1": "o", "kernel-2": "D", "kernel-3": "v"}

# Of a stack of bars: label, colour role, value(kernel, vcpus).
Layer = tuple[str, str, layout.Getter]
# Of a legend: label, what it explains.
Handle = tuple[str, Any]
# Ratios against vCPUs: label, colour role, marker, {vCPUs: ratio}, other keys of the line.
Ratios = tuple[str, str, str, Mapping[int, float], Mapping[str, Any]]
Draw = Callable[[], Optional[Figure]]


def compact(number: float, _position: object = None) -> str:
    """A count for an axis: 0, 950, 1.2k, 35k, 4.7M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= unit * 0.9995:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def _layers(summary: s.Summary, kinds: Iterable[tuple[str, str]]) -> list[Layer]:
    """Layers of a stack of bars, [(label, colour role, value(kernel, vcpus))], of (label, metric):
    without those of which nothing is known."""
    return [(label, label, layout.getter(summary, metric)) for label, metric in kinds if summary.has(metric)]


def acquisition_layers(summary: s.Summary) -> list[Layer]:
    """write and read acquisitions of mmu_lock."""
    return _layers(summary, (("write", s.WRITES), ("read", s.READS)))


def contention_layers(summary: s.Summary) -> list[Layer]:
    """write and read contentions; where they are not told apart, all."""
    layers = _layers(summary, (("write", s.CONTENDED_WRITES), ("read", s.CONTENDED_READS)))
    return layers or _layers(summary, (("all", s.CONTENDED),))


def phase_layers(summary: s.Summary) -> list[Layer]:
    """Contentions by the phase of the test; those of the whole test if phases are unknown."""

    def layer(phase: str) -> Layer:
        return (
            phase,
            f"phase-{phase}" if phase in s.PHASES else "all",
            lambda kernel, vcpus: summary.contended(kernel, vcpus, phase),
        )

    layers = [
        layer(phase)
        for phase in summary.phases()
        if any(summary.contended(kernel, vcpus, phase) for kernel in summary.kernels for vcpus in summary.vcpus)
    ]
    return layers or contention_layers(summary)


def _stack(axes: Axes, at: float, width: float, layers: Sequence[Layer], where: tuple[str, int], turned: bool) -> float:
    """Draw one bar of layers at `at`; above it the total, which tells 0 from not measured.

    where: (kernel, vcpus); turned: write the total upwards.  Returns the bar's height.
    """
    height, known = 0.0, 0
    for _, role, value in layers:
        found = value(*where)
        if found is None:
            continue
        known += 1
        axes.bar(
            at,
            found.median,
            width,
            bottom=height,
            color=style.light(role),
            edgecolor=style.light("paper"),
            linewidth=0.6,
        )
        height += found.median
    text = compact(height) if known == len(layers) else f"\u2265{compact(height)}"
    axes.annotate(
        text if known else layout.MISSING,
        (at, height),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7.5,
        rotation=90 if turned else 0,
        color=style.light("muted"),
    )
    return height


def _bars(
    axes: Axes,
    vcpus: Sequence[int],
    kernels: Sequence[str],
    layers: Sequence[Layer],
    title: str,
    inches: float,
    unit: str = "",
) -> None:
    """Stacked bars: for each vCPU count one bar for each kernel.  inches: how wide axes are; unit: of the y axis."""
    axes.set_title(title)
    if not layers:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=style.light("muted"))
        axes.set_axis_off()
        return
    names = [s.short(kernel) for kernel in kernels]
    room = inches * 72 * 0.84 / max(len(vcpus) * len(kernels), 1)  # points for each bar
    longest = max(map(len, names)) * 7.5 * 0.62  # points, at font size 7.5
    turned, steep = longest > room, room < 26
    places, highest = [], 0.0
    for number, count in enumerate(vcpus):
        for index, kernel in enumerate(kernels):
            at = number + (index - (len(kernels) - 1) / 2) * 0.84 / len(kernels)
            places.append(at)
            highest = max(highest, _stack(axes, at, 0.76 / len(kernels), layers, (kernel, count), steep))
    axes.xaxis.remove_overlapping_locs = False
    axes.set_xticks(places, names * len(vcpus), minor=True, fontsize=7.5, rotation=90 if turned else 0)
    axes.set_xticks(range(len(vcpus)), map(str, vcpus))
    axes.tick_params(axis="x", which="major", length=0, pad=(longest if turned else 8) + 7)
    axes.tick_params(axis="x", which="minor", length=0, pad=3)
    axes.set_xlim(-0.6, len(vcpus) - 0.4)
    axes.set_xlabel("vCPUs")
    if unit:
        axes.set_ylabel(unit)
    axes.set_ylim(0, highest * (1.18 if steep else 1.1) or 1)
    axes.yaxis.set_major_formatter(FuncFormatter(compact))


def _legend(figure: Figure, layers: Iterable[Layer], side: str = "left") -> None:
    """A legend above the plots, of layers in the order in which they are stacked."""
    seen = dict.fromkeys((label, role) for label, role, _ in layers)
    if seen:
        figure.legend(
            handles=[Patch(color=style.light(role), label=label) for label, role in seen],
            loc=f"outside upper {side}",
            ncols=8,
            handlelength=1.1,
            columnspacing=1.4,
        )


def _figure(width: float, height: float, between: float | None = None) -> Figure:
    """An empty Figure, inches; between: the share of its height that is left between rows of axes."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(hspace=between))


def lock_figure(
    summary: s.Summary,
    kernels: Sequence[str] | None = None,
    size: tuple[float, float] = (10, 4.1),
    title: str | None = None,
) -> Figure:
    """A Figure: acquisitions and contentions, write and read stacked, of kernels (None: all)."""
    left, right = acquisition_layers(summary), contention_layers(summary)
    kernels = kernels or summary.kernels
    figure = _figure(*size)
    panels = figure.subplots(1, 2)
    for axes, layers, name in zip(panels, (left, right), ("acquisitions", "contentions")):
        _bars(axes, summary.vcpus, kernels, layers, f"mmu_lock {name}", size[0] / 2 - 0.6, f"{name}, count")
    if title:
        figure.suptitle(title, x=0.008, ha="left", fontsize=11, fontweight="bold", color=style.light("ink"))
    _legend(figure, left + right, "right" if title else "left")
    return figure


def contention_figure(summary: s.Summary) -> Figure | None:
    """A Figure: contentions stacked by phase, or None where no contention was counted."""
    layers = phase_layers(summary)
    if not layers:
        return None
    figure = _figure(10, 3.8)
    by = "by phase" if layers[0][0] in summary.phases() else "of the whole test"
    _bars(
        figure.subplots(),
        summary.vcpus,
        summary.kernels,
        layers,
        f"mmu_lock contentions {by}",
        9.3,
        "contentions, count",
    )
    _legend(figure, layers)
    return figure


def _kernel_roles(kernels: Iterable[str]) -> dict[str, str]:
    others = [kernel for kernel in kernels if kernel not in (s.BASE, s.SERIES)]
    roles = {kernel: f"kernel-{number % 3 + 1}" for number, kernel in enumerate(others)}
    return {**roles, s.BASE: "kernel-base", s.SERIES: "kernel-series"}


def _vcpu_axis(axes: Axes, vcpus: Sequence[int]) -> None:
    """Make x the number of vCPUs, log2, with these ticks."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(vcpus, map(str, vcpus))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(min(vcpus) * 0.85, max(vcpus) * 1.18)
    axes.set_xlabel("vCPUs")


def _log_axis(axes: Axes, low: float, high: float) -> None:
    """Make y logarithmic, with ticks of 1, 2 and 5, and room around low to high: at least a factor of 10 in all."""
    axes.set_yscale("log")
    room = max(1.4, (10 * low / high) ** 0.5)
    axes.set_ylim(low / room, high * room)
    axes.yaxis.set_major_locator(
        FixedLocator(
            [digit * 10.0**power for power in range(-9, 12) for digit in ((1, 2, 5) if high / low < 300 else (1,))]
        )
    )
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.0f}" if number >= 1 else f"{number:g}"))


def _unit(values: Iterable[s.Value]) -> tuple[str, float]:
    """(unit, how many make a second) for an axis of these Values."""
    greatest = max((value.median for value in values), default=0)
    return next(
        ((unit, scale) for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)) if greatest * scale >= 1), ("ns", 1e9)
    )


def _lines(axes: Axes, summary: s.Summary, metric: str) -> None:
    """One metric against vCPUs, both logarithmic: medians, error bars from least to greatest sample."""
    unit, scale = _unit(summary.values(metric))
    roles = _kernel_roles(summary.kernels)
    ends = []
    for number, kernel in enumerate(summary.kernels):
        found = [(count, summary.value(kernel, count, metric)) for count in summary.vcpus]
        points = [(count, value) for count, value in found if value and value.low > 0]
        shift = 1 + 0.025 * (number - (len(summary.kernels) - 1) / 2)  # no bar hides another
        middle = [value.median * scale for _, value in points]
        spread = [
            [(value.median - value.low) * scale for _, value in points],
            [(value.high - value.median) * scale for _, value in points],
        ]
        ends += [end * scale for _, value in points for end in (value.low, value.high)]
        if points:
            axes.errorbar(
                [count * shift for count, _ in points],
                middle,
                yerr=spread,
                marker=MARKERS[number % len(MARKERS)],
                color=style.light(roles[kernel]),
                capsize=2.5,
                elinewidth=1,
                label=kernel,
            )
    note = layout.iterations_note(summary, metric)
    axes.set_title(", ".join(filter(None, (metric.replace("_", " "), note))))
    _vcpu_axis(axes, summary.vcpus)
    if ends:
        _log_axis(axes, min(ends), max(ends))
    axes.set_ylabel(f"time, {unit}")


def time_figure(summary: s.Summary) -> Figure | None:
    """A Figure of the times that absolute_figure() does not have, against vCPUs, or None if there is none."""
    drawn = [metric for metric in s.MAIN_TIMES if scaling.curves(summary, metric)]
    metrics = [metric for metric in s.MAIN_TIMES + s.OTHER_TIMES if metric not in drawn and summary.has(metric)]
    if not metrics or min(summary.vcpus) < 1:
        return None
    rows = (len(metrics) + 1) // 2
    figure = _figure(10, 3.1 * rows + 0.4, 0.06)
    panels = figure.subplots(rows, 2, squeeze=False).flatten()
    for axes, metric in zip(panels, metrics):
        _lines(axes, summary, metric)
    for axes in panels[len(metrics) :]:
        axes.set_axis_off()
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="outside upper left", ncols=6)
    return figure


PUBLISHED_LINE: dict[str, Any] = {"marker": "x", "markersize": 4, "linewidth": 1.2, "linestyle": (0, (4, 2))}


def _absolute_axes(axes: Axes, summary: s.Summary, metric: str, roles: Mapping[str, str]) -> list[Handle]:
    """The time a page (or the time, where no page count is known) of one metric against vCPUs, both logarithmic: kernels
    solid, published columns dashed.  Returns [(label, handle)] for a legend."""
    pages, handles, ends = scaling.pages(summary.group.args), [], []
    curves = scaling.curves(summary, metric)
    unit, scale = (
        ("ns", 1e9 / pages) if pages else _unit([value for curve in curves for value in curve.values.values()])
    )
    for curve in curves:
        line: dict[str, Any] = {"color": style.light(roles[curve.kernel]), "marker": ROLE_MARKERS[roles[curve.kernel]]}
        points = sorted((vcpus, value.median * scale) for vcpus, value in curve.values.items())
        axes.plot(*zip(*points), **line)
        handles.append((curve.kernel, Line2D([], [], **line)))
        ends += points
    drawn = [curve.kernel for curve in curves]
    for column in scaling.chosen(summary, metric)[1] if pages else ():
        kernel = next((one for one in column.kernels if one in drawn), None)
        line = {"color": style.light(roles[kernel] if kernel else "muted"), **PUBLISHED_LINE}
        points = sorted((vcpus, seconds / column.pages * 1e9) for vcpus, seconds in column.seconds.items())
        axes.plot(*zip(*points), **line)
        handles.append((f"published: {column.what}", Line2D([], [], **line)))
        ends += points
    axes.set_title(scaling.name(summary, metric))
    _vcpu_axis(axes, sorted({point[0] for point in ends}))
    _log_axis(axes, min(point[1] for point in ends), max(point[1] for point in ends))
    axes.set_ylabel("time a page, ns" if pages else f"time, {unit}")
    return handles


def absolute_figure(summary: s.Summary) -> Figure | None:
    """A Figure of the main times against vCPUs, or None if there is none."""
    metrics = [metric for metric in s.MAIN_TIMES if scaling.curves(summary, metric)]
    if not metrics:
        return None
    return _panels(_figure(10, 4.9), [(_absolute_axes, summary, metric) for metric in metrics])


def _growth_axes(axes: Axes, summary: s.Summary, metric: str, roles: Mapping[str, str]) -> list[Handle]:
    """Growth of one metric against vCPUs, both log2: kernels solid, with their sensitivity band;
    published curves dashed, in the colour of the kernel that stands for them.

    roles: kernel to colour role.  Returns [(label, handle)] for a legend.
    """
    curves = [curve for curve in scaling.curves(summary, metric) if curve.growth]
    handles: list[Handle] = []
    for curve in curves:
        colour, marker = style.light(roles[curve.kernel]), ROLE_MARKERS[roles[curve.kernel]]
        points = sorted(curve.growth.items())
        axes.plot(*zip(*points), marker=marker, color=colour)
        handles.append((curve.kernel, Line2D([], [], marker=marker, color=colour)))
        if curve.band:
            banded = sorted(curve.band)
            axes.fill_between(
                banded,
                [curve.band[vcpus][0] for vcpus in banded],
                [curve.band[vcpus][1] for vcpus in banded],
                color=colour,
                alpha=0.22,
                linewidth=0,
            )
    if any(curve.band for curve in curves):
        handles.append(("sensitivity band", Patch(color=style.light("muted"), alpha=0.3)))
    drawn = [curve.kernel for curve in curves]
    everything = [growth for curve in curves for growth in curve.growth.items()]
    for column in scaling.chosen(summary, metric)[1]:
        kernel = next((one for one in column.kernels if one in drawn), None)
        line: dict[str, Any] = {"color": style.light(roles[kernel] if kernel else "muted"), **PUBLISHED_LINE}
        points = sorted(column.growth.items())
        everything += points
        axes.plot(*zip(*points), **line)
        handles.append((f"published: {column.what}", Line2D([], [], **line)))
    axes.set_title(f"growth of {scaling.name(summary, metric)}")
    _vcpu_axis(axes, sorted({point[0] for point in everything}))
    axes.set_yscale("log", base=2)
    highest = max(point[1] for point in everything)
    axes.set_ylim(min(0.9, 0.9 * min(point[1] for point in everything)), max(2, highest) * 1.2)
    axes.yaxis.set_major_locator(FixedLocator([2.0**power for power in range(-20, 40)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    axes.set_ylabel("time / time with 1 vCPU")
    return handles


def _growing(summary: s.Summary, metrics: Sequence[str] = s.MAIN_TIMES) -> list[str]:
    """The metrics whose growth is known at more than 1 vCPU."""
    return [metric for metric in metrics if any(len(curve.growth) > 1 for curve in scaling.curves(summary, metric))]


def _panels(figure: Figure, panels: Sequence[tuple[Callable[..., list[Handle]], s.Summary, str]]) -> Figure:
    """Draw (how, summary, metric) side by side, one legend above."""
    handles: dict[str, Any] = {}
    roles = _kernel_roles(dict.fromkeys(kernel for _, summary, _ in panels for kernel in summary.kernels))
    for axes, (draw, summary, metric) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        for label, handle in draw(axes, summary, metric, roles):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="outside upper left", ncols=4, handlelength=2.6)
    return figure


def growth_figure(summary: s.Summary) -> Figure | None:
    """A Figure of the main times' growth with vCPUs, or None if there is none."""
    metrics = _growing(summary)
    if not metrics:
        return None
    return _panels(_figure(10, 4.9), [(_growth_axes, summary, metric) for metric in metrics])


PUBLISHED = {"markersize": 6, "linewidth": 1.2, "linestyle": (0, (4, 2)), "fillstyle": "none"}


def _ratio_axes(axes: Axes, curves: Iterable[Ratios], title: str, vcpus: Sequence[int]) -> list[Line2D]:
    """Draw ratios against vCPUs (log2), the ticks: curves is [(label, colour role, marker, {vCPUs:
    ratio}, other keys of the line)].  Returns handles for a legend."""
    handles = []
    for label, role, marker, points, more in curves:
        line = {"color": style.light(role), "marker": marker, **more}
        axes.plot(*zip(*sorted(points.items())), **line)
        handles.append(Line2D([], [], label=label, **line))
    axes.axhline(1, color=style.light("muted"), linewidth=0.8, zorder=0)
    axes.set_title(title)
    _vcpu_axis(axes, vcpus)
    axes.set_ylabel("ratio")
    return handles


def _below(figure: Figure, text: str) -> None:
    figure.supxlabel("\n".join(textwrap.wrap(text, 175)), x=0.008, ha="left", fontsize=7.5, color=style.light("muted"))


def _what(group: s.Group) -> str:
    """What was run, for the text below a picture."""
    return (
        f"{group.test} {group.args}, {group.series}, {group.arch}, cpu {group.cpu} {group.params}".rstrip()
        + f"; {group.clock_name}"
    )


def aging_figure(summary: s.Summary, size: tuple[float, float] = (10, 5.2), more: str = "") -> Figure | None:
    """A Figure of aging passes beside vCPUs and of vCPUs beside aging, ours and published, or None
    where no ratio is known.  more: text below, such as what was run, before the source."""
    left, right = aging.curves(summary)
    if not left and not right:
        return None
    roles = _kernel_roles(dict.fromkeys(kernel for _, kernel, _ in left + right if kernel))

    def ours(curves: Iterable[aging.Drawn]) -> list[Ratios]:
        return [
            (label, roles[kernel] if kernel else "kernel-1", ROLE_MARKERS[roles[kernel]] if kernel else "o", points, {})
            for label, kernel, points in curves
        ]

    passing, taking = ours(left), ours(right)
    for marker, entry in zip("x+D*v", aging.entries()):
        passing.append((f"published, lockless/locked: {entry.what}", "kernel-1", marker, entry.passes, PUBLISHED))
        for how, role in (("locked", s.BASE), ("lockless", s.SERIES)):
            if entry.slowdown[how]:
                taking.append((f"published, {how}: {entry.what}", roles[role], marker, entry.slowdown[how], PUBLISHED))
    figure = _figure(*size)
    panels = [(passing, f"aging pass while vCPUs are {aging.kind(summary)[2]}: ratio of times")]
    # Published figures alone compare with nothing.
    if right:
        panels.append((taking, "vCPUs: time with aging / time without"))
    every: list[Axes] = figure.subplots(1, len(panels), squeeze=False).ravel().tolist()
    first = every[0]
    vcpus = sorted({count for drawn, _ in panels for *_, points, _ in drawn for count in points})
    handles = [_ratio_axes(axes, drawn, title, vcpus) for axes, (drawn, title) in zip(every, panels)]
    first.set_yscale("log")
    ratios = [ratio for *_, points, _ in passing for ratio in points.values()]
    first.set_ylim(min(ratios) * 0.7, max(*ratios, 1) * 1.5)
    first.yaxis.set_major_locator(FixedLocator([digit * 10.0**power for power in range(-4, 6) for digit in (1, 3)]))
    first.yaxis.set_minor_locator(NullLocator())
    for axes in every:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:.4g}"))
    # A column of the legend for each panel; it is filled column by column.
    rows = max(map(len, handles))
    figure.legend(
        handles=[
            handle
            for side in handles
            for handle in side + [Line2D([], [], linestyle="", label="")] * (rows - len(side))
        ],
        loc="outside upper left",
        ncols=2,
        handlelength=2.6,
        columnspacing=8,
    )
    if more:
        _below(figure, f"{more}. {aging.source()}")
    return figure


def _merging_layers(summary: s.Summary) -> tuple[list[Layer], list[Layer]]:
    """(layers of the time that ksmd and vCPUs take, in layout.time_unit()'s unit, those of exits per
    merged page read), of the last iteration; what noise made negative is 0.  None of what is not known,
    nor by the wall clock of an emulator, which is no evidence."""

    def value(kernel: str, vcpus: int, metric: str, scale: float) -> s.Value | None:
        found = merging.LAST.value(summary, kernel, vcpus, metric)
        return found and s.Value(
            {key: max(number, 0) * scale for key, number in found.samples.items()}, found.iterations
        )

    def layers(kinds: Iterable[tuple[str, str, str]], scale: float) -> list[Layer]:
        return [
            (label, role, functools.partial(value, metric=metric, scale=scale))
            for label, role, metric in kinds
            if merging.values(summary, metric)
        ]

    if not merging.is_merging(summary) or summary.group.emulated:
        return [], []
    times = [(label, role, metric) for (label, metric), role in zip(merging.PARTS, ("all", "read", "write"))]
    return (layers(times, _merging_unit(summary)[1]), layers([("vCPUs read", "read", merging.READ_EXITS)], 1))


def _merging_unit(summary: s.Summary) -> tuple[str, float, int]:
    return layout.time_unit([value for _, metric in merging.PARTS for value in merging.values(summary, metric)])


def merging_figure(summary: s.Summary, size: tuple[float, float] = (10, 4.3), more: str = "") -> Figure | None:
    """A Figure of the time that ksmd and vCPUs take, stacked, and of exits per merged page read; None
    where neither is known.  more: text below, such as what was run."""
    left, right = _merging_layers(summary)
    if not left and not right:
        return None
    figure = _figure(*size)
    panels = figure.subplots(1, 2)
    for axes, layers, name in zip(
        panels, (left, right), (merging.TOGETHER, "exits per merged page read (0: what was merged stayed mapped)")
    ):
        _bars(
            axes,
            summary.vcpus,
            summary.kernels,
            layers,
            name,
            size[0] / 2 - 0.6,
            f"time, {_merging_unit(summary)[0]}" if axes is panels[0] else "exits a page",
        )
    _legend(figure, left or right)
    if more:
        _below(figure, more)
    return figure


_TRACKING_HATCH = ("", "///", "...", "xxx", "---")


def migration_figure(family: migrating.Family) -> Figure | None:
    """A Figure of totals of migrations: for each figure of migrating.BARS bars for each vCPU count, way to track dirty pages
    and QEMU; None where nothing was measured."""
    bars = [bar for bar in migrating.BARS if any(part.has(bar[1]) for part in family.parts.values())]
    if not bars:
        return None
    rows = (len(bars) + 1) // 2
    figure = _figure(10, 2.7 * rows + 0.5, 0.06)
    panels = figure.subplots(rows, 2, squeeze=False).flatten()
    roles = _kernel_roles(family.kernels)
    for axes, bar in zip(panels, bars):
        _migration_bars(axes, family, bar, roles)
    for axes in panels[len(bars) :]:
        axes.set_axis_off()
    handles = [Patch(color=style.light(roles[kernel]), label=kernel) for kernel in family.kernels]
    handles += [
        Patch(facecolor=style.light("paper"), edgecolor=style.light("muted"), hatch=hatch, label=tracking)
        for tracking, hatch in zip(family.parts, _TRACKING_HATCH)
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=8, handlelength=1.6, columnspacing=1.4)
    return figure


def _migration_bars(
    axes: Axes, family: migrating.Family, bar: tuple[str, str, float], roles: Mapping[str, str]
) -> None:
    title, metric, scale = bar
    count = len(family.parts) * len(family.kernels)
    for number, vcpus in enumerate(family.vcpus):
        for index, (hatch, part) in enumerate(zip(_TRACKING_HATCH, family.parts.values())):
            for second, kernel in enumerate(family.kernels):
                value = part.value(kernel, vcpus, metric)
                if value:
                    place = index * len(family.kernels) + second
                    axes.bar(
                        number + (place - (count - 1) / 2) * 0.84 / count,
                        max(value.median, 0) * scale,
                        0.8 / count,
                        color=style.light(roles[kernel]),
                        edgecolor=style.light("paper"),
                        hatch=hatch,
                        linewidth=0.4,
                    )
    axes.set_title(title.partition(",")[0])
    unit = title.partition(", ")[2]
    axes.set_ylabel(f"time, {unit}" if unit else "MB" if title.startswith("MB") else "count")
    axes.set_xticks(range(len(family.vcpus)), map(str, family.vcpus))
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("vCPUs")
    axes.yaxis.set_major_formatter(FuncFormatter(compact))


def trace_figures(family: migrating.Family) -> list[tuple[str, Draw]]:
    """[(what it is of, function that draws it)]: a Figure of migrations over time for each vCPU count and way to track dirty
    pages that has traces, the most vCPUs first."""
    places = sorted(
        {(trace["vcpus"], trace["config"]) for trace in family.traces},
        key=lambda place: (-place[0], list(family.parts).index(place[1]) if place[1] in family.parts else 9),
    )
    return [
        (
            f"{vcpus} vCPU{'s' * (vcpus > 1)}, {config}",
            functools.partial(
                _trace_figure,
                family,
                [trace for trace in family.traces if (trace["vcpus"], trace["config"]) == (vcpus, config)],
            ),
        )
        for vcpus, config in places
    ]


def _trace_figure(family: migrating.Family, traces: Sequence[Trace]) -> Figure:
    """A Figure of these traces over time: what is left to send (MB), throttle (%), bandwidth (MB/s)."""
    figure = _figure(10, 6, 0.05)
    panels = figure.subplots(3, 1, sharex=True)
    roles = _kernel_roles(family.kernels)
    handles: dict[str, Any] = {}
    for trace in traces:
        colour = style.light(roles[trace["kernel"]])
        rows = trace["rows"]
        times = [row[0] for row in rows]
        handles.setdefault(trace["kernel"], Line2D([], [], color=colour))
        panels[0].plot(times, [row[1] / 1e6 for row in rows], color=colour)
        panels[1].step(times, [row[2] for row in rows], color=colour, where="post")
        rates = [
            (later[3] - row[3]) / (later[0] - row[0]) / 1e6 for row, later in zip(rows, rows[1:]) if later[0] > row[0]
        ]
        panels[2].step(
            [row[0] for row, later in zip(rows, rows[1:]) if later[0] > row[0]], rates, color=colour, where="post"
        )
        passes = [later[0] for row, later in zip(rows, rows[1:]) if later[4] > row[4]]
        panels[0].plot(passes, [0] * len(passes), "|", color=colour, markersize=7)
    for axes, title, unit in zip(
        panels, ("left to send; | is a sync pass", "throttle of the vCPUs", "bandwidth used"), ("MB", "%", "MB/s")
    ):
        axes.set_title(title)
        axes.set_ylabel(unit)
        axes.set_ylim(0, axes.dataLim.y1 * 1.1 or 1)
    panels[-1].set_xlabel("time since the migration began, s")
    figure.legend(handles.values(), handles, loc="outside upper left", ncols=4)
    return figure


def svg(draw: Draw, name: str, label: str) -> str | None:
    """The Figure that draw() returns as inline <svg>, a str; None if it returns None.

    name: makes the ids in the SVG unique in the page.  label: what it shows, for screen readers.
    """
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": name}):
        figure = draw()
        if figure is None:
            return None
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    for role in style.PALETTE:
        text = text.replace(style.light(role), f"var(--{role})")
    text = re.sub(r"(font|font-family):([^;\"]*)'DejaVu Sans'[^;\"]*", r"\1:\2inherit", text)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box, "matplotlib writes a viewBox"
    inside = text[text.index(">") + 1 :]
    return f'<svg {box[0]} role="img" aria-label="{html.escape(label)}" class="plot">{inside}'


def plot_png(results: Sequence[Results], out: str | Path) -> None:
    """Write README's picture: the dirty memory time against vCPUs, and its growth, of the group that has the most published
    curves and vCPU counts.

    Where no clock can tell growth, lock acquisitions and contentions per vCPU count: base against
    series (or the last milestone), for the group with the most vCPU counts among those that have
    lock counts.  Where all groups are of access_tracking_stress_test: aging, of the group with the
    most vCPU counts, if possible one with runs without aging.  Where all are of change_pte_test:
    merging, of the group with the most vCPU counts.

    Raises Fail if `out` cannot be written.
    """
    everything = own.summarise(results)
    summaries = [summary for summary in everything if not own.of(summary)]
    ageing = (
        []
        if summaries
        else sorted(
            (summary for summary in everything if aging.is_aging(summary) and any(aging.curves(summary))),
            key=lambda one: (not one.alone, -len(one.vcpus)),
        )
    )
    merges = (
        []
        if summaries or ageing
        else sorted(
            (summary for summary in everything if any(_merging_layers(summary))), key=lambda one: -len(one.vcpus)
        )
    )
    candidates = [summary for summary in summaries if acquisition_layers(summary) or contention_layers(summary)]
    growing = [summary for summary in summaries if _growing(summary, [s.DIRTY])]
    growing.sort(key=lambda one: (-len(scaling.chosen(one, s.DIRTY)[1]), -len(one.vcpus)))
    with matplotlib.rc_context({**SETTINGS, "figure.facecolor": style.light("paper")}):
        if ageing:
            figure = aging_figure(ageing[0], (10, 5.6), _what(ageing[0].group))
        elif merges:
            figure = merging_figure(merges[0], (10, 5 / 1.2), _what(merges[0].group))
        elif growing:
            best = growing[0]
            figure = _panels(_figure(10, 5 / 1.2), [(how, best, s.DIRTY) for how in (_absolute_axes, _growth_axes)])
            _below(figure, _what(best.group))
        elif candidates:
            best = max(candidates, key=lambda one: (bool(one.compared), len(one.vcpus)))
            group = best.group
            title = f"{group.test}, {group.series}, {group.arch}, accel {group.accel}, {group.clock_name}"
            kernels = [s.BASE, best.compared] if best.compared else None
            figure = lock_figure(best, kernels, (10, 5 / 1.2), title)
        else:
            figure = _figure(10, 5 / 1.2)
            figure.text(0.5, 0.5, "no lock counts", ha="center")
        assert figure, "what is drawn was chosen by what it has"
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    files.write(out, data.getvalue())
