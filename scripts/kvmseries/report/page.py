"""The HTML pages: self-contained files, readable without JavaScript, network or colour.

Here is what a page says, as plain data; the files of templates/ draw it, and escape all text.  An item of a page is a
pair (kind, content): "sheet", "figure", "heading", "fold", "plain", "facts", or a class of a paragraph with its text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ..base import files
from ..data import summary as s
from ..data.shape import Results, Run
from . import aging, exiting, holding, layout, merging, migrating, own, plots, scaling, state, style, unmapping, verdict

INDEX, MIGRATIONS = "index.html", "migrations.html"
RAW = tuple(Run.__annotations__)
# Kind, content: see above.
Item = tuple[str, Any]


@functools.lru_cache(maxsize=None)
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["tight"] = _tight
    return environment.get_template("page.html")


def _tight(text: str) -> str:
    """`text` such that no line of the page ends between a number and its unit, or within the name of a ring."""
    return re.sub(r"(?<=\bring)-(?=\d)", "\u2011", re.sub(r"(?<=\d) (?=(?:[num]?s|MB|vCPUs?)\b)", "\u00a0", text))


def _sheet(summary: s.Summary, sheet: layout.Sheet, label: str) -> list[Item]:
    """The item of a Sheet of a Summary, as [item]; [] if it is empty.  label: for screen readers."""
    if not sheet:
        return []
    sheet = layout.marked(sheet, summary)
    wide = {
        number
        for number in range(len(sheet.columns))
        if any(cells[number].spread for _, rows in sheet.blocks for _, cells in rows)
    }
    starts = {
        number
        for number, column in enumerate(sheet.columns)
        if number == 0 or sheet.columns[number - 1].head != column.head
    }
    heads = []
    for number in sorted(starts):
        same = [
            other
            for other in range(number, len(sheet.columns))
            if sheet.columns[other].head == sheet.columns[number].head
            and not any(number < start <= other for start in starts)
        ]
        heads.append((sheet.columns[number].head, sum(1 + (other in wide) for other in same)))
    names = [
        (
            column.name,
            1 + (number in wide),
            " ".join(
                name
                for name, is_so in (("first", number in starts), ("wrap", column.timed), ("pair", number in wide))
                if is_so
            ),
        )
        for number, column in enumerate(sheet.columns)
    ]
    blocks = []
    for block, rows in sheet.blocks:
        lines = []
        for name, cells in rows:
            texts = []
            for number, cell in enumerate(cells):
                texts.append((cell.text, "first" if number in starts else ""))
                if number in wide:
                    texts.append((f"({cell.spread})" if cell.spread else "", "spread"))
            lines.append((name, name.endswith(layout.RATIO), texts))
        blocks.append((block, lines))
    return [
        (
            "sheet",
            {
                "label": label,
                "heads": heads,
                "names": names,
                "blocks": blocks,
                "notes": sheet.notes,
                "row_head": sheet.row_head,
                "block_head": sheet.block_head,
            },
        )
    ]


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
    if summary.group.clock_name == s.VIRTUAL:
        return (
            f"Times: {s.VIRTUAL}.",
            "They were read from the emulated machine's own clock: instructions that each CPU executed, and the costs of a "
            "model whose parameters are below. They predict how time grows with vCPUs; they are not measured on "
            "hardware. Documentation/measurement.md says when to trust them.",
        )
    if isinstance(summary, migrating.Family) and summary.group.clock_name == s.IN_TURN:
        return f"Times: {s.IN_TURN}.", migrating.clock_text(summary)
    if not summary.group.emulated:
        return None
    return (
        f"Times: {s.EMULATED}.",
        "They were read from the wall clock while QEMU emulated the machine (TCG), which runs one after the other what "
        "hardware runs in parallel. Acquisitions are counts of what the code does. Contentions depend on how the "
        "emulated CPUs happened to overlap: compare the kernels with each other, not with hardware.",
    )


def _scaling(summary: s.Summary, name: str, title: str) -> list[Item]:
    """Time a page and growth: the plots, a table for each time, the instrument's counters."""
    parts = _figure(
        lambda: plots.absolute_figure(summary),
        f"{name}-absolute",
        f"Time against vCPUs, {title}",
        "Time against vCPUs, both axes logarithmic: median of the rounds. Dashed: published, on hardware, in the colour of "
        "the kernel that stands for it.",
    )
    tables = scaling.sheets(summary)
    if sum(len(sheet.columns) for sheet in tables) <= 6:
        tables = [functools.reduce(layout.join, tables)] if tables else []
    sheets = [item for sheet in tables for item in _sheet(summary, sheet, f"Time and growth of {title}")]
    growth = _figure(
        lambda: plots.growth_figure(summary),
        f"{name}-growth",
        f"Growth with vCPUs, {title}",
        "Growth: time relative to 1 vCPU of the same curve. Dashed: published. Shaded: the least and the greatest over "
        "the variants of the model, where they were run.",
    )
    return parts + sheets + growth


