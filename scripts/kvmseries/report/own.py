"""Tests that have a table and a plot of their own, instead of the dirty log's: their modules, each with
METRICS, sheet(summary) and highlights(summary), by the test's name."""

from . import aging, merging, migrating

OWN = {aging.TEST: aging, merging.TEST: merging, migrating.TEST: migrating}


def of(summary):
    """The module of a Summary's test, or None."""
    return OWN.get(summary.group.test)
