"""Plots of a Summary: SVG for the page, and README's PNG.

Drawn with matplotlib's Figure and no pyplot, hence without a display and without global state.
"""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullLocator

from ..base import files
from ..data import published, summary as s
from ..data.benchmarks import Column
from ..data.shape import Results
from . import layout, scaling

INK, MUTED, GRID = "#1b2026", "#59636e", "#d4d9de"
SETTINGS = {
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "kvmseries",
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
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}
# Okabe and Ito's palette, darker where it would not stand out: colour-blind readers can tell them apart.
BASE_LINE: dict[str, Any] = {"color": "#555f6a", "marker": "s"}
SERIES_LINE: dict[str, Any] = {"color": "#0072b2", "marker": "^"}
OTHER_LINES: tuple[dict[str, Any], ...] = (
    {"color": "#cc5c00", "marker": "o"},
    {"color": "#008f6b", "marker": "D"},
    {"color": "#b0588c", "marker": "v"},
)
PUBLISHED: dict[str, Any] = {"marker": "x", "markersize": 4, "linewidth": 1.2, "linestyle": (0, (4, 2))}
PANELS = 8  # most of a group's columns that are drawn

Draw = Callable[[], Optional[Figure]]
# How the lines of a kernel are drawn.
Lines = Mapping[str, Mapping[str, Any]]


