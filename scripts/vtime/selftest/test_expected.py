"""expected.py: every test has its arithmetic, and saturation comes where it must."""

import re
from pathlib import Path

from vtime.selftest import expected
import pytest

COSTS = {"insn": 1, "exception": 150, "atomic": 5, "line": 50, "dsb": 20, "dc": 10}
COSTS |= {"tlbi": 100, "dvm_sync": 800, "dvm_busy": 400}


def test_every_test_of_the_program_has_an_expectation():
    """The names that main.c prints are the names of counts.h and of expected.py."""
    source = Path(expected.__file__).with_name("main.c").read_text()
    names = dict(re.findall(r'\[TEST_(\w+)\] = \{ "(\w+)"', source))
    assert {k.lower(): v for k, v in names.items()} == {v: v for v in expected.NUMBERS}
    for name in expected.NUMBERS:
        low, high = expected.expected(name, 4, 100, 1000, COSTS)
        assert 0 < low <= high


@pytest.mark.parametrize(
    "name, alone, shared",
    [("tlbi", 1000 + 6 + 100 + 800, 400), ("atomic_shared", 1000 + 4 + 50, 50), ("store_shared", 1000 + 4 + 50, 50)],
)
def test_saturation(name, alone, shared):
    """One CPU's own time until the shared part of all is longer; then that."""
    for cpus in (2, 4, 16, 64):
        low, high = expected.expected(name, cpus, 100, 1000, COSTS)
        assert low == 100 * max(alone, cpus * shared)
        assert high - low <= cpus * shared


@pytest.mark.parametrize("name, held", [("spinlock", 6), ("ticket", 6)])
def test_saturated_lock_is_what_it_is_held_for(name, held):
    """Without costs of lines: N x the instructions from unlock to unlock, one more at most."""
    low, high = expected.expected(name, 8, 1000, 2000, {"insn": 0.5})
    assert low == 8 * 1000 * (2000 + held) * 0.5
    assert low < high < low * 1.005


def test_readers_share_the_line_only():
    """Long sections scale, short ones take the line twice each."""
    low, high = expected.expected("readers", 8, 100, 4000, COSTS, gap=4000)
    assert low == 100 * (4000 + 4000 + 6 + 2 * 50) and high - low == 8 * 50
    low, high = expected.expected("readers", 8, 100, 2, COSTS)
    assert low == 100 * 2 * 8 * 50 and high - low == 8 * 50


def test_one_cpu_pays_no_line():
    """Neither N = 1 nor private lines depend on `line`."""
    for name in expected.NUMBERS:
        dear = expected.expected(name, 1, 100, 1000, COSTS | {"line": 9999})
        assert dear == expected.expected(name, 1, 100, 1000, COSTS)


def test_bad_arguments_are_named():
    """Unknown test, unknown cost, bounds that are not defined."""
    with pytest.raises(ValueError, match="no such test: mcs"):
        expected.expected("mcs", 1, 1, 2, {})
    with pytest.raises(ValueError, match="no such cost: dmb"):
        expected.expected("tlbi", 1, 1, 2, {"dmb": 1})
    with pytest.raises(ValueError, match="atomic .* above line"):
        expected.expected("ticket", 2, 1, 2, {"atomic": 7})


def test_holds():
    """Bounds are widened by the tolerance, to both sides."""
    assert expected.holds(98, (100, 200), 0.02) and expected.holds(204, (100, 200), 0.02)
    assert not expected.holds(97, (100, 200), 0.02)
    assert not expected.holds(205, (100, 200), 0.02)
