"""Every series applies, and its patches are as they must be.  No boot, no kernel build."""

import os

import pytest

from kvmseries import catalog, check

# The user's own tree as the base, as in `make test KERNEL=/path`.
KERNEL = os.environ.get("KERNEL") or None
SERIES = catalog.names()


@pytest.fixture(params=SERIES)
def series(request):
    """Each directory of patches/."""
    return catalog.load(request.param)


def test_applies_to_every_version_of_its_base(series):
    check.applies(series, kernel=KERNEL)


def test_checkpatch_is_clean(series):
    check.checkpatch(series, KERNEL)


def test_trailers_milestones_and_cover_letter(series):
    check.clean(series)


@pytest.mark.skipif(bool(KERNEL), reason="patches name the contents of the pinned base by hash")
def test_export_gives_the_same_files_back(series):
    check.round_trip(series)
