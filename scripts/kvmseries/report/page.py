"""The HTML page: one self-contained file, readable without JavaScript, network or colour."""

import json
from pathlib import Path

from ..base.files import write_atomically
from ..data import summary as s
from ..data.results import KEYS
from . import aging, layout, merging, migrating, own, plots, scaling, state, style
from .markup import element, flat, Html


def _table_head(sheet, wide):
    """Two lines of headings: shared ones, then each column's own.  wide: columns with spread."""
    keys = [element("th", name, scope="col", rowspan=2, class_=kind)
            for name, kind in (("vCPUs", None), (sheet.row_head, "label"))]
    heads, names, last = [], [], None
    for number, column in enumerate(sheet.columns):
        first = column.head != last
        last = column.head
        if first:
            same = [other for other in range(number, len(sheet.columns))
                    if sheet.columns[other].head == column.head]
            heads.append(element("th", column.head, scope="colgroup", class_="head first",
                                 colspan=sum(1 + (other in wide) for other in same)))
        kinds = (("first", first), ("wrap", column.timed), ("pair", number in wide))
        names.append(element("th", column.name, scope="col",
                             colspan=2 if number in wide else None,
                             class_=" ".join(name for name, is_so in kinds if is_so) or None))
    return element("thead", element("tr", keys, heads), element("tr", names))


def _sheet_html(sheet, label):
    """A Sheet as a table that scrolls sideways where it must; None if it is empty."""
    if not sheet:
        return None
    wide = {number for number in range(len(sheet.columns))
            if any(cells[number].spread for _, rows in sheet.blocks for _, cells in rows)}
    starts = {number for number, column in enumerate(sheet.columns)
              if number == 0 or sheet.columns[number - 1].head != column.head}
    bodies = []
    for vcpus, rows in sheet.blocks:
        lines = []
        for index, (name, cells) in enumerate(rows):
            line = [element("th", vcpus, scope="rowgroup", class_="vcpus", rowspan=len(rows))] \
                if index == 0 else []
            line.append(element("th", name, scope="row"))
            for number, cell in enumerate(cells):
                line.append(element("td", cell.text, class_="first" if number in starts else None))
                if number in wide:
                    line.append(element("td", f"({cell.spread})" if cell.spread else "",
                                        class_="spread"))
            kind = "ratio" if name.endswith(layout.RATIO) else None
            lines.append(element("tr", line, class_=kind))
        bodies.append(element("tbody", lines))
    table = element("table", _table_head(sheet, wide), bodies)
    return [element("div", table, class_="scroll", tabindex=0, role="region", aria_label=label),
            [element("p", note, class_="note") for note in sheet.notes]]


def _figure_html(draw, name, label, caption):
    drawing = plots.svg(draw, name, label)
    return drawing and element("figure", drawing, element("figcaption", caption))


def _facts(rows):
    return element("dl", [[element("dt", name), element("dd", text)] for name, text in rows],
                   class_="facts")


def _times_notice(summary):
    if summary.group.clock_name == s.VIRTUAL:
        return element(
            "p", element("strong", f"Times: {s.VIRTUAL}."),
            " They were read from the emulated machine's own clock: instructions that each CPU "
            "executed, and the costs of a model whose parameters are below. They predict how time "
            "grows with vCPUs; they are not measured on hardware. Documentation/measurement.md "
            "says when to trust them.", class_="notice")
    if not summary.group.emulated:
        return None
    return element(
        "p", element("strong", f"Times: {s.EMULATED}."),
        " They were read from the wall clock while QEMU emulated the machine (TCG), which "
        "serialises what hardware does in parallel. Acquisitions are counts of what the code "
        "does. Contentions depend on how the emulated CPUs happened to overlap: compare the "
        "kernels with each other, not with hardware.", class_="notice")


def _scaling_html(summary, name, title):
    """Growth with vCPUs: the plot, a table for each time, the instrument's counters."""
    parts = [_figure_html(
        lambda: plots.growth_figure(summary), f"{name}-growth", f"Growth with vCPUs, {title}",
        f"Time against vCPUs ({summary.group.clock_name}), each curve by its own value at 1 vCPU. "
        "Dashed: published, on hardware, in the colour of the kernel that stands for it. Shaded: "
        "the least and the greatest over the variants of the model, where they were run.")]
    parts += [_sheet_html(sheet, f"Growth with vCPUs of {title}")
              for sheet in scaling.sheets(summary)]
    return parts + _counters_html(summary, ("dirty", "populate"))