def _counters(summary: s.Summary, wanted: Iterable[str]) -> list[Item]:
    """The instrument's counters: of the phases `wanted`, else the first; the others folded."""
    phases = summary.counted_phases()
    sheets = {phase: _sheet(summary, scaling.counter_sheet(summary, phase), f"Counters, {phase}") for phase in phases}
    first = [phase for phase in wanted if phase in phases] or phases[:1]
    parts = [("heading", "Counters of the emulated machine")] if phases else []
    parts += [item for phase in first for item in sheets[phase]]
    rest = [phase for phase in phases if phase not in first]
    return parts + _fold(f"Counters: {', '.join(rest)}", [item for phase in rest for item in sheets[phase]])


def _aging(summary: s.Summary, name: str, title: str) -> list[Item]:
    """access_tracking_stress_test: the plot, the table in two, for its width, the counters."""
    sheet = aging.sheet(summary)
    first = sheet.columns[0].head if sheet else None
    halves = [
        layout.part(sheet, lambda column: column.head == first),
        layout.part(sheet, lambda column: column.head != first),
    ]
    halves[0].notes = []
    both = bool(aging.curves(summary)[1])
    parts = _figure(
        lambda: plots.aging_figure(summary),
        f"{name}-aging",
        f"Aging passes and vCPU time per vCPU count, {title}",
        f"{'Left: the' if both else 'The'} time of an aging pass while vCPUs are {aging.kind(summary)[2]}, relative to base's "
        f"and to the same kernel's with idle vCPUs.{' Right: the time of the vCPUs with aging, relative to none.' * both} "
        f"Medians of iteration {aging.LAST.iteration(summary)}. {aging.source()}",
    )
    tables = (
        [item for half in halves for item in _sheet(summary, half, f"Aging of {title}")]
        if sheet
        else [("empty", "No aging pass and no vCPU time was measured.")]
    )
    return parts + tables + _counters(summary, ("fault", "access"))


def _merging(summary: s.Summary, name: str, title: str) -> list[Item]:
    """change_pte_test: the plot, the table by its headings, for its width, the counters."""
    sheet = merging.sheet(summary)
    parts = _figure(
        lambda: plots.merging_figure(summary),
        f"{name}-merging",
        f"Time of ksmd and vCPUs, and exits per merged page read, {title}",
        "Left: the time that ksmd takes to merge all pages, and what vCPUs take more than without faults to read what was "
        f"merged and to write to it. Right: exits per merged page read. Medians of iteration {merging.LAST.iteration(summary)}; "
        f"the number above a bar is its total, {layout.MISSING} is not measured.",
    )
    tables = (
        [item for part in layout.by_heading(sheet) for item in _sheet(summary, part, f"Merging of {title}")]
        if sheet
        else [("empty", "No exit and no time of merging was measured.")]
    )
    return parts + tables + _counters(summary, ())


