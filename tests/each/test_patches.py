"""Every series applies, and its patches are as they must be.  No boot, no kernel build."""

import pytest

from kvmseries.base import paths
from kvmseries.data import ids
from kvmseries.source import catalog, trees
from kvmseries.verify import check
from migrate import check as qemu_check
from tests import extra

# The user's own tree as the base, as in `make test TREE=/path`.
TREE = paths.own_tree()
EACH = {name: catalog.load(name) for name in catalog.names()}
each = pytest.mark.parametrize("series", EACH)
# A series may be its base alone.
patched = pytest.mark.parametrize("series", [name for name, series in EACH.items() if series.patches])


@each
def test_applies_to_every_version_of_its_base(series):
    series = EACH[series]
    check.applies(series, kernel=extra.own_base(series))


@patched
def test_checkpatch_is_clean(series):
    series = EACH[series]
    (qemu_check if series.project == "qemu" else check).checkpatch(series, extra.own_base(series))


@each
def test_trailers_milestones_and_letters(series):
    series = EACH[series]
    check.clean(series)


@patched
def test_fixes_and_milestones_apply_alone(series):
    series = EACH[series]
    tried = check.alone(series, extra.own_base(series))
    assert tried == len(series.fixes) + len(series.on)
    assert tried or catalog.FIXES not in series.milestones


@pytest.mark.skipif(bool(TREE), reason="patches name the contents of the pinned base by hash")
@patched
def test_export_gives_the_same_files_back(series):
    series = EACH[series]
    check.round_trip(series)


@patched
def test_instruments_and_mutants_apply(series):
    series = EACH[series]
    extra.apply_on_top(series, extra.own_base(series))


@pytest.mark.skipif(bool(TREE), reason="the ids are those of the pinned base")
@each
def test_ids_need_no_tree(series):
    """What is said of results by patches/ alone is what a tree says that the patches are applied to."""
    series = EACH[series]
    whats = (*series.arches, *(() if series.project == "qemu" else (ids.TESTS, ids.SUITE)))
    for label, count in (("base", 0), ("series", len(series.patches))):
        tree = trees.worktree(series, count)
        assert {what: ids.today(label, series.name, what) for what in whats} == {
            what: ids.source(tree.path, what, series.project) for what in whats
        }
