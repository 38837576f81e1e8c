"""Every series applies, and its patches are as they must be.  No boot, no kernel build."""

import pytest

from checks import extra
from kvmseries.base import paths
from kvmseries.data import ids
from kvmseries.source import catalog, trees
from kvmseries.verify import check
from migrate import check as qemu_check

# The user's own tree as the base, as in `make test TREE=/path`.
TREE = paths.own_tree()
SERIES = catalog.names()


@pytest.fixture(params=SERIES)
def series(request):
    """Each directory of patches/."""
    return catalog.load(request.param)


@pytest.fixture
def patched(series):
    """Each of them that is more than its base."""
    if not series.patches:
        pytest.skip(f"{series.name} has no patches yet")
    return series


def test_applies_to_every_version_of_its_base(series):
    check.applies(series, kernel=extra.own_base(series))


def test_checkpatch_is_clean(patched):
    (qemu_check if patched.project == "qemu" else check).checkpatch(patched, extra.own_base(patched))


def test_trailers_milestones_and_letters(series):
    check.clean(series)


def test_fixes_and_milestones_apply_alone(patched):
    tried = check.alone(patched, extra.own_base(patched))
    assert tried == len(patched.fixes) + len(patched.on)
    assert tried or catalog.FIXES not in patched.milestones


@pytest.mark.skipif(bool(TREE), reason="patches name the contents of the pinned base by hash")
def test_export_gives_the_same_files_back(patched):
    check.round_trip(patched)


def test_debug_patches_apply(patched):
    extra.debug_patches(patched, extra.own_base(patched))


@pytest.mark.skipif(bool(TREE), reason="the ids are those of the pinned base")
def test_ids_need_no_tree(series):
    """What is said of results by patches/ alone is what a tree says that the patches are applied to."""
    whats = (*series.arches, *(() if series.project == "qemu" else (ids.TESTS, ids.SUITE)))
    for label, count in (("base", 0), ("series", len(series.patches))):
        tree = trees.worktree(series, count)
        assert {what: ids.today(label, series.name, what) for what in whats} == {
            what: ids.source(tree.path, what, series.project) for what in whats
        }