def _migrating(family: migrating.Family, name: str, title: str) -> list[Item]:
    """Migrations: what they did over time, the plots of totals, the table by its headings, for its width."""
    sheet, moved = migrating.sheet(family), migrating.mechanisms(family)
    over_time = [
        item
        for number, (where, draw) in enumerate(plots.trace_figures(family))
        for item in _figure(
            draw,
            f"{name}-trace-{number}",
            f"Migrations over time, {where}, {title}",
            f"{where}: what is left to send, the throttle, and the bandwidth that was used, over the time of one migration each; "
            "a mark on the axis is a sync pass.",
        )
    ]
    parts = (
        [
            ("heading", "Over time"),
            *over_time[:1],
            *_fold("Over time, other vCPU counts and ways to track dirty pages", over_time[1:]),
        ]
        if over_time
        else [("note", "These results have no samples over time: they were taken before bench recorded them.")]
    )
    totals = _figure(
        lambda: plots.migration_figure(family),
        f"{name}-totals",
        f"Totals of the migrations, {title}",
        "Medians for each vCPU count and way to track dirty pages.",
    )
    tables = (
        [
            *(item for part in layout.by_heading(sheet) for item in _sheet(family, part, f"Migrations of {title}")),
            *(item for part in layout.by_heading(moved) for item in _sheet(family, part, f"Mechanisms of {title}")),
        ]
        if sheet
        else [("empty", "No migration was measured.")]
    )
    return totals + parts + tables


def _unmapping(summary: s.Summary, _name: str, title: str) -> list[Item]:
    """memslot_unmap_perf_test: the table by its headings, for its width, the counters."""
    sheet = unmapping.sheet(summary)
    tables = (
        [item for part in layout.by_heading(sheet) for item in _sheet(summary, part, f"Unmapping of {title}")]
        if sheet
        else [("empty", "No time of unmapping was measured.")]
    )
    return tables + _counters(summary, ())


def _simple(module: own.Own, heading: str, empty: str) -> Callable[[s.Summary, str, str], list[Item]]:
    """Of a test with one table: the table, the counters."""

    def items(summary: s.Summary, _name: str, title: str) -> list[Item]:
        sheet = module.sheet(summary)
        return [
            *(_sheet(summary, sheet, f"{heading}, {title}") if sheet else [("empty", empty)]),
            *_counters(summary, ()),
        ]

    return items


_OWN: dict[str, Callable[..., list[Item]]] = {
    aging.TEST: _aging,
    merging.TEST: _merging,
    migrating.TEST: _migrating,
    unmapping.TEST: _unmapping,
    holding.TEST: _simple(holding, "Holds of mmu_lock", "No hold of mmu_lock was measured."),
    exiting.TEST: _simple(exiting, "Exit of a killed VM", "No exit was measured."),
}


def _locks(summary: s.Summary, name: str, title: str, module: bool) -> list[Item]:
    """Plots and tables of lock counts; module: the test has tables of its own."""
    parts = []
    if layout.lock_sheet(summary):
        parts += _figure(
            lambda: plots.lock_figure(summary),
            f"{name}-lock",
            f"mmu_lock acquisitions and contentions per vCPU count, {title}",
            "How often mmu_lock was taken and waited for, per vCPU count and kernel: medians; "
            f"the number above a bar is its total, {layout.MISSING} is not measured.",
        )
    phases = layout.phase_sheets(summary)
    if phases:
        parts.append(("heading", f"By phase of the test: how mmu_lock is taken, {verdict.vcpus_text(phases[-1][0])}"))
        parts += _sheet(summary, phases[-1][1], f"Lock counts by phase of {title}")
        parts += _fold(
            "The same with " + ", ".join(str(vcpus) for vcpus, _ in phases[:-1]) + " vCPUs",
            [
                item
                for vcpus, sheet in phases[:-1]
                for item in (
                    ("heading", verdict.vcpus_text(vcpus)),
                    *_sheet(summary, sheet, f"Lock counts by phase, {vcpus} vCPUs"),
                )
            ],
        )
        if not module:
            parts += _figure(
                lambda: plots.contention_figure(summary),
                f"{name}-phase",
                f"mmu_lock contentions by phase, {title}",
                "Contentions by the phase of the test in which they happened.",
            )
    return parts