def _counters_html(summary, wanted):
    """The instrument's counters: of the phases `wanted`, else the first; the others folded."""
    parts, phases = [], summary.counted_phases()
    sheets = {phase: _sheet_html(scaling.counter_sheet(summary, phase), f"Counters, {phase}")
              for phase in phases}
    first = [phase for phase in wanted if phase in phases] or phases[:1]
    if phases:
        parts += [element("h3", "Counters"), [sheets[phase] for phase in first]]
    if len(phases) > len(first):
        rest = [phase for phase in phases if phase not in first]
        parts.append(element("details", element("summary", f"Counters: {', '.join(rest)}"),
                             [sheets[phase] for phase in rest]))
    return parts


def _aging_html(summary, name, title):
    """access_tracking_stress_test: the plot, the table in two, for its width, the counters."""
    sheet = aging.sheet(summary)
    first = sheet.columns[0].head if sheet else None
    halves = [layout.part(sheet, lambda column, left=left: (column.head == first) == left)
              for left in (True, False)]
    halves[0].notes = []
    return [
        _figure_html(lambda: plots.aging_figure(summary), f"{name}-aging",
                     f"Aging passes and vCPU time per vCPU count, {title}",
                     f"Left: what an aging pass takes beside {aging.kind(summary)[2]} vCPUs, by "
                     "base's and by the same kernel's beside idle ones. Right: what vCPUs take "
                     f"with aging, by what they take without; {summary.group.clock_name}, medians "
                     f"of iteration {aging.iteration(summary)}. {aging.source()}"),
        [_sheet_html(half, f"Aging of {title}") for half in halves] if sheet
        else element("p", "No aging pass and no vCPU time was measured.", class_="empty"),
        _counters_html(summary, ("fault", "access"))]


def _merging_html(summary, name, title):
    """change_pte_test: the plot, the table by its headings, for its width, the counters."""
    sheet = merging.sheet(summary)
    return [
        _figure_html(lambda: plots.merging_figure(summary), f"{name}-merging",
                     f"Time of ksmd and vCPUs, and exits per merged page read, {title}",
                     "Left: what ksmd takes to merge all pages, and what vCPUs take more to read what "
                     "was merged and to write to it than without faults "
                     f"({summary.group.clock_name}). Right: exits per merged page read. Medians of "
                     f"iteration {merging.iteration(summary)}; the number above a bar is its total, "
                     f"{layout.MISSING} is not measured."),
        [_sheet_html(part, f"Merging of {title}") for part in layout.by_heading(sheet)] if sheet
        else element("p", "No exit and no time of merging was measured.", class_="empty"),
        _counters_html(summary, ())]


def _migrating_html(summary, _name, title):
    """migration: the table by its headings, for its width."""
    sheet = migrating.sheet(summary)
    return [[_sheet_html(part, f"Migrations of {title}") for part in layout.by_heading(sheet)] if sheet
            else element("p", "No migration was measured.", class_="empty")]


_OWN_HTML = {aging: _aging_html, merging: _merging_html, migrating: _migrating_html}


