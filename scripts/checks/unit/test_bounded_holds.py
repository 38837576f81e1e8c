"""What checks/test_4_bounded_holds.py makes of a guest's output."""

import pytest

from checks import test_4_bounded_holds as checks
from kvmseries.guest.run import Outcome

MISSING = Outcome("clear", 254, 1, "Clear page 215 value (4) >= iteration (4)\n")
STALE = Outcome("idle", 254, 1, "  writes are missing in the log\n")
FINE = Outcome("get", 0, 1, "Total bits checked: dirty (1), clear (2)\n")


def test_only_tests_that_miss_a_write_count():
    assert checks.lost({"clear": MISSING, "get": FINE, "idle": STALE}) == {"clear", "idle"}
    assert not checks.lost({"get": FINE})


@pytest.mark.parametrize("other", [Outcome("get", 124, 300, MISSING.output), Outcome("get", 1, 1, "usage\n"),
                                   Outcome("get", 139, 1, "Segmentation fault\n")])
def test_a_test_that_fails_for_another_reason_is_no_find(other):
    with pytest.raises(AssertionError):
        checks.lost({"get": other, "clear": MISSING})


def test_figures_are_told_apart():
    text = ("clear idle: longest hold 417000 ns\nclear idle: 420000 ns\nclear busy: longest hold 13000 ns\n"
            "clear busy: 600000 ns\nclear busy: longest write 15000 ns of 240\n")
    assert checks.figures(64, text) == {
        (64, "clear idle", "longest hold"): 417000, (64, "clear idle", "time"): 420000,
        (64, "clear busy", "longest hold"): 13000, (64, "clear busy", "time"): 600000,
        (64, "clear busy", "longest write"): 15000}
