"""vm_killed_test: how long a process with a VM takes to exit when it is killed.  Seconds; one or more VMs a run, their mean."""

from __future__ import annotations

from ..data import summary as s
from . import layout
from .layout import Getter
from .measures import main_lines, Measure, time_text
from .unmapping import micros

TEST = "vm_killed_test"
EXIT = "exit_time"
METRICS: tuple[str, ...] = (EXIT,)
LOWER_IS_BETTER = METRICS


def _of(summary: s.Summary) -> Getter:
    return lambda kernel, vcpus: summary.value(kernel, vcpus, EXIT) if kernel else None


def sheet(summary: s.Summary) -> layout.Sheet:
    """The Sheet: a column of times per vCPUs and kernel."""
    columns = [(layout.Column("us", "exit", "exit of a killed VM (us)"), micros, _of(summary))]
    return layout.sheet_of(
        summary,
        columns if summary.has(EXIT) else [],
        [f"A process with a VM is killed: medians; {summary.sample_note(METRICS)}. Until waitpid() returns."],
    )


def measures(summary: s.Summary) -> list[Measure]:
    """The Measures of the verdict; none where times are no evidence."""
    if summary.group.emulated:
        return []
    return [Measure("exit of a killed VM", _of(summary), time_text, main=True)]


def highlights(summary: s.Summary) -> list[str]:
    """A line for the largest vCPU count."""
    return main_lines(summary, measures(summary))