def _group_html(number, summary, several_hosts):
    """Everything about one group of runs."""
    group, name = summary.group, f"g{number}"
    facts = group.facts()
    if several_hosts:
        facts.append(("Host", f"{summary.host.get('cpu') or 'unknown'} (host "
                              f"{group.cohort + 1} below)"))
    module = own.of(summary)
    times = module.METRICS if module else s.MAIN_TIMES + s.OTHER_TIMES
    if summary.alone:
        facts.append(("No aging", summary.alone.group.args))
    for what, metrics in (("Samples, counts", s.LOCK_METRICS), ("Samples, times", times)):
        facts.append((what, summary.sample_note(metrics) or "none"))
    if summary.variants:
        facts.append(("Sensitivity", f"{len(summary.variants)} variants of the model: "
                      + ", ".join(summary.variants)))
    phases = layout.phase_sheet(summary)
    title = f"{group.test}, {group.series} on {group.arch} ({group.cpu})"
    parts = [element("h2", title, id=name), _facts(facts), _times_notice(summary)]
    parts += [element("p", line, class_="notice") for line in layout.repeat_notes(summary)]
    if module:
        parts += [_OWN_HTML[module](summary, name, title),
                  _sheet_html(layout.lock_sheet(summary), f"Lock counts of {title}")]
    else:
        main = layout.join(layout.lock_sheet(summary), layout.time_sheet(summary, s.MAIN_TIMES))
        parts += [_scaling_html(summary, name, title),
                  _sheet_html(main, f"Main table of {title}")
                  or element("p", "No lock counts and no times of the main table were measured.",
                             class_="empty")]
    if layout.lock_sheet(summary):
        parts.append(_figure_html(
            lambda: plots.lock_figure(summary), f"{name}-lock",
            f"mmu_lock acquisitions and contentions per vCPU count, {title}",
            "How often mmu_lock was taken and waited for, per vCPU count and kernel: medians; "
            f"the number above a bar is its total, {layout.MISSING} is not measured."))
    if phases:
        parts += [element("h3", "By phase: who takes the lock, and how"),
                  _sheet_html(phases, f"Lock counts by phase of {title}")]
    if phases and not module:
        parts.append(_figure_html(lambda: plots.contention_figure(summary), f"{name}-phase",
                                  f"mmu_lock contentions by phase, {title}",
                                  "Contentions by the phase of the test in which they happened."))
    if not module:
        parts += _further_times_html(summary, name, title)
    if summary.unused:
        parts.append(element("p", f"{summary.unused} runs are in no table: times of kernels with "
                             "lock_stat, or lock counts of kernels without; they are among the "
                             "raw runs.", class_="note"))
    return element("section", parts)


def _further_times_html(summary, name, title):
    """Latencies, the other times, and the plots of all times."""
    parts, others = [], layout.time_sheet(summary, s.OTHER_TIMES)
    latency = layout.latency_sheet(summary)
    if latency:
        parts += [element("h3", "Latency of a write, in the guest"),
                  _sheet_html(latency, f"Latency of a write of {title}")]
    if others:
        parts += [element("h3", "Other times"),
                  _sheet_html(others, f"Other times of {title}")]
    parts.append(_figure_html(
        lambda: plots.time_figure(summary), f"{name}-time", f"Times per vCPU count, {title}",
        f"Times against vCPUs ({summary.group.clock_name}): median of the samples, bars from the "
        "least to the greatest."))
    return parts


def _fact_text(name, value):
    """A value of "host" as text, whatever its type."""
    if name == "memory" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value / 2 ** 30:.1f} GiB"
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return layout.MISSING if value is None else str(value)


def _plain_table(heads, rows, numbers=(), kind="plain"):
    """A table of text; numbers: indices of the columns that are aligned to the right; kind: its
    class, "plain prose" where cells are sentences, which wrap."""
    lines = [element("tr", [element("td", cell, class_="number" if index in numbers else None)
                            for index, cell in enumerate(row)]) for row in rows]
    return element("div", element(
        "table", element("thead", element("tr", [element("th", head, scope="col")
                                                 for head in heads])),
        element("tbody", lines), class_=kind), class_="scroll", tabindex=0)


def _model_html(vtime):
    """The model of virtual time in a file's "host": its parameters with their sources."""
    if vtime is None:
        return None
    parameters = vtime.get("parameters") if isinstance(vtime, dict) else None
    if not isinstance(parameters, dict):
        return _facts([("vtime", _fact_text("vtime", vtime))])
    rows = [[name, *(_fact_text(key, entry.get(key)) for key in ("ns", "what", "source"))]
            if isinstance(entry, dict) else [name, _fact_text(name, entry), "", ""]
            for name, entry in parameters.items()]
    return [element("h3", "Model of virtual time: its parameters"),
            _plain_table(["Parameter", "ns", "What", "Source"], rows, (1,), "plain prose"),
            _facts([(name, _fact_text(name, value)) for name, value in vtime.items()
                    if name != "parameters"])]


