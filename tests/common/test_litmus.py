"""What the series rests on in the memory models (arch-*/litmus): each claim holds, and does not
without what it rests on.  Needs herd7, fetched if there is a network; without, it fails in CI and is skipped
elsewhere."""

import re

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import lacking
from kvmseries.source import catalog, trees
from kvmseries.verify import litmus

TREE = paths.own_tree()
SERIES = "v5.10"
TESTS = litmus.tests()


@pytest.fixture(scope="module", name="herd")
def _herd():
    try:
        return litmus.herd()
    except Fail as error:
        return lacking(error)


@pytest.fixture(scope="module", name="model")
def _model():
    return trees.base(catalog.load(SERIES), TREE).path / "tools/memory-model"


def test_each_claim_has_a_twin_that_fails():
    assert not litmus.unpaired(TESTS)


@pytest.mark.parametrize("folder", litmus.FOLDERS, ids=[folder.parent.name for folder in litmus.FOLDERS])
def test_the_readme_names_each_test_and_no_other(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    named = set()
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and re.fullmatch(r"`[\w-]+`", cells[0]):
            name = cells[0].strip("`")
            named |= {name, *(f"{name}+{twin}" for twin in re.findall(r"`(no-[\w-]+)`", cells[-1]))}
    assert named == {test.name for test in TESTS if test.path.parent == folder}


@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_herd7_says_what_the_test_says(herd, model, test):
    assert litmus.complaint(test, litmus.run(herd, test, model)) == ""
