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
from ..data import published, summary as s
from ..data.benchmarks import Column
from ..data.shape import Results, Trace
from . import layout, scaling, style

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
ROLE_MARKERS = {"kernel-base": "s", "kernel-series": "^", "kernel-1": "o", "kernel-2": "D", "kernel-3": "v"}
PUBLISHED: dict[str, Any] = {"marker": "x", "markersize": 4, "linewidth": 1.2, "linestyle": (0, (4, 2))}
PANELS = 8  # most of a group's columns that are drawn

# Of a legend: label, what it explains.
Handle = tuple[str, Any]
Draw = Callable[[], Optional[Figure]]


def _figure(width: float, height: float, between: float | None = None) -> Figure:
    """An empty Figure, inches; between: the share of its height that is left between rows of axes."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(hspace=between))


def _legend(figure: Figure, handles: Iterable[Handle], columns: int = 4) -> None:
    """A legend above the plots, each label once."""
    found = dict(handles)
    if found:
        figure.legend(found.values(), found, loc="outside upper left", ncols=columns, handlelength=2.6)


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


def _line(kernel: str | None, roles: Mapping[str, str]) -> dict[str, Any]:
    role = roles[kernel] if kernel else "kernel-1"
    return {"color": style.light(role), "marker": ROLE_MARKERS[role]}


def _column_axes(axes: Axes, summary: s.Summary, column: Column, roles: Mapping[str, str]) -> list[Handle]:
    """One column of the table against vCPUs, both logarithmic: medians, error bars from least to greatest sample; dashed,
    published ratios of aging."""
    scale = layout.SCALES.get(column.unit, 1.0)
    handles: list[Handle] = []
    ends: list[float] = []
    vcpus = set(summary.vcpus)
    for kernel in summary.kernels:
        points = [(count, summary.value(kernel, count, column)) for count in summary.vcpus]
        known = [
            (count, value.median, value.low or 0, value.high or 0)
            for count, value in points
            if value and value.median > 0
        ]
        if not known:
            continue
        line = _line(kernel, roles)
        middle = [median * scale for _, median, _, _ in known]
        low = [(median - low) * scale if 0 < low <= median else 0 for _, median, low, _ in known]
        high = [(high - median) * scale if high >= median else 0 for _, median, _, high in known]
        axes.errorbar([count for count, *_ in known], middle, yerr=[low, high], capsize=2.5, elinewidth=1, **line)
        handles.append((kernel, Line2D([], [], **line)))
        ends += middle
    for label, role, more in _published_ratios(column):
        axes.plot(*zip(*sorted(more.items())), color=style.light(role), **PUBLISHED)
        handles.append((label, Line2D([], [], color=style.light(role), **PUBLISHED)))
        ends += more.values()
        vcpus |= set(more)
    axes.set_title(f"{column.head}: {column.title}" if column.head != "time" else column.title)
    _vcpu_axis(axes, sorted(vcpus))
    if ends:
        _log_axis(axes, min(ends), max(ends))
    axes.set_ylabel({"x": "ratio", "count": "count"}.get(column.unit, column.unit))
    return handles


def _published_ratios(column: Column) -> list[tuple[str, str, Mapping[int, float]]]:
    """(label, colour role, {vCPUs: ratio}) of published-aging.yaml: of the vCPUs' time with aging to that without."""
    if "per" not in column.alone:
        return []
    return [
        (f"published, {how}: {entry.what}", role, entry.slowdown[how])
        for entry in published.load_aging()
        for how, role in (("locked", "kernel-base"), ("lockless", "kernel-series"))
        if entry.slowdown[how]
    ]


def columns_figure(summary: s.Summary, size: tuple[float, float] | None = None, more: str = "") -> Figure | None:
    """A Figure of the first columns of the table, those that are main first, against vCPUs; None where there is none, or one
    vCPU count alone.  more: text below."""
    known = [column for column in summary.columns() if not (summary.group.emulated and column.timed)]
    known.sort(key=lambda column: (not column.main, not column.per))
    known = [column for column in known if not column.show][: 4 if more else PANELS]
    if not known or len(summary.vcpus) < 2 or min(summary.vcpus) < 1:
        return None
    rows = (len(known) + 1) // 2
    width, height = size or (10, 2.9 * rows + 0.5)
    figure = _figure(width, height, 0.06)
    panels = figure.subplots(rows, 2, squeeze=False).flatten()
    roles = _kernel_roles(summary.kernels)
    handles = [handle for axes, one in zip(panels, known) for handle in _column_axes(axes, summary, one, roles)]
    for axes in panels[len(known) :]:
        axes.set_axis_off()
    _legend(figure, handles)
    if more:
        _below(figure, more)
    return figure


