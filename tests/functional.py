"""The functional selftests of a series (kvmseries.verify.functional), and what must come of them."""

import functools

from kvmseries.source import catalog
from kvmseries.verify import functional
from tests import extra


@functools.cache
def default(name, arch, kernels="base,series"):
    """(verdicts, complaints) of base and series in the default configuration.  Of the series alone, for make test: not
    what tests.yaml calls slow, nor what fails or goes by the host's clock; and nobody sees that a test is skipped that
    passes on base."""
    series = catalog.load(name)
    points, own = catalog.points(series, kernels), extra.own_base(series)
    return functional.run(series, arch, points, kernel=own, quick=kernels == "series")[:2]


def check(verdicts, complaints):
    """Assert that nothing is wrong.  A run in which everything is skipped would find nothing."""
    assert not complaints
    assert sum(verdict.results["series"] == "pass" for verdict in verdicts) >= 5


def another(name, arch, cpu="max", params=()):
    """Check the series alone on another CPU or with other kernel parameters: all must pass that does in the default
    configuration, and that tests.yaml does not list."""
    series = catalog.load(name)
    reference, _ = default(name, arch)
    points, own = catalog.points(series, "series"), extra.own_base(series)
    check(*functional.run(series, arch, points, cpu, params=params, kernel=own, reference=reference)[:2])
