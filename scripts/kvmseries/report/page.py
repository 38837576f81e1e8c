"""The HTML page: a self-contained file, readable without JavaScript, network or colour.

Here is what it says, as plain data; the files of templates/ draw it, and escape all text.  An item of a page is a
pair (kind, content): "sheet", "figure", "heading", "fold", "plain", "facts", or a class of a paragraph with its text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ..base import files
from ..data import benchmarks, summary as s
from ..data.shape import Results, Run
from . import layout, plots, style, table, verdict

INDEX = "index.html"
RAW = tuple(Run.__annotations__)
# Kind, content: see above.
Item = tuple[str, Any]


@functools.lru_cache(maxsize=None)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["tight"] = _tight
    return environment


def _tight(text: str) -> str:
    """`text` such that no line of the page ends between a number and its unit, or within the name of a ring."""
    return re.sub(r"(?<=\bring)-(?=\d)", "\u2011", re.sub(r"(?<=\d) (?=(?:[num]?s|MB|vCPUs?)\b)", "\u00a0", text))


def _sheet(sheet: layout.Sheet, label: str) -> list[Item]:
    """The items of a Sheet, one for each heading.  label: for screen readers."""
    if not sheet:
        return []
    found: list[Item] = []
    for part in sheet.by_heading():
        rows = [cells for _, block in part.blocks for _, cells in block]
        wide = [any(cells[number].spread for cells in rows) for number in range(len(part.columns))]
        head = "" if part.columns[0].head == benchmarks.PLAIN else part.columns[0].head
        found.append(("sheet", {"label": label, "head": head, "wide": wide, "sheet": part}))
    return found


def _figure(draw: plots.Draw, name: str, label: str, caption: str) -> list[Item]:
    """The item of a drawing, as [item]; [] where there is nothing to draw."""
    drawing = plots.svg(draw, name, label)
    return [("figure", {"drawing": Markup(drawing), "caption": caption})] if drawing else []


def _fold(title: str, parts: list[Item]) -> list[Item]:
    return [("fold", {"title": title, "parts": parts})] if parts else []


def _plain(
    heads: Sequence[str], rows: Sequence[Sequence[object]], numbers: Collection[int] = (), kind: str = "plain"
) -> Item:
    """The item of a table of text; numbers: indices of the columns that are aligned to the right; kind: its class,
    "plain prose" where cells are sentences, which wrap."""
    return ("plain", {"heads": heads, "rows": rows, "numbers": numbers, "kind": kind})


def _clock(summary: s.Summary) -> tuple[str, str] | None:
    """(what times are, what that means), or None for the clock of a real machine."""
    name = summary.group.clock_name
    if name == s.VIRTUAL:
        return (
            f"Times: {name}.",
            "They were read from the emulated machine's own clock: instructions that each CPU executed, and the costs of a "
            "model whose parameters are below. They predict how time grows with vCPUs; they are not measured on "
            "hardware. Documentation/measurement.md says when to trust them.",
        )
    if name == s.IN_TURN:
        unlike = [vcpus for vcpus in summary.vcpus if not verdict.alike(summary, vcpus)]
        return (
            f"Times: {name}.",
            "The machine that runs both QEMUs is emulated (TCG), so a time says nothing about hardware."
            + f" With {', '.join(map(str, unlike))} vCPUs the guests did not begin alike, or it is not known: a ratio of times "
            "is of these runs alone, and does not compare the QEMUs." * bool(unlike),
        )
    if not summary.group.emulated:
        return None
    return (
        f"Times: {name}.",
        "They were read from the wall clock while QEMU emulated the machine (TCG), which runs one after the other what "
        "hardware runs in parallel. Acquisitions are counts of what the code does. Contentions depend on how the "
        "emulated CPUs happened to overlap: compare the kernels with each other, not with hardware.",
    )


def _parts(summary: s.Summary, name: str, title: str) -> list[Item]:
    """Plots and tables of a group: growth, all columns, counts by phase, migrations over time."""
    found = _figure(
        lambda: plots.growth_figure(summary),
        f"{name}-growth",
        f"Time and growth with vCPUs, {title}",
        "Time, and time relative to 1 vCPU of the same curve: medians. Dashed: published, on hardware, in the colour of the "
        "kernel that stands for it. Shaded: the least and the greatest over the variants of the model, where they were run.",
    )
    for sheet in table.sheets(summary):
        found += _sheet(sheet, f"Table of {title}")
    if not any(kind == "sheet" for kind, _ in found):
        found.append(("empty", "Nothing of these runs is in a table."))
    found += _figure(
        lambda: plots.columns_figure(summary),
        f"{name}-columns",
        f"Columns of the table against vCPUs, {title}",
        "Against vCPUs, both axes logarithmic: medians, bars from the least to the greatest sample.",
    )
    over_time = [
        item
        for where, draw in plots.trace_figures(summary)
        for item in _figure(
            draw,
            f"{name}-trace-{where.replace(' ', '-')}",
            f"Migrations over time, {where}, {title}",
            f"{where}: what is left to send, the throttle, and the bandwidth that was used, over the time of one migration each.",
        )
    ]
    found += [("heading", "Over time"), *over_time[:1], *_fold("Other vCPU counts", over_time[1:])] if over_time else []
    phases = [layout.phase_sheet(summary, vcpus) for vcpus in summary.vcpus]
    counted = [item for sheet in phases for item in _sheet(sheet, f"Counts by phase of {title}")]
    return found + [*counted[-1:], *_fold("Counts by phase, fewer vCPUs", counted[:-1])]


def _facts(summary: s.Summary, several_hosts: bool) -> list[tuple[str, str]]:
    """(name, text) of what distinguishes a group."""
    group = summary.group
    facts = [
        ("Test", group.test),
        ("Arguments", group.args or "none"),
        ("Series", group.series),
        ("Architecture", group.arch),
        ("CPU", group.cpu),
        ("Accelerator", group.accel),
        ("Configuration", group.variant),
        ("Kernel parameters", group.params),
        ("No aging", summary.alone.group.args if summary.alone else ""),
        ("Clock", "" if _clock(summary) else group.clock_name),
        ("Samples", summary.samples_text(summary.columns())),
        ("Host", f"{summary.host.get('cpu') or 'unknown'} (host {group.cohort + 1} below)" if several_hosts else ""),
        (
            "Sensitivity",
            f"{len(summary.variants)} variants of the model: {', '.join(summary.variants)}" * bool(summary.variants),
        ),
    ]
    return [(name, text) for name, text in facts if text]


def _group(results: Sequence[Results], number: int, summary: s.Summary, several_hosts: bool) -> dict[str, Any]:
    """Everything about one group of runs, as the template wants it."""
    group, name = summary.group, f"g{number}"
    parts = _parts(summary, name, group.title)
    if summary.unused:
        parts.append(
            (
                "note",
                f"{summary.unused} runs are in no table: times of kernels with lock_stat, or lock counts of "
                "kernels without; they are among the raw runs.",
            )
        )
    return {
        "id": name,
        "title": group.title,
        "args": group.args,
        "verdict": verdict.of(summary),
        "facts": _facts(summary, several_hosts),
        "clock": _clock(summary),
        "notices": layout.notes(results, summary),
        "parts": parts,
    }


def _fact_text(name: str, value: object) -> str:
    """A value of "host" as text, whatever its type."""
    if name == "memory" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value / 2**30:.1f} GiB"
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return layout.MISSING if value is None else str(value)


def _model(vtime: Any) -> list[Item]:
    """The model of virtual time in a file's "host": its parameters with their sources."""
    if vtime is None:
        return []
    parameters = vtime.get("parameters") if isinstance(vtime, dict) else None
    if not isinstance(parameters, dict):
        return [("facts", [("vtime", _fact_text("vtime", vtime))])]
    rows = [
        [name, *(_fact_text(key, entry.get(key)) for key in ("ns", "what", "source"))]
        if isinstance(entry, dict)
        else [name, _fact_text(name, entry), "", ""]
        for name, entry in parameters.items()
    ]
    return [
        ("heading", "Model of virtual time: its parameters"),
        _plain(["Parameter", "ns", "What", "Source"], rows, (1,), "plain prose"),
        ("facts", [(name, _fact_text(name, value)) for name, value in vtime.items() if name != "parameters"]),
    ]


