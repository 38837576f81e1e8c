"""change_pte_test: what merging a VM's pages costs ksmd, and vCPUs that read and write them after.

KSM merges all pages, vCPUs read them, then write to them; and KSM merges them once more while vCPUs
read.  Exits and vCPU times are differences to a pass without faults, so noise can make them negative.
All figures are of the last iteration; see NOTE.  The vCPUs' time of reading while pages are merged is
left out: a difference of two loops that spin, which is mostly noise.
"""

from __future__ import annotations

from ..data import summary as s
from . import layout
from .last import Last
from .measures import Measure, time_text

TEST = "change_pte_test"
READ_EXITS, WRITE_EXITS = "read_merged_exits_per_page", "write_merged_exits_per_page"
READ_WHILE_EXITS = "read_while_merged_exits_per_page"
EXITS = (READ_EXITS, WRITE_EXITS, READ_WHILE_EXITS)
KSMD, KSMD_WHILE_READ = "merge_ksmd_time", "merge_ksmd_time_while_read"
READ, WRITE = "read_merged_vcpu_time", "write_merged_vcpu_time"
# What the sum is made of: (label, metric).
PARTS = (("ksmd", KSMD), ("vCPUs read", READ), ("vCPUs write", WRITE))
TIMES = (KSMD, READ, WRITE, KSMD_WHILE_READ)
DIFFERENCES = (READ, WRITE)  # of two passes: what they repeat to does not shrink with them
METRICS = EXITS + TIMES
LAST = Last(METRICS)
TOGETHER = "kernel and vCPUs together"
NOTE = "the last, as the first has a few exits more, whatever is merged"


def is_merging(summary: s.Summary) -> bool:
    """True if a Summary is of this test."""
    return summary.group.test == TEST


def values(summary: s.Summary, metric: str) -> list[s.Value]:
    """All Values of `metric` in the last iteration, over kernels and vCPU counts."""
    found = (LAST.value(summary, kernel, vcpus, metric) for kernel in summary.kernels for vcpus in summary.vcpus)
    return [value for value in found if value is not None]


def together(summary: s.Summary, kernel: str, vcpus: int) -> s.Value | None:
    """The sum of PARTS; None if one is missing."""
    return s.add(LAST.value(summary, kernel, vcpus, metric) for _, metric in PARTS)


def exits_text(number: float) -> str:
    """Exits a page, to as many digits as the test prints: "1.002"."""
    return f"{round(number, 3) + 0:,.3f}"  # + 0: no "-0.000"


def _micros(seconds: float) -> str:
    return f"{round(seconds * 1e6):,}"


def sheet(summary: s.Summary) -> layout.Sheet:
    """The Sheet: exits a page, and times; per vCPUs and kernel."""
    exits, times = "exits a page", "time, us"
    columns: list[tuple[layout.Column, layout.Text, layout.Getter]] = [
        (layout.Column(exits, name, full), exits_text, LAST.of(summary, metric))
        for name, full, metric in (
            ("read, merged", "exits per merged page read", READ_EXITS),
            ("written, merged", "exits per merged page written", WRITE_EXITS),
            ("read while merged", "exits per page read while merged", READ_WHILE_EXITS),
        )
    ]
    columns += [
        (layout.Column(times, label, f"{label} (us)"), _micros, LAST.of(summary, metric)) for label, metric in PARTS
    ]
    columns += [
        (
            layout.Column(times, TOGETHER, f"{TOGETHER} (us)"),
            _micros,
            lambda kernel, vcpus: together(summary, kernel, vcpus),
        ),
        (
            layout.Column(times, "ksmd while vCPUs read", "ksmd while vCPUs read (us)"),
            _micros,
            LAST.of(summary, KSMD_WHILE_READ),
        ),
    ]
    return layout.sheet_of(summary, columns, [_note(summary)])


def _note(summary: s.Summary) -> str:
    return (
        f"Merging: medians; {summary.sample_note(METRICS)}; iteration {LAST.iteration(summary)}, {NOTE}. Exits and vCPU time: what a pass has more than "
        f"the same without faults. Together: {' + '.join(label for label, _ in PARTS)}."
    )


def measures(summary: s.Summary) -> list[Measure]:
    """The Measures of the verdict, the main one first.  Differences of two passes are compared in their sum alone."""
    exits = [
        Measure(words, LAST.of(summary, metric), lambda number: f"{number:.3g}", count=True)
        for words, metric in (
            ("exits a merged page read", READ_EXITS),
            ("exits a merged page written", WRITE_EXITS),
            ("exits a page read while merged", READ_WHILE_EXITS),
        )
    ]
    if summary.group.emulated:
        return exits
    return [
        Measure(TOGETHER, lambda kernel, vcpus: together(summary, kernel, vcpus), time_text, main=True),
        Measure("ksmd", LAST.of(summary, KSMD), time_text),
        Measure("ksmd while vCPUs read", LAST.of(summary, KSMD_WHILE_READ), time_text),
        *exits,
    ]


def highlights(summary: s.Summary) -> list[str]:
    """Lines for the largest vCPU count that has them."""

    def by_base(kernel: str, vcpus: int) -> s.Ratio | None:
        return s.ratio(together(summary, kernel, vcpus), together(summary, s.BASE, vcpus))

    others = [kernel for kernel in summary.kernels if kernel != s.BASE]
    return [
        *layout.most_line(summary, f"{TOGETHER}, relative to base", others, by_base, layout.ratio_text),
        *layout.most_line(
            summary, "exits per merged page read", summary.kernels, LAST.of(summary, READ_EXITS), exits_text
        ),
    ]