def _further_times(summary: s.Summary, name: str, title: str) -> list[Item]:
    """Latencies, the other times, and the plots of all times."""
    parts, others = [], layout.time_sheet(summary, s.OTHER_TIMES)
    latency = layout.latency_sheet(summary)
    if latency:
        parts += [
            ("heading", "Latency of a write, in the guest"),
            *_sheet(summary, latency, f"Latency of a write of {title}"),
        ]
    if others:
        parts += [("heading", "Other times"), *_sheet(summary, others, f"Other times of {title}")]
    return parts + _figure(
        lambda: plots.time_figure(summary),
        f"{name}-time",
        f"Times per vCPU count, {title}",
        "Times against vCPUs: median of the samples, bars from the least to the greatest.",
    )


def _facts(summary: s.Summary, several_hosts: bool) -> list[tuple[str, str]]:
    """(name, text) of what distinguishes a group."""
    group, module = summary.group, own.of(summary)
    # The clock has a notice of its own, or is the wall's.
    facts = [(name, text) for name, text in group.facts() if name != "Clock" or not _clock(summary)]
    if isinstance(summary, migrating.Family):
        facts = [(name, migrating.words(text) if name == "Arguments" else text) for name, text in facts]
        facts.insert(2, ("Dirty pages by", ", ".join(summary.parts)))
    if several_hosts:
        facts.append(("Host", f"{summary.host.get('cpu') or 'unknown'} (host {group.cohort + 1} below)"))
    times = module.METRICS if module else s.MAIN_TIMES + s.OTHER_TIMES
    if summary.alone:
        facts.append(("No aging", summary.alone.group.args))
    samples = [("Samples, counts", s.LOCK_METRICS), ("Samples, times", times)]
    for what, metrics in samples[1:] if migrating.is_migration(summary) else samples:
        facts.append(
            (
                what.partition(",")[0] if migrating.is_migration(summary) else what,
                summary.sample_note(metrics) or "none",
            )
        )
    if summary.variants:
        facts.append(("Sensitivity", f"{len(summary.variants)} variants of the model: " + ", ".join(summary.variants)))
    return facts


