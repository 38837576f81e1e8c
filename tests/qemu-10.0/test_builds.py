"""QEMU with the series builds for arm64, and the unit tests that it adds pass."""

import pytest

from kvmseries.source import catalog
from migrate import build
from tests import extra

pytestmark = pytest.mark.build
SERIES = catalog.load("qemu-10.0")


@pytest.mark.slow
def test_qemu_builds_without_new_warnings():
    build.each_patch(SERIES, "arm64", [len(SERIES.patches)], None, extra.own_base(SERIES))


def test_qemus_new_unit_tests_pass():
    """All of its unit tests and migration qtests, base and series: `scripts/series test qemu-10.0`."""
    found = extra.own_units(SERIES)
    assert found and set(found.values()) == {"pass"}, found
