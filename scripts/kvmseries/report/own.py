"""Tests that have a table of their own, instead of the dirty log's: their modules, each with
METRICS, sheet(summary), measures(summary) and highlights(summary), by the test's name."""

from . import aging, merging, migrating, state, unmapping

OWN = {module.TEST: module for module in (aging, merging, migrating, unmapping)}


def of(summary):
    """The module of a Summary's test, or None."""
    return OWN.get(summary.group.test)


def summarise(results):
    """The Summaries of `results`: runs without aging are in `.alone` of those that they belong to, migrations that differ
    in the way to track dirty pages alone are one migrating.Family.  Each knows which kernels are old."""
    found = migrating.families(aging.summarise(results), results)
    for summary in found:
        summary.old = state.old(results, summary.group.series, summary.group.arch)
    return found
