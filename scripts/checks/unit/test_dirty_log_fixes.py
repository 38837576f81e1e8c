"""What test_3_dirty_log_fixes makes of what the tests print."""

import pytest

from checks import test_3_dirty_log_fixes as fixes
from kvmseries.verify import mutants
from kvmseries.vm.run import Outcome

LOST = {
    "ring-reset": "round 3, 15 short resets: 119 of 8192 pages were written and are not in the ring, the first is 1",
    "ring-thp": "Dirty page 0 value (0) != iteration (1) (last = 1)",
    "ring-hugetlb": "Dirty page 7 value (0) != iteration (2) (last = 1)",
    "two-huge-pages": "page 63 was written after it was cleared, and is not in the log",
}


def outcomes(arch, failed=None, status=254, output=None):
    """All tests of `arch` pass, but for `failed`."""
    found = {test: Outcome(test, 0, 1.0, "") for test in fixes.TESTS[arch]}
    if failed:
        found[failed] = Outcome(failed, status, 1.0, LOST[failed] if output is None else output)
    return found


def test_a_test_that_misses_writes_is_named():
    for arch, tests in fixes.TESTS.items():
        assert fixes.losing(arch, outcomes(arch)) == set()
        for test in tests:
            assert fixes.losing(arch, outcomes(arch, test)) == {test}


@pytest.mark.parametrize(
    "status, output",
    [
        (254, "not raced: 3 of 10 resets were interrupted half way"),
        (4, "KVM did not map a huge page"),
        (124, LOST["ring-reset"]),
        (134, ""),
    ],
)
def test_any_other_failure_is_no_finding(status, output):
    with pytest.raises(AssertionError, match="ring-reset"):
        fixes.losing("x86_64", outcomes("x86_64", "ring-reset", status, output))


# Those that hold several, for checks 3, 4 and 6.
MUTANTS = ("mutants", "aging-mutants", "undo-mutants", "tlb-mutants")


def test_each_patch_that_takes_a_fix_back_is_there_and_each_test_needs_one():
    alone = {path.stem for path in mutants.patches("v7.3") if path.parent.parent.name == "mutants"} - set(MUTANTS)
    assert alone == set(fixes.REVERTED)
    assert {test for _, tests in fixes.REVERTED.values() for test in tests} == {
        test for tests in fixes.TESTS.values() for test in tests
    }