def _hosts_html(results):
    """The host of each file, each distinct one once, with kernel versions and tools."""
    numbers, parts, seen = s.cohorts(results), [], set()
    for result, number in zip(results, numbers):
        host = result["host"]
        text = json.dumps(host, sort_keys=True, default=str)
        if text in seen:
            continue
        seen.add(text)
        if len(set(numbers)) > 1:
            parts.append(element("h3", f"Host {number + 1}"))
        parts.append(_facts([(name, _fact_text(name, value)) for name, value in host.items()
                             if name not in ("tools", "kernels", "vtime")]))
        for name, title in (("kernels", "Kernel (kernel, architecture, configuration)"),
                            ("tools", "Tool")):
            table = host.get(name)
            if isinstance(table, dict) and table:
                parts.append(_plain_table(
                    [title, "Version"],
                    [(key, _fact_text(key, value)) for key, value in table.items()]))
            elif table:
                parts.append(_facts([(name, _fact_text(name, table))]))
        parts.append(_model_html(host.get("vtime")))
    return parts or element("p", "Unknown.", class_="empty")


RAW = tuple(KEYS)


def _raw_text(value):
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return layout.MISSING if value is None else value


def _raw_html(results):
    parts = []
    for number, result in enumerate(results, 1):
        runs = [run for run in result["runs"] if run["model"] in ("", s.NOMINAL)]
        hidden = len(result["runs"]) - len(runs)
        which = f"file {number} of {len(results)}: " if len(results) > 1 else ""
        table = _plain_table(RAW, [[_raw_text(run.get(key)) for key in RAW] for run in runs],
                             (RAW.index("vcpus"), RAW.index("iteration")))
        more = f", without {hidden} with variants of the model" if hidden else ""
        parts.append(element("details", element(
            "summary", f"All raw runs, {which}{len(runs)} runs{more}"), table))
    return parts


def page_html(results, commands):
    """The page as a str.  results: loaded results files; commands: shell commands, str each."""
    summaries = aging.summarise(results)
    series = list(dict.fromkeys(summary.group.series for summary in summaries))
    hosts = len({summary.group.cohort for summary in summaries})
    title = "KVM series " + ", ".join(series) + ": base against series" if series \
        else "KVM series: no results"
    glance = [(summary, (own.of(summary) or scaling).highlights(summary) + layout.highlights(summary))
              for summary in summaries]
    body = [
        element("h1", title),
        element("p", "Each kernel, booted in QEMU with nested KVM (accelerator tcg or kvm) or on "
                "the machine itself (here), runs the same KVM selftest binaries: base is "
                "the kernel as released, series has every patch of patches/",
                ", ".join(series) or "<series>", " on top, upto:NAME the patches up to a "
                "milestone, a label with a series before it, such as v7.3:base, another one's "
                "kernel. Lock counts come from kernels with CONFIG_LOCK_STAT, times from "
                "separate kernels without it.", class_="lead"),
        [[element("h3", f"At a glance: {summary.group.title}"),
          element("p", summary.group.args, class_="code note") if summary.group.args else None,
          element("ul", [element("li", line) for line in lines])]
         for summary, lines in glance if lines],
        [_group_html(number, summary, hosts > 1) for number, summary in enumerate(summaries, 1)]
        or element("p", "There are no runs in these results.", class_="empty"),
        *[element("p", line, class_="note") for line in state.notes(results)],
        element("h2", "Reproduce"),
        element("pre", element("code", "\n".join(commands))) if commands
        else element("p", "The commands were not recorded.", class_="empty"),
        element("h2", "Kernels and host"), _hosts_html(results),
        element("section", element("h2", "Raw runs"), _raw_html(results), class_="raw"),
        element("footer", "Written by scripts/series report. The results files are described in "
                "Documentation/results.md."),
    ]
    head = element("head", Html('<meta charset="utf-8">'),
                   Html('<meta name="viewport" content="width=device-width,initial-scale=1">'),
                   Html('<meta name="color-scheme" content="light dark">'),
                   element("title", title), element("style", Html(style.STYLE)))
    return "<!DOCTYPE html>\n" + element("html", head, element("body", element("main", flat(body))),
                                         lang="en") + "\n"


def write_page(results, out, commands):
    """Write index.html in the folder `out` (made if need be), atomically; returns its Path.

    Raises Fail if it cannot be written.
    """
    text = page_html(results, commands).encode("utf-8", "replace")
    return write_atomically(Path(out) / "index.html", text)
