"""The HTML page: a self-contained file, readable without JavaScript, network or colour.  Here is what it shows, as plain data;
the files of templates/ have its words, and escape all text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml

from ..base import files
from ..data import benchmarks, summary as s
from ..data.shape import Results, Run
from . import layout, plots, scaling, table, verdict

INDEX = "index.html"
RAW = tuple(Run.__annotations__)


@functools.lru_cache(maxsize=None)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=lambda name: name != "style.css",
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["raw"] = _raw
    return environment


def _raw(value: object) -> object:
    """A value of a run as a cell."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return layout.MISSING if value is None else value


def _sheet(sheet: layout.Sheet) -> list[dict[str, Any]]:
    """What the template draws of a Sheet, one for each heading."""
    found = []
    for part in sheet.by_heading() if sheet else ():
        rows = [cells for _, block in part.blocks for _, cells in block]
        wide = [any(cells[number].spread for cells in rows) for number in range(len(part.columns))]
        head = "" if part.columns[0].head == benchmarks.PLAIN else part.columns[0].head
        found.append({"head": head, "wide": wide, "sheet": part})
    return found


def _facts(summary: s.Summary) -> dict[str, str]:
    """What distinguishes a group: name to text, "" where there is nothing to say."""
    group = summary.group
    return {
        "Test": group.test,
        "Arguments": group.args or "none",
        "Series": group.series,
        "Architecture": group.arch,
        "CPU": group.cpu,
        "Accelerator": group.accel,
        "Configuration": group.variant,
        "Kernel parameters": group.params,
        "No aging": summary.alone.group.args if summary.alone else "",
        "Clock": group.clock_name,
        "Samples": summary.samples_text(summary.columns()),
        "Host": f"{summary.host.get('cpu') or 'unknown'} (host {group.cohort + 1} below)",
        "Variants of the model": ", ".join(summary.variants),
    }


def _group(results: Sequence[Results], number: int, summary: s.Summary) -> dict[str, Any]:
    """Everything about one group of runs, as the template wants it."""
    counts = sorted({trace["vcpus"] for trace in summary.traces}, reverse=True)
    drawn = {vcpus: plots.svg(functools.partial(plots.trace_figure, summary, vcpus)) for vcpus in counts}
    rates = {
        layout.vcpus_text(one): plots.svg(functools.partial(plots.rate_figure, summary, one)) for one in summary.vcpus
    }
    return {
        "id": f"g{number}",
        "summary": summary,
        "verdict": verdict.of(summary),
        "facts": _facts(summary),
        "unlike": [vcpus for vcpus in summary.vcpus if not verdict.alike(summary, vcpus)],
        "notices": layout.notes(results, summary),
        "growth": plots.svg(lambda: plots.growth_figure(summary, scaling.growing(summary))),
        "sheets": [part for sheet in table.sheets(summary) for part in _sheet(sheet)],
        "columns": plots.svg(lambda: plots.columns_figure(summary)),
        "rates": {where: source for where, source in rates.items() if source},
        "traces": {layout.vcpus_text(vcpus): drawing for vcpus, drawing in drawn.items()},
        "phases": [part for vcpus in summary.vcpus for part in _sheet(layout.phase_sheet(summary, vcpus))],
    }


def _hosts(results: Sequence[Results]) -> dict[str, int]:
    """The host of each file, each distinct one once: all that is known of it, YAML, to its number from 1."""
    return {
        yaml.safe_dump(result["host"], sort_keys=False, allow_unicode=True, width=110): number + 1
        for result, number in zip(results, s.cohorts(results))
    }


def page_html(results: Sequence[Results], commands: Sequence[str]) -> str:
    """The page as a str.  results: loaded results files; commands: shell commands, str each."""
    summaries = s.summarise(results)
    page = (
        _environment()
        .get_template("page.html")
        .render(
            series=", ".join(dict.fromkeys(summary.group.series for summary in summaries)),
            tests=sorted({summary.group.test for summary in summaries}),
            groups=[_group(results, number, summary) for number, summary in enumerate(summaries)],
            commands=commands,
            hosts=_hosts(results),
            results=results,
            raw=RAW,
            s=s,
        )
    )
    return f"{page}\n"


def write_page(results: Sequence[Results], out: str | Path, commands: Sequence[str]) -> Path:
    """Write the page in the folder `out` (made if need be), atomically; returns the Path of index.html.

    Raises Fail if it cannot be written.
    """
    files.write(Path(out) / INDEX, page_html(results, commands).encode("utf-8", "replace"))
    return Path(out) / INDEX
