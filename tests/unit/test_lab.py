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
    "status, output", [(124, MISSING.output), (4, MISSING.output), (1, "usage\n"), (139, "Segmentation fault\n")]
)
def test_a_test_that_fails_for_another_reason_is_no_find(status, output):
    other = Outcome("get", status, 1, output)
    assert not ran(other).found(WORDS)
    with pytest.raises(AssertionError):
        ran(other, MISSING).finders(WORDS)


def test_a_report_of_the_kernel_is_not_good():
    assert ran(FINE).good().status == 0
    with pytest.raises(AssertionError, match="BUG: here"):
        ran(FINE, splats=["BUG: here"]).good()
    with pytest.raises(AssertionError, match="status 254"):
        ran(MISSING, FINE).good()


def test_a_metric_is_that_of_the_last_iteration(monkeypatch):
    rows = [("time", 1, 3), ("once", None, 7), ("early", 1, 8), ("time", 2, 4)]
    monkeypatch.setattr(parse, "parse", lambda test, _: [parse.Measure(*row, test) for row in rows])
    one = ran(FINE, programs={"get": "some_test"})
    assert one.metric("time") == 4 and one.metric("once") == 7 and one.measures()[0].unit == "some_test"
    for name in ("early", "unknown"):
        with pytest.raises(Fail, match=f"no metric {name}"):
            one.metric(name)


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
