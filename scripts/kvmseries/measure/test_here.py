"""bench --here knows the tool's own kernels by their release, and asks about others."""

import pytest

from kvmseries.base.errors import Usage
from kvmseries.measure import here


@pytest.mark.parametrize("release,label", [("5.10.262-base", "base"), ("5.10.262-series", "series"),
                                           ("5.10.262-upto-3", "upto:3")])
def test_the_tools_own_kernels_are_known(release, label):
    assert here.label(release) == label


@pytest.mark.parametrize("release", ["6.1.0-32-arm64", "5.10.262-series2", ""])
def test_another_kernel_has_to_be_named(release):
    with pytest.raises(Usage, match="add base, series or upto:STEP"):
        here.label(release)
