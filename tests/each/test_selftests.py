"""The functional selftests of each linux, on every architecture of it: what fails is listed with its reason, the series
passes what base passes, and its kernels report nothing that base's does not.  make test boots the series alone."""

import pytest

from kvmseries.source import catalog
from tests import functional

LINUX = [series for series in map(catalog.load, catalog.names()) if series.project == "linux" and series.patches]
each = pytest.mark.parametrize("series, arch", [(series.name, arch) for series in LINUX for arch in series.arches])


@pytest.mark.boot
@each
def test_selftests_pass_on_the_series(series, arch):
    functional.check(*functional.default(series, arch, "series"))


@pytest.mark.boot
@pytest.mark.slow
@each
def test_selftests_pass_wherever_they_pass_on_base(series, arch):
    functional.check(*functional.default(series, arch))
