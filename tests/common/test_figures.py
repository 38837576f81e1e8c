"""README, cover letters and documents say what the committed results say, and what got worse is said.  No boot, no build."""

import shlex

import pytest

from kvmseries import cli
from kvmseries.figures import query, texts
from kvmseries.measure import bench
from kvmseries.source import catalog

DATA = texts.load()


@pytest.fixture(scope="module")
def files():
    """The committed results, each read once."""
    return query.Files(DATA["results"])


@pytest.mark.parametrize("name", texts.names())
def test_a_text_says_what_the_results_say(files, name):
    """If this fails: edit Documentation/texts, then `scripts/series report --texts`."""
    text = texts.make(files, name)
    assert text.weak, "it has no figure"
    assert texts.problems(DATA, files, text) == []


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
@pytest.mark.parametrize("name", texts.names())
def test_results_are_of_enough_rounds(files, name):
    """If this fails: `scripts/series report --texts --old`."""
    text = texts.make(files, name)
    assert [name for name, reasons in text.weak.items() if "rounds" in reasons] == []
