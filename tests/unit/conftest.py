"""As for the tests of the tool's modules: everything that is made is a test's own."""

import pytest

from kvmseries import conftest

own_world = conftest.own_world


@pytest.fixture(autouse=True)
def sandbox(own_world):  # pylint: disable=redefined-outer-name,unused-argument
    """See kvmseries/conftest.py."""
