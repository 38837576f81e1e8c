"""Tests that have a table of their own, instead of the dirty log's: their modules, each with
METRICS, sheet(summary), measures(summary) and highlights(summary), by the test's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..data import summary as s
from ..data.shape import Results
from . import aging, exiting, holding, layout, merging, migrating, state, unmapping
from .measures import Measure


class Own(Protocol):
    """Such a module."""

    METRICS: tuple[str, ...]

    def sheet(self, summary: s.Summary) -> layout.Sheet: ...

    def measures(self, summary: s.Summary) -> list[Measure]: ...

    def highlights(self, summary: s.Summary) -> list[str]: ...


OWN = {module.TEST: module for module in (aging, exiting, holding, merging, migrating, unmapping)}


def of(summary: s.Summary) -> Own | None:
    """The module of a Summary's test, or None."""
    return OWN.get(summary.group.test)


def summarise(results: Sequence[Results]) -> list[s.Summary]:
    """The Summaries of `results`: runs without aging are in `.alone` of those that they belong to, migrations that differ
    in the way to track dirty pages alone are one migrating.Family.  Each knows which kernels are old."""
    found = migrating.families(aging.summarise(results), results)
    for summary in found:
        summary.old = state.old(results, summary.group.series, summary.group.arch)
    return found
