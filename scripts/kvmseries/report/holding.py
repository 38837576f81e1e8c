"""dirty_hold_test: how long mmu_lock is held for write, while the dirty log of a memslot is cleared and while its memory is
discarded; and how long vCPUs wait meanwhile.  Seconds; each is done once a run."""

from __future__ import annotations

from ..data import summary as s
from . import layout
from .layout import Getter
from .measures import main_lines, Measure, time_text
from .unmapping import micros

TEST = "dirty_hold_test"
HOLD, WRITE = "clear_busy_hold", "clear_busy_write"
# Heading of columns (us) -> (metric, name of its column)
PARTS = {
    "clear, vCPUs write": ((HOLD, "longest hold"), (WRITE, "longest write"), ("clear_busy_time", "all")),
    "clear, vCPUs idle": (("clear_idle_hold", "longest hold"), ("clear_idle_time", "all")),
    "discard": (("discard_hold", "longest hold"), ("discard_time", "all")),
}
METRICS = tuple(metric for columns in PARTS.values() for metric, _ in columns)
LOWER_IS_BETTER = METRICS


def _of(summary: s.Summary, metric: str) -> Getter:
    return lambda kernel, vcpus: summary.value(kernel, vcpus, metric) if kernel else None


def sheet(summary: s.Summary) -> layout.Sheet:
    """The Sheet: times per vCPUs and kernel, with a heading for each of PARTS."""
    columns = [
        (layout.Column(f"{head}, us", name, f"{head}: {name} (us)"), micros, _of(summary, metric))
        for head, found in PARTS.items()
        for metric, name in found
        if summary.has(metric)
    ]
    return layout.sheet_of(
        summary,
        columns,
        [f"Holds of mmu_lock for write: medians; {summary.sample_note(METRICS)}. All is the whole call."],
    )


def measures(summary: s.Summary) -> list[Measure]:
    """The Measures of the verdict, the longest hold and the longest write first; none where times are no evidence."""
    if summary.group.emulated:
        return []
    return [
        Measure(
            f"{name if name != 'all' else 'time'} ({head})",
            _of(summary, metric),
            time_text,
            main=metric in (HOLD, WRITE),
        )
        for head, columns in PARTS.items()
        for metric, name in columns
    ]


def highlights(summary: s.Summary) -> list[str]:
    """Lines of the longest hold and the longest write for the largest vCPU count."""
    return main_lines(summary, measures(summary))
