"""What is shown of a test's last iteration alone."""

from __future__ import annotations

from dataclasses import dataclass

from ..data import summary as s
from .layout import Getter


@dataclass(frozen=True)
class Last:
    """The last iteration that one of `metrics` has."""

    metrics: tuple[str, ...]

    def iteration(self, summary: s.Summary) -> int | None:
        """Its number, or None."""
        return summary.last_iteration(self.metrics)

    def value(self, summary: s.Summary | None, kernel: str | None, vcpus: int, metric: str) -> s.Value | None:
        """The metric in it; None if it is missing there, or there is no Summary or no kernel."""
        return summary.last(kernel, vcpus, metric, self.metrics) if summary and kernel else None

    def of(self, summary: s.Summary | None, metric: str) -> Getter:
        """value() of one metric of a Summary, as a function of kernel and vCPUs."""
        return lambda kernel, vcpus: self.value(summary, kernel, vcpus, metric)
