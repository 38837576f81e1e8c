"""What is left of a benchmark, and what counts as done."""

import pytest

from kvmseries.base.errors import Fail
from kvmseries.data import unfinished

BOOTS = [(0, "base"), (0, "series"), (1, "series")]


def test_each_is_done_when_the_next_begins_and_the_last_at_the_end():
    taken, kept = unfinished.Taken([[0, "series"]]), []
    left = taken.left(BOOTS, list)
    assert left == [(0, "base"), (1, "series")]
    for boot in taken.each(left, list, kept.append):
        assert list(boot) not in taken.parts
        assert len(kept) == left.index(boot)
    assert kept == [1, 0] and taken.left(BOOTS, list) == []


def test_one_that_breaks_off_is_not_done():
    taken, kept = unfinished.Taken(), []
    with pytest.raises(Fail, match="no more"):
        for _, kernel in taken.each(BOOTS, list, kept.append):
            if kernel == "series":
                raise Fail("no more")
    assert kept == [2] and taken.left(BOOTS, list) == BOOTS[1:]