def _figure(width: float, height: float, between: float | None = None) -> Figure:
    """An empty Figure, inches; between: the share of its height that is left between rows of axes."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(hspace=between))


def _finish(figure: Figure, below: str = "") -> Figure:
    """The Figure with a legend above the plots, each label once, and the text `below`."""
    found = {label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels())}
    if found:
        figure.legend(found.values(), found, loc="outside upper left", ncols=4, handlelength=2.6)
    if below:
        figure.supxlabel("\n".join(textwrap.wrap(below, 175)), x=0.008, ha="left", fontsize=7.5, color=MUTED)
    return figure


def _lines(kernels: Iterable[str]) -> Lines:
    others = [kernel for kernel in kernels if kernel not in (s.BASE, s.SERIES)]
    found = {kernel: OTHER_LINES[number % len(OTHER_LINES)] for number, kernel in enumerate(others)}
    return {**found, s.BASE: BASE_LINE, s.SERIES: SERIES_LINE}


def _plot(axes: Axes, points: Mapping[int, float], label: str, line: Mapping[str, Any]) -> None:
    axes.plot(*zip(*sorted(points.items())), label=label, **line)


def _vcpu_axis(axes: Axes) -> None:
    """Make x the number of vCPUs, log2, with the drawn ones as ticks."""
    vcpus = sorted({int(count) for line in axes.lines for count in line.get_xdata()})
    axes.set_xscale("log", base=2)
    axes.set_xticks(vcpus, map(str, vcpus))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(min(vcpus) * 0.85, max(vcpus) * 1.18)
    axes.set_xlabel("vCPUs")


def _log_axis(axes: Axes) -> None:
    """Make y logarithmic, with ticks of 1, 2 and 5, and room around what is drawn: at least a factor of 10 in all."""
    low, high = axes.dataLim.intervaly
    axes.set_yscale("log")
    room = max(1.4, (10 * low / high) ** 0.5)
    axes.set_ylim(low / room, high * room)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.0f}" if number >= 1 else f"{number:g}")


def _column_axes(axes: Axes, summary: s.Summary, column: Column, lines: Lines) -> None:
    """One column of the table against vCPUs, both logarithmic: medians, error bars from least to greatest sample; dashed,
    published ratios of aging."""
    scale = layout.SCALES.get(column.unit, 1.0)
    for kernel in summary.kernels:
        values = {count: summary.value(kernel, count, column) for count in summary.vcpus}
        known = {count: value for count, value in values.items() if value and value.median > 0}
        if known:
            ends = [(value.median, value.low or value.median, value.high or value.median) for value in known.values()]
            low = [(median - low) * scale if 0 < low <= median else 0 for median, low, _ in ends]
            high = [(high - median) * scale if high >= median else 0 for median, _, high in ends]
            middle = [median * scale for median, _, _ in ends]
            axes.errorbar(list(known), middle, [low, high], capsize=2.5, elinewidth=1, label=kernel, **lines[kernel])
    if "per" in column.alone:
        for what, curves in published.slowdowns().items():
            for how, line in (("locked", BASE_LINE), ("lockless", SERIES_LINE)):
                _plot(axes, curves[how], f"published, {how}: {what}", {**line, **PUBLISHED})
    axes.set_title(f"{column.head}: {column.title}" if column.head != "time" else column.title)
    if axes.lines:
        _vcpu_axis(axes)
        _log_axis(axes)
    axes.set_ylabel({"x": "ratio", "count": "count"}.get(column.unit, column.unit))


def columns_figure(summary: s.Summary, size: tuple[float, float] | None = None, below: str = "") -> Figure | None:
    """A Figure of the first columns of the table, those that are main first, against vCPUs; None where there is none, or one
    vCPU count alone.  size: of a picture, which has four at most; inches."""
    known = [column for column in summary.columns() if not (summary.group.emulated and column.timed)]
    known.sort(key=lambda column: (not column.main, not column.per))
    known = [column for column in known if not column.show][: 4 if size else PANELS]
    if not known or len(summary.vcpus) < 2 or min(summary.vcpus) < 1:
        return None
    rows = (len(known) + 1) // 2
    width, height = size or (10, 2.9 * rows + 0.5)
    figure = _figure(width, height, 0.06)
    panels = figure.subplots(rows, 2, squeeze=False).flatten()
    lines = _lines(summary.kernels)
    for axes, column in zip(panels, known):
        _column_axes(axes, summary, column, lines)
    for axes in panels[len(known) :]:
        axes.set_axis_off()
    return _finish(figure, below)


def _growth_axes(time: Axes, growth: Axes, summary: s.Summary, metric: str, lines: Lines) -> None:
    """The time a page (or the time, where no page count is known) of one metric against vCPUs, and its growth, all
    logarithmic: kernels solid, with their sensitivity band; published curves dashed, in the colour of the kernel that
    stands for them."""
    pages = published.pages(summary.group.args)
    curves = scaling.curves(summary, metric)
    for curve in curves:
        times = {vcpus: value.median * 1e9 / (pages or 1) for vcpus, value in curve.values.items()}
        _plot(time, times, curve.kernel, lines[curve.kernel])
        if curve.growth:
            _plot(growth, curve.growth, curve.kernel, lines[curve.kernel])
        if curve.band:
            vcpus = sorted(curve.band)
            low, high = zip(*(curve.band[count] for count in vcpus))
            color = lines[curve.kernel]["color"]
            growth.fill_between(vcpus, low, high, color=color, alpha=0.22, linewidth=0, label="sensitivity band")
    for column in scaling.chosen(summary, metric)[1]:
        kernel = next((curve.kernel for curve in curves if curve.kernel in column.kernels), None)
        line = {"color": lines[kernel]["color"] if kernel else MUTED, **PUBLISHED}
        if pages:
            times = {vcpus: seconds / column.pages * 1e9 for vcpus, seconds in column.seconds.items()}
            _plot(time, times, f"published: {column.what}", line)
        _plot(growth, column.growth, f"published: {column.what}", line)
    time.set_title(scaling.name(summary, metric))
    time.set_ylabel("time a page, ns" if pages else "time, ns")
    _vcpu_axis(time)
    _log_axis(time)
    growth.set_title(f"growth of {scaling.name(summary, metric)}")
    growth.set_ylabel("time / time with 1 vCPU")
    _vcpu_axis(growth)
    least, most = growth.dataLim.intervaly
    growth.set_yscale("log", base=2)
    growth.set_ylim(0.9 * min(1, least), max(2, most) * 1.2)
    growth.yaxis.set_minor_locator(NullLocator())
    growth.yaxis.set_major_formatter("{x:g}")


def growth_figure(
    summary: s.Summary, metrics: Sequence[str], size: tuple[float, float] = (10, 4.9), below: str = ""
) -> Figure | None:
    """A Figure of these times and of their growth with vCPUs, or None if there is none.  size: of each, inches."""
    if not metrics:
        return None
    figure = _figure(size[0], size[1] * len(metrics), 0.06)
    for (time, growth), metric in zip(figure.subplots(len(metrics), 2, squeeze=False), metrics):
        _growth_axes(time, growth, summary, metric, _lines(summary.kernels))
    return _finish(figure, below)


def trace_figure(summary: s.Summary, vcpus: int) -> Figure:
    """A Figure of migrations with so many vCPUs over time: what is left to send (MB), throttle (%), bandwidth (MB/s)."""
    figure = _figure(10, 6, 0.05)
    left, throttle, bandwidth = panels = figure.subplots(3, 1, sharex=True)
    lines = _lines(summary.kernels)
    for trace in (one for one in summary.traces if one["vcpus"] == vcpus):
        color = lines[trace["kernel"]]["color"]
        rows = trace["rows"]
        times = [row[0] for row in rows]
        pairs = [(row, later) for row, later in zip(rows, rows[1:]) if later[0] > row[0]]
        rates = [(later[3] - row[3]) / (later[0] - row[0]) / 1e6 for row, later in pairs]
        passes = [later[0] for row, later in zip(rows, rows[1:]) if later[4] > row[4]]
        left.plot(times, [row[1] / 1e6 for row in rows], color=color, label=trace["kernel"])
        left.plot(passes, [0] * len(passes), "|", color=color, markersize=7)
        throttle.step(times, [row[2] for row in rows], color=color, where="post")
        bandwidth.step([row[0] for row, _ in pairs], rates, color=color, where="post")
    for axes, title, unit in zip(
        panels, ("left to send; | is a sync pass", "throttle of the vCPUs", "bandwidth used"), ("MB", "%", "MB/s")
    ):
        axes.set_title(title)
        axes.set_ylabel(unit)
        axes.set_ylim(0, axes.dataLim.y1 * 1.1 or 1)
    bandwidth.set_xlabel("time since the migration began, s")
    return _finish(figure)


def rate_figure(summary: s.Summary, vcpus: int) -> Figure | None:
    """A Figure of the rate of a guest's work that is migrated, over time; None if that was not measured."""
    slices = summary.iterations("guest_rate")
    figure = _figure(10, 3)
    axes = figure.subplots()
    lines = _lines(summary.kernels)
    for kernel in summary.kernels if slices else ():
        values = {number: summary.at(kernel, vcpus, "guest_rate", number) for number in slices}
        length = summary.last(kernel, vcpus, "slice_time")
        points = {number: value for number, value in values.items() if value and value.iteration}
        if points and length:
            times = [number * length.median * 1e3 for number in points]
            axes.step(
                times, [one.median for one in points.values()], color=lines[kernel]["color"], where="post", label=kernel
            )
    axes.set_title("the guest's work, of what it did before the migration")
    axes.set_ylim(0)
    axes.set_xlabel("time, ms")
    return _finish(figure) if axes.lines else None