def _hosts(results: Sequence[Results]) -> list[Item]:
    """The host of each file, each distinct one once, with kernel versions and tools."""
    numbers, seen = s.cohorts(results), set()
    parts: list[Item] = []
    for result, number in zip(results, numbers):
        host = result["host"]
        text = json.dumps(host, sort_keys=True, default=str)
        if text in seen:
            continue
        seen.add(text)
        if len(set(numbers)) > 1:
            parts.append(("heading", f"Host {number + 1}"))
        parts.append(
            (
                "facts",
                [
                    (name, _fact_text(name, value))
                    for name, value in host.items()
                    if name not in ("tools", "kernels", "vtime")
                ],
            )
        )
        for name, title in (("kernels", "Kernel (kernel, architecture, configuration)"), ("tools", "Tool")):
            table = host.get(name)
            if isinstance(table, dict) and table:
                parts.append(
                    _plain([title, "Version"], [(key, _fact_text(key, value)) for key, value in table.items()])
                )
            elif table:
                parts.append(("facts", [(name, _fact_text(name, table))]))
        parts += _model(host.get("vtime"))
    return parts or [("empty", "Unknown.")]


def _raw_text(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return layout.MISSING if value is None else value


def _raw(results: Sequence[Results]) -> list[Item]:
    parts = []
    for number, result in enumerate(results, 1):
        runs = [run for run in result["runs"] if run["model"] in ("", s.NOMINAL)]
        hidden = len(result["runs"]) - len(runs)
        which = f"file {number} of {len(results)}: " if len(results) > 1 else ""
        more = f", without {hidden} with variants of the model" if hidden else ""
        rows = [[_raw_text(run.get(key)) for key in RAW] for run in runs]
        parts += _fold(
            f"All raw runs, {which}{len(runs)} runs{more}",
            [_plain(RAW, rows, (RAW.index("vcpus"), RAW.index("iteration")))],
        )
    return parts


def _lead(series: Sequence[str], tests: Collection[str]) -> list[str]:
    """What was run and compared, sentences."""
    names = ", ".join(series) or "<series>"
    lead = []
    if benchmarks.MIGRATION in tests:
        lead.append(
            "Two QEMUs migrate a guest that dirties memory: base is QEMU as released, series has every patch of "
            f"patches/{names} on top. Both run in the same machine and take turns. Dirty pages are found by KVM's dirty bitmap "
            "(bitmap), or by dirty rings of N entries (ring-N). qemu-migration/harness.md says what each figure means."
        )
    if set(tests) != {benchmarks.MIGRATION}:
        lead.append(
            "Each kernel runs the same programs: in QEMU with nested KVM (accelerator tcg or kvm), or on the machine "
            f"itself (here). base is the kernel as released; series has every patch of patches/{names} on top; upto:NAME "
            "has the patches up to the milestone NAME; v7.3:base is the base of another series, v7.3. Lock counts come from "
            "kernels with CONFIG_LOCK_STAT, times from kernels without it."
        )
    return lead


def page_html(results: Sequence[Results], commands: Sequence[str]) -> str:
    """The page as a str.  results: loaded results files; commands: shell commands, str each."""
    summaries = s.summarise(results)
    series = list(dict.fromkeys(summary.group.series for summary in summaries))
    hosts = len({summary.group.cohort for summary in summaries})
    environment = _environment()
    assert environment.loader
    css = environment.loader.get_source(environment, "style.css")[0]
    return (
        environment.get_template("page.html").render(
            title=f"{', '.join(series)}: base against series" if series else "KVM series: no results",
            style=Markup(style.variables() + css),
            lead=_lead(series, {summary.group.test for summary in summaries}),
            groups=[_group(results, number, summary, hosts > 1) for number, summary in enumerate(summaries, 1)],
            commands=commands,
            hosts=_hosts(results),
            raw=_raw(results),
            missing=layout.MISSING,
        )
        + "\n"
    )


def write_page(results: Sequence[Results], out: str | Path, commands: Sequence[str]) -> Path:
    """Write the page in the folder `out` (made if need be), atomically; returns the Path of index.html.

    Raises Fail if it cannot be written.
    """
    files.write(Path(out) / INDEX, page_html(results, commands).encode("utf-8", "replace"))
    return Path(out) / INDEX
