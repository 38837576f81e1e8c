"""Each figure that README, cover letters and documents quote follows from committed results, and what got worse is
said.  No boot, no build."""

import shlex

import pytest

from kvmseries import cli
from kvmseries.figures import compute, judge
from kvmseries.measure import bench
from kvmseries.source import catalog

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


@pytest.mark.parametrize("name", DATA["results"])
def test_a_command_that_measures_again_is_one_that_the_tool_takes(name):
    """Names of cases, steps and series change."""
    words = shlex.split(DATA["results"][name]["command"])
    assert words[:2] == ["scripts/series", "bench"]
    _, options = cli.parse(words[1:])
    assert catalog.points(options.series, options.kernels or "base,series")
    if options.series.project == "linux":
        assert bench.case(options.test or "dirty_log_perf_test", options.case)


@pytest.mark.slow
@pytest.mark.parametrize("where", DATA["texts"])
def test_results_are_of_today_s_source_and_of_enough_rounds(files, where):
    """If this fails: `scripts/series figures --measure`."""
    judged = judge.judge(DATA, files, where, strict=True)
    assert judged.rows
    assert judged.problems == []
