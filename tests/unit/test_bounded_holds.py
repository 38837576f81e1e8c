"""What checks/test_4_bounded_holds.py makes of a guest's output."""

import pytest

from checks import test_4_bounded_holds as checks
from kvmseries.data.test_parse import HOLDS
from kvmseries.vm.run import Outcome

MISSING = Outcome("clear", 254, 1, "Clear page 215 value (4) >= iteration (4)\n")
STALE = Outcome("idle", 254, 1, "  writes are missing in the log\n")
FINE = Outcome("get", 0, 1, "Total bits checked: dirty (1), clear (2)\n")


def test_only_tests_that_miss_a_write_count():
    assert checks.lost({"clear": MISSING, "get": FINE, "idle": STALE}) == {"clear", "idle"}
    assert not checks.lost({"get": FINE})


@pytest.mark.parametrize(
    "other",
    [
        Outcome("get", 124, 300, MISSING.output),
        Outcome("get", 1, 1, "usage\n"),
        Outcome("get", 139, 1, "Segmentation fault\n"),
    ],
)
def test_a_test_that_fails_for_another_reason_is_no_find(other):
    with pytest.raises(AssertionError):
        checks.lost({"get": other, "clear": MISSING})


def test_figures_are_runs_of_their_size():
    runs = checks.runs("series", 256, HOLDS)
    assert {run["metric"] for run in runs} >= {"clear_busy_hold", "discard_time"}
    assert {(run["kernel"], run["args"]) for run in runs} == {("series", "-b 256")}
