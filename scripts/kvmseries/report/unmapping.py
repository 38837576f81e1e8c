"""memslot_unmap_perf_test: what is done to a large memslot with few pages in it; discarding, deleting and logging one
that is mapped all over; and how long first writes to other memory take meanwhile.

Seconds, of the last iteration.  A file may have one part alone (-b 0, -S 0), and x86-64 turns no caches off.
"""

from __future__ import annotations

from ..data import summary as s
from . import layout
from .last import Last
from .measures import main_lines, Measure, time_text, vcpus_text

TEST = "memslot_unmap_perf_test"
DELETE, DISCARD = "sparse_delete_time", "discard_time.writing"
# (metric, name of its column)
SPARSE = tuple(
    (f"sparse_{name.replace(' ', '_')}_time", name)
    for name in (
        "create",
        "caches off",
        "caches on",
        "log on",
        "get dirty log",
        "log off",
        "discard",
        "munmap",
        "delete",
    )
)
MAPPED = (
    ("discard_time.host", "discard, host only"),
    *(
        (f"{what.replace(' ', '_')}_time.{state}", f"{what}, vCPUs {state}")
        for what in ("discard", "delete", "log on")
        for state in ("idle", "writing")
    ),
)
DURING = ("nothing", "discard", "delete", "log on")
WRITES = {
    part: tuple((f"write_{part}.{during.replace(' ', '_')}", during) for during in DURING)
    for part in ("p50", "p99", "max")
}
# Heading of columns (us) -> them.
PARTS = {
    "large memslot": SPARSE,
    "mapped memslot": MAPPED,
    **{f"first write meanwhile, {part}": columns for part, columns in WRITES.items()},
}
METRICS = tuple(metric for columns in PARTS.values() for metric, _ in columns)
LAST = Last(METRICS)
# Without the part after the dot, as compare and figures take them.
LOWER_IS_BETTER = tuple(dict.fromkeys(metric.partition(".")[0] for metric in METRICS))
# The first line of the verdict is of the first that was measured; the highlights are of all.
MAIN = (DISCARD, DELETE)


def micros(seconds: float) -> str:
    """Microseconds for people, one decimal below 100: "11.7", "3,210"."""
    return f"{seconds * 1e6:,.{int(abs(seconds) < 99.95e-6)}f}"


def sheet(summary: s.Summary) -> layout.Sheet:
    """The Sheet: times per vCPUs and kernel, with a heading for each of PARTS; what nobody measured has no column."""
    columns = [
        (layout.Column(f"{head}, us", name, f"{head}: {name} (us)"), micros, LAST.of(summary, metric))
        for head, found in PARTS.items()
        for metric, name in found
        if summary.has(metric)
    ]
    return layout.sheet_of(summary, columns, _notes(summary))


_EXPLAINED = {
    SPARSE: "Large memslot: few of its pages are mapped.",
    MAPPED: "Mapped memslot: all of its pages are mapped; host only: no vCPU has touched its memory.",
    sum(WRITES.values(), ()): "First write: to other memory, by the guest's counter.",
}


def _notes(summary: s.Summary) -> list[str]:
    said = " ".join(text for columns, text in _EXPLAINED.items() if any(summary.has(metric) for metric, _ in columns))
    notes = [
        f"Unmapping: medians; {summary.sample_note(METRICS)}; iteration {LAST.iteration(summary)}. {said}".rstrip()
    ]
    out = _out(summary)
    return notes + [f"These vCPUs had written to all of their pages before it was over: {out}."] if out else notes


def _out(summary: s.Summary) -> str:
    """ "delete, 4 of 4 vCPUs on base; ...": vCPUs whose first writes are of a part of the time only."""
    found = []
    for during in DURING:
        for vcpus in summary.vcpus:
            for kernel in summary.kernels:
                value = LAST.value(summary, kernel, vcpus, f"vcpus_out.{during.replace(' ', '_')}")
                if value and value.median:
                    found.append(f"{during}, {value.median:.0f} of {vcpus_text(vcpus)} on {s.short(kernel)}")
    return "; ".join(found)


def _words(head: str, name: str) -> str:
    """What the verdict calls a column: "delete (large memslot)", "first write (p99, during delete)"."""
    what, _, part = head.partition(" meanwhile, ")
    if part:
        return f"{what} ({part}, {'nothing is unmapped' if name == DURING[0] else f'during {name}'})"
    name, _, more = name.partition(", ")
    return f"{name} ({head}{', ' * bool(more)}{more})"


def measures(summary: s.Summary) -> list[Measure]:
    """The Measures of the verdict, MAIN first; none where times are no evidence."""
    if summary.group.emulated:
        return []
    found = {
        metric: Measure(_words(head, name), LAST.of(summary, metric), time_text, main=metric in MAIN)
        for head, columns in PARTS.items()
        for metric, name in columns
    }
    return [found.pop(metric) for metric in MAIN] + list(found.values())


def highlights(summary: s.Summary) -> list[str]:
    """Lines of MAIN for the largest vCPU count that has them."""
    return main_lines(summary, measures(summary))
