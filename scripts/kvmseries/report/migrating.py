"""migration: what a live migration takes, and what the guest suffers, by QEMU's base and a series.

A group is of one way to track dirty pages (its "config"), one working set and one rate.
"""

from ..data import summary as s
from . import layout

TEST = "migration"
# (heading, name, metric, how a number is written)
_COLUMNS = (
    ("counts", "completed", "completed", "{:.0%}"),
    ("counts", "pages lost", "pages_lost", "{:,.0f}"),
    ("counts", "syncs", "syncs", "{:,.0f}"),
    ("counts", "throttle steps", "throttle_steps", "{:,.0f}"),
    ("counts", "ring-full exits", "ring_full_exits", "{:,.0f}"),
    ("counts", "kicks", "kicks", "{:,.0f}"),
    ("counts", "bytes sent", "bytes_sent", "{:,.0f}"),
    ("the guest", "work lost (s)", "guest_work_lost", "{:,.1f}"),
    ("the guest", "slowed by > 50 % (s)", "slow_time", "{:,.1f}"),
    ("the guest", "longest stall (s)", "guest_stall", "{:,.3f}"),
    ("the guest", "migration (s)", "migration_time", "{:,.1f}"),
)
METRICS = tuple(metric for _, _, metric, _ in _COLUMNS)


def sheet(summary):
    """The Sheet: counts, and times of the guest; per vCPUs and kernel."""
    columns = [(layout.Column(head, name, name), form.format,
                lambda kernel, vcpus, metric=metric: summary.value(kernel, vcpus, metric))
               for head, name, metric, form in _COLUMNS]
    return layout.sheet_of(summary, columns, [_note(summary)])


def _note(summary):
    return (f"Migrations ({summary.group.variant}): medians; {summary.sample_note(METRICS)}. Times are of an "
            "emulated machine: compare kernels, not times. Kernels are QEMUs.")


def highlights(summary):
    """A line for the largest vCPU count that has a ratio."""
    kernel = summary.compared
    for vcpus in reversed(summary.vcpus):
        parts = []
        for metric, name in (("migration_time", "time"), ("syncs", "syncs"),
                             ("guest_work_lost", "guest work lost")):
            one = kernel and s.ratio(summary.value(kernel, vcpus, metric),
                                     summary.value(s.BASE, vcpus, metric))
            if one:
                parts.append(f"{name} {layout.ratio_text(one.median)}")
        if parts:
            return [f"{vcpus} vCPU{'s' * (vcpus > 1)}, {summary.group.variant}, {s.short(kernel)} by base: "
                    + ", ".join(parts)]
    return []
