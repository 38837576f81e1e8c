"""What a Lab makes of what commands print, and how it boots."""

from pathlib import Path

import pytest

from kvmseries.base.errors import Fail
from kvmseries.data import parse
from kvmseries.vm.run import Outcome
from tests import lab

MISSING = Outcome("clear", 254, 1, "Clear page 215 value (4) >= iteration (4)\n")
STALE = Outcome("idle", 254, 1, "  writes are missing in the log\n")
FINE = Outcome("get", 0, 1, "Total bits checked: dirty (1), clear (2)\n")
WORDS = r"(Dirty|Clear) page \d+ value|writes are missing in the log"


def ran(*outcomes, splats=(), programs=None):
    """A Ran of these."""
    return lab.Ran({one.name: one for one in outcomes}, list(splats), Path(), programs or {}, False)


def test_only_tests_that_miss_a_write_count():
    assert ran(MISSING, FINE, STALE).finders(WORDS) == {"clear", "idle"}
    assert not ran(FINE).finders(WORDS)
    each = {"clear": "Clear page", "idle": "missing", "get": "(?!)"}
    assert ran(MISSING, FINE, STALE).finders(each) == {"clear", "idle"}


@pytest.mark.parametrize(
    "other",
    [
        Outcome("get", 124, 300, MISSING.output),
        Outcome("get", 4, 1, MISSING.output),
        Outcome("get", 1, 1, "usage\n"),
        Outcome("get", 139, 1, "Segmentation fault\n"),
    ],
)
def test_a_test_that_fails_for_another_reason_is_no_find(other):
    assert not ran(other).found(WORDS)
    with pytest.raises(AssertionError):
        ran(other, MISSING).finders(WORDS)


def test_a_report_of_the_kernel_is_not_good():
    assert ran(FINE).good().status == 0
    with pytest.raises(AssertionError, match="BUG: here"):
        ran(FINE, splats=["BUG: here"]).good()
    with pytest.raises(AssertionError, match="status 254"):
        ran(MISSING, FINE).good()


def test_counts_of_races_are_numbers_also_where_there_are_none():
    found = ran(Outcome("x", 0, 1, "Walks that age: lost 3\nWalks that age: late 0\n")).counts()
    assert found["walks_that_age.lost"] == 3 and found["walks_that_age.unmapped"] == 0


def test_a_metric_is_that_of_the_last_iteration(monkeypatch):
    def measures(test, _):
        assert test == "some_test"
        return [
            parse.Measure("time", 1, 3, "s"),
            parse.Measure("once", None, 7, "1"),
            parse.Measure("early", 1, 8, "1"),
            parse.Measure("time", 2, 4, "s"),
        ]

    monkeypatch.setattr(parse, "parse", measures)
    one = ran(FINE, programs={"get": "some_test"})
    assert one.metric("time") == 4 and one.metric("once") == 7
    for name in ("early", "unknown"):
        with pytest.raises(Fail, match=f"no metric {name}"):
            one.metric(name)


@pytest.mark.parametrize(
    "words, program",
    [
        (["/tests/dirty_log_test", "-M", "x"], "dirty_log_test"),
        (["/tests/lockphase", "-f", "/sys/x", "--", "/tests/dirty_log_perf_test", "-v", "1"], "dirty_log_perf_test"),
        (["/bin/ls"], ""),
    ],
)
def test_the_program_that_a_command_runs(words, program):
    assert lab._program(words) == program


def test_races_are_added_up_until_each_was_met():
    runs = iter([{"a": 1, "b": 0, "c": 9}, {"a": 1, "b": 2, "c": 0}])
    lab.races({"a": 2, "b": 1}, 3, lambda: next(runs))
    assert not list(runs)
    with pytest.raises(AssertionError):
        lab.races({"a": 1}, 2, lambda: {"a": 0})


@pytest.mark.parametrize("patches, mutant", [((), "age-forgets"), (("mutants", "aging-delays"), "no-such")])
def test_a_mutant_that_no_patch_plants_is_refused_before_anything_is_built(monkeypatch, patches, mutant):
    monkeypatch.setattr(lab.Lab, "built", lambda _: pytest.fail("builds"))
    one = lab.Lab("v7.3", patches=patches, mutant=mutant)
    for run in (one.run, one.wreck):
        with pytest.raises(Fail, match=f"no mutant '{mutant}'"):
            run(["/tests/x"], 1, "x")