def _group(number: int, summary: s.Summary, several_hosts: bool) -> dict[str, Any]:
    """Everything about one group of runs, as the template wants it."""
    group, name, module = summary.group, f"g{number}", own.of(summary)
    title = f"{group.test}, {group.series} on {group.arch} ({group.cpu})"
    if migrating.is_migration(summary):
        title += f", {migrating.words(group.args).partition(',')[0]}"
    if module:
        parts = _OWN[group.test](summary, name, title) + _sheet(
            summary, layout.lock_sheet(summary), f"Lock counts of {title}"
        )
        parts += _locks(summary, name, title, True)
    else:
        main = _sheet(
            summary,
            layout.join(layout.lock_sheet(summary), layout.time_sheet(summary, s.MAIN_TIMES)),
            f"Main table of {title}",
        )
        parts = _scaling(summary, name, title) + (
            main or [("empty", "No lock counts and no times of the main table were measured.")]
        )
        parts += _further_times(summary, name, title) + _locks(summary, name, title, False)
        parts += _counters(summary, ("dirty", "populate"))
    if summary.unused:
        parts.append(
            (
                "note",
                f"{summary.unused} runs are in no table: times of kernels with lock_stat, or lock counts of "
                "kernels without; they are among the raw runs.",
            )
        )
    lines = (module or scaling).highlights(summary) + layout.highlights(summary)
    migration = migrating.is_migration(summary)
    return {
        "id": name,
        "title": group.title,
        "heading": title,
        "args": migrating.words(group.args) if migration else group.args,
        "verdict": verdict.of(summary),
        "lines": lines,
        "facts": _facts(summary, several_hosts),
        "clock": _clock(summary),
        "notices": layout.repeat_notes(summary),
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


def _lead(series: Sequence[str], migrations: bool) -> list[str]:
    """What was run and compared, sentences."""
    names = ", ".join(series) or "<series>"
    if migrations:
        return [
            "Two QEMUs migrate a guest that dirties memory: base is QEMU as released, series has every patch of "
            f"patches/{names} on top. Both run in the same machine, which is emulated (accelerator tcg) or this one (kvm), "
            "and take turns. The guest counts its own work. After each migration all pages of both sides are compared.",
            "Dirty pages are found by KVM's dirty bitmap (bitmap), or by dirty rings of N entries (ring-N). Counts come from "
            "trace events of the source QEMU. qemu-migration/harness.md says what each figure means.",
        ]
    return [
        "Each kernel runs the same KVM selftest binaries: in QEMU with nested KVM (accelerator tcg or kvm), or on the "
        f"machine itself (here). base is the kernel as released; series has every patch of patches/{names} on top; upto:NAME "
        "has the patches up to the milestone NAME; v7.3:base is the base of another series, v7.3. Lock counts come from "
        "kernels with CONFIG_LOCK_STAT, times from kernels without it."
    ]


def split(results: Sequence[Results]) -> tuple[list[Results], list[Results]]:
    """(`results` without migrations, `results` of migrations alone): files that have none of it are left out."""
    sides: tuple[list[Results], list[Results]] = [], []
    for wanted, side in zip((False, True), sides):
        for data in results:
            runs = [run for run in data["runs"] if (run["test"] == migrating.TEST) == wanted]
            if runs:
                side.append({**data, "runs": runs})
    return sides


def page_html(results: Sequence[Results], commands: Sequence[str], links: Sequence[tuple[str, str]] = ()) -> str:
    """One page as a str.  results: loaded results files, of migrations alone or without any; commands: shell commands, str
    each; links: (file, text) of other pages."""
    summaries = own.summarise(results)
    migrations = bool(summaries) and all(map(migrating.is_migration, summaries))
    series = list(dict.fromkeys(summary.group.series for summary in summaries))
    hosts = len({summary.group.cohort for summary in summaries})
    what = "Live migrations" if migrations else "KVM series"
    title = f"{what} {', '.join(series)}: base against series" if series else "KVM series: no results"
    return (
        _template().render(
            title=title,
            style=Markup(style.STYLE),
            lead=_lead(series, migrations),
            links=links,
            states=state.notes(results),
            groups=[_group(number, summary, hosts > 1) for number, summary in enumerate(summaries, 1)],
            commands=commands,
            host_title="QEMUs and host" if migrations else "Kernels and host",
            hosts=_hosts(results),
            raw=_raw(results),
        )
        + "\n"
    )


def write_page(results: Sequence[Results], out: str | Path, commands: Sequence[str]) -> Path:
    """Write the page in the folder `out` (made if need be), atomically; returns the Path of index.html.  Live migrations
    have a page of their own, migrations.html, where there are other results as well.

    Raises Fail if it cannot be written.
    """
    kernels, migrations = split(results)
    pages = {INDEX: page_html(results, commands)}
    if kernels and migrations:
        pages = {
            MIGRATIONS: page_html(migrations, commands, [(INDEX, "The kernels' results")]),
            INDEX: page_html(kernels, commands, [(MIGRATIONS, "Live migrations have a page of their own.")]),
        }
    for name, text in pages.items():
        files.write(Path(out) / name, text.encode("utf-8", "replace"))
    return Path(out) / INDEX
