"""Each figure that README, cover letters and documents quote follows from committed results, and what got worse is
said.  No boot, no build."""

import pytest

from kvmseries.figures import compute, judge

DATA = judge.load()


@pytest.fixture(scope="module")
def files():
    """The committed results, each read once."""
    return compute.Files(DATA["results"])


@pytest.mark.parametrize("where", DATA["texts"])
def test_a_text_says_what_the_results_say(files, where):
    """If this fails: `scripts/series figures --write`, and read what it names."""
    judged = judge.judge(DATA, files, where)
    assert judged.rows
    assert judged.problems + judge.unsaid(DATA, files, judged) == []


@pytest.mark.slow
@pytest.mark.parametrize("where", DATA["texts"])
def test_results_are_of_today_s_source_and_of_enough_rounds(files, where):
    """If this fails: `scripts/series figures --measure`."""
    judged = judge.judge(DATA, files, where, strict=True)
    assert judged.rows
    assert judged.problems == []
