"""The functional selftests on base and series of each linux, on every architecture of it: the series passes what base
passes, and its kernels report nothing that base's does not."""

import pytest

from kvmseries.source import catalog
from tests import functional

LINUX = [series for series in map(catalog.load, catalog.names()) if series.project == "linux" and series.patches]


@pytest.mark.boot
@pytest.mark.parametrize("series, arch", [(series.name, arch) for series in LINUX for arch in series.arches])
def test_selftests_pass_wherever_they_pass_on_base(series, arch):
    functional.check(*functional.default(series, arch))