def _absolute_axes(axes: Axes, summary: s.Summary, metric: str, roles: Mapping[str, str]) -> list[Handle]:
    """The time a page (or the time, where no page count is known) of one metric against vCPUs, both logarithmic: kernels
    solid, published columns dashed.  Returns [(label, handle)] for a legend."""
    pages, handles, ends = scaling.pages(summary.group.args), [], []
    curves = scaling.curves(summary, metric)
    scale = 1e9 / (pages or 1)
    for curve in curves:
        line: dict[str, Any] = _line(curve.kernel, roles)
        points = sorted((vcpus, value.median * scale) for vcpus, value in curve.values.items())
        axes.plot(*zip(*points), **line)
        handles.append((curve.kernel, Line2D([], [], **line)))
        ends += points
    drawn = [curve.kernel for curve in curves]
    for column in scaling.chosen(summary, metric)[1] if pages else ():
        kernel = next((one for one in column.kernels if one in drawn), None)
        line = {"color": style.light(roles[kernel] if kernel else "muted"), **PUBLISHED}
        points = sorted((vcpus, seconds / column.pages * 1e9) for vcpus, seconds in column.seconds.items())
        axes.plot(*zip(*points), **line)
        handles.append((f"published: {column.what}", Line2D([], [], **line)))
        ends += points
    axes.set_title(scaling.name(summary, metric))
    _vcpu_axis(axes, sorted({point[0] for point in ends}))
    _log_axis(axes, min(point[1] for point in ends), max(point[1] for point in ends))
    axes.set_ylabel("time a page, ns" if pages else "time, ns")
    return handles


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
        line: dict[str, Any] = {"color": style.light(roles[kernel] if kernel else "muted"), **PUBLISHED}
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


def growth_figure(
    summary: s.Summary, metrics: Sequence[str] | None = None, size: tuple[float, float] = (10, 4.9), more: str = ""
) -> Figure | None:
    """A Figure of the main times and of their growth with vCPUs, or None if there is none.  more: text below."""
    metrics = scaling.growing(summary) if metrics is None else metrics
    if not metrics:
        return None
    figure = _figure(size[0], size[1] * len(metrics), 0.06)
    roles = _kernel_roles(summary.kernels)
    handles: list[Handle] = []
    for row, metric in zip(figure.subplots(len(metrics), 2, squeeze=False), metrics):
        handles += _absolute_axes(row[0], summary, metric, roles) + _growth_axes(row[1], summary, metric, roles)
    _legend(figure, handles)
    if more:
        _below(figure, more)
    return figure


def _below(figure: Figure, text: str) -> None:
    figure.supxlabel("\n".join(textwrap.wrap(text, 175)), x=0.008, ha="left", fontsize=7.5, color=style.light("muted"))


def _what(group: s.Group) -> str:
    """What was run, for the text below a picture."""
    return (
        f"{group.test} {group.args}, {group.series}, {group.arch}, cpu {group.cpu} {group.params}".rstrip()
        + f"; {group.clock_name}"
    )


def trace_figures(summary: s.Summary) -> list[tuple[str, Draw]]:
    """[(what it is of, function that draws it)]: a Figure of migrations over time for each vCPU count, the most first."""
    return [
        (
            layout.vcpus_text(vcpus),
            functools.partial(_trace_figure, summary, [one for one in summary.traces if one["vcpus"] == vcpus]),
        )
        for vcpus in sorted({trace["vcpus"] for trace in summary.traces}, reverse=True)
    ]


def _trace_figure(summary: s.Summary, traces: Sequence[Trace]) -> Figure:
    """A Figure of these traces over time: what is left to send (MB), throttle (%), bandwidth (MB/s)."""
    figure = _figure(10, 6, 0.05)
    panels = figure.subplots(3, 1, sharex=True)
    roles = _kernel_roles(summary.kernels)
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
    _legend(figure, handles.items())
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
    """Write a picture to the file `out`: the dirty memory time against vCPUs and its growth, of the group that has the most
    published curves and vCPU counts; where no growth is known, the first columns of the group with the most vCPU counts, if
    possible one with runs without aging.

    Raises Fail if `out` cannot be written.
    """
    summaries = s.summarise(results)
    growing = [summary for summary in summaries if s.DIRTY in scaling.growing(summary)]
    growing.sort(key=lambda one: (-len(scaling.chosen(one, s.DIRTY)[1]), -len(one.vcpus)))
    others = sorted(summaries, key=lambda one: (not one.alone, -len(one.vcpus)))
    with matplotlib.rc_context({**SETTINGS, "figure.facecolor": style.light("paper")}):
        if growing:
            figure = growth_figure(growing[0], [s.DIRTY], (10, 5 / 1.2), _what(growing[0].group))
        else:
            drawn = (columns_figure(one, (10, 5.6), _what(one.group)) for one in others)
            figure = next((one for one in drawn if one), None)
        if figure is None:
            figure = _figure(10, 5 / 1.2)
            figure.text(0.5, 0.5, "nothing to draw", ha="center")
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    files.write(out, data.getvalue())
