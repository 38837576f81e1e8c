"""change_pte_test: what merging a VM's pages costs ksmd, and vCPUs that read and write them after.

KSM merges all pages, vCPUs read them, then write to them; and KSM merges them once more while vCPUs
read.  Exits and vCPU times are differences to a pass without faults, so noise can make them negative.
All figures are of the last iteration; see NOTE.  The vCPUs' time of reading while pages are merged is
left out: a difference of two loops that spin, which is mostly noise.
"""

from ..data import summary as s
from . import layout
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
DIFFERENCES = (READ, WRITE)     # of two passes: what they repeat to does not shrink with them
METRICS = EXITS + TIMES
TOGETHER = "kernel and vCPUs together"
NOTE = "the last, as the first has a few exits more, whatever is merged"


def is_merging(summary):
    """True if a Summary is of this test."""
    return summary.group.test == TEST


def iteration(summary):
    """The number of the last iteration, or None."""
    return summary.last_iteration(METRICS)


def last(summary, kernel, vcpus, metric):
    """The metric in the last iteration; None if it is missing there."""
    return summary.last(kernel, vcpus, metric, METRICS)


def values(summary, metric):
    """All Values of `metric` in the last iteration, over kernels and vCPU counts."""
    found = (last(summary, kernel, vcpus, metric)
             for kernel in summary.kernels for vcpus in summary.vcpus)
    return [value for value in found if value is not None]


def together(summary, kernel, vcpus):
    """The sum of PARTS; None if one is missing."""
    return s.add(last(summary, kernel, vcpus, metric) for _, metric in PARTS)


def exits_text(number):
    """Exits a page, to as many digits as the test prints: "1.002"."""
    return f"{round(number, 3) + 0:,.3f}"      # + 0: no "-0.000"


def _micros(seconds):
    return f"{round(seconds * 1e6):,}"


def sheet(summary):
    """The Sheet: exits a page, and times; per vCPUs and kernel."""
    def of(metric):
        return lambda kernel, vcpus: last(summary, kernel, vcpus, metric)

    exits, times = "exits a page", "time, us"
    columns = [(layout.Column(exits, name, full), exits_text, of(metric)) for name, full, metric in (
        ("read, merged", "exits per merged page read", READ_EXITS),
        ("written, merged", "exits per merged page written", WRITE_EXITS),
        ("read while merged", "exits per page read while merged", READ_WHILE_EXITS))]
    columns += [(layout.Column(times, label, f"{label} (us)"), _micros, of(metric))
                for label, metric in PARTS]
    columns += [
        (layout.Column(times, TOGETHER, f"{TOGETHER} (us)"), _micros,
         lambda kernel, vcpus: together(summary, kernel, vcpus)),
        (layout.Column(times, "ksmd while vCPUs read", "ksmd while vCPUs read (us)"), _micros,
         of(KSMD_WHILE_READ))]
    return layout.sheet_of(summary, columns, [_note(summary)])


def _note(summary):
    return (f"Merging: medians; {summary.sample_note(METRICS)}; iteration {iteration(summary)}, {NOTE}. Exits and vCPU time: what a pass has more than "
            f"the same without faults. Together: {' + '.join(label for label, _ in PARTS)}.")


def measures(summary):
    """The Measures of the verdict, the main one first.  Differences of two passes are compared in their sum alone."""
    def of(metric):
        return lambda kernel, vcpus: last(summary, kernel, vcpus, metric)

    exits = [Measure(words, of(metric), lambda number: f"{number:.3g}", count=True) for words, metric in (
        ("exits a merged page read", READ_EXITS), ("exits a merged page written", WRITE_EXITS),
        ("exits a page read while merged", READ_WHILE_EXITS))]
    if summary.group.emulated:
        return exits
    return [Measure(TOGETHER, lambda kernel, vcpus: together(summary, kernel, vcpus), time_text, main=True),
            Measure("ksmd", of(KSMD), time_text), Measure("ksmd while vCPUs read", of(KSMD_WHILE_READ), time_text), *exits]


def highlights(summary):
    """Lines for the largest vCPU count that has them."""
    def by_base(kernel, vcpus):
        return s.ratio(together(summary, kernel, vcpus), together(summary, s.BASE, vcpus))

    def exits(kernel, vcpus):
        return last(summary, kernel, vcpus, READ_EXITS)

    lines = []
    for what, kernels, value, text in (
            (f"{TOGETHER}, relative to base",
             [kernel for kernel in summary.kernels if kernel != s.BASE], by_base, layout.ratio_text),
            ("exits per merged page read", summary.kernels, exits, exits_text)):
        found = layout.most_vcpus(summary, kernels, value)
        if found:
            vcpus, values = found
            parts = [f"{text(one.median)} on {kernel}" for kernel, one in values.items()]
            lines.append(f"{vcpus} vCPU{'s' * (vcpus > 1)}, {what}: {', '.join(parts)}")
    return lines