def svg(draw: Draw) -> str | None:
    """The Figure that draw() returns as the source of an <img>; None if it returns None."""
    with matplotlib.rc_context(SETTINGS):
        figure = draw()
        if figure is None:
            return None
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"


def plot_png(results: Sequence[Results], out: str | Path) -> None:
    """Write a picture to the file `out`: the dirty memory time against vCPUs and its growth, of the group that has the most
    published curves and vCPU counts; where no growth is known, the first columns of the group with the most vCPU counts, if
    possible one with runs without aging.

    Raises Fail if `out` cannot be written.
    """
    summaries = s.summarise(results)
    growing = [summary for summary in summaries if s.DIRTY in scaling.growing(summary)]
    growing.sort(key=lambda one: (-len(scaling.chosen(one, s.DIRTY)[1]), -len(one.vcpus)))
    others = sorted(summaries, key=lambda one: (not one.alone, -len(one.vcpus)))
    with matplotlib.rc_context(SETTINGS):
        if growing:
            figure = growth_figure(growing[0], [s.DIRTY], (10, 5 / 1.2), "; ".join(layout.describe(growing[0].group)))
        else:
            drawn = (columns_figure(one, (10, 5.6), "; ".join(layout.describe(one.group))) for one in others)
            figure = next((one for one in drawn if one), None)
        if figure is None:
            figure = _figure(10, 5 / 1.2)
            figure.text(0.5, 0.5, "nothing to draw", ha="center")
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    files.write(out, data.getvalue())
