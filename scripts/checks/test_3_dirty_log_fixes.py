"""The fixes of patches/v7.3: the test of each passes on the series, fails on linux 7.3.4, and fails on the series if the
fix of it alone is taken back (patches/mutants/v7.3). The fix without a test has a litmus test, `dirty-log-nested`.

All are in `make test-all` alone: see extra.quick().
"""

import functools
import re

import pytest

from checks import guests
from kvmseries.base import progress
from kvmseries.kernel import build, selftests
from kvmseries.source import catalog
from kvmseries.vm import image, machine, run as guest

NAME = "v7.3"
pytestmark = [pytest.mark.boot, pytest.mark.slow, pytest.mark.reads(NAME)]
SECONDS = 240
# For dirty_log_test's 1 GiB and three pages.
HUGE_PAGES = "series.hugepages=520"
_RESET = (["/tests/dirty_ring_reset_test"], r"pages were written and are not in the ring")
_PAGE = r"Dirty page \d+ value"


def _dirty_log_test(memory):
    return ["/tests/dirty_log_test", "-M", "dirty-ring", "-i", "3", "-s", memory]


# {arch: {name: (command, what it must say when a write is missing in the log)}}
TESTS = {
    "arm64": {
        "ring-reset": _RESET,
        "ring-thp": (_dirty_log_test("anonymous_thp"), _PAGE),
        "ring-hugetlb": (_dirty_log_test("anonymous_hugetlb_2mb"), _PAGE),
    },
    "x86_64": {
        "ring-reset": _RESET,
        "two-huge-pages": (
            ["/tests/x86/dirty_log_init_set_test"],
            r"was written after it was cleared, and is not in the log",
        ),
    },
}
# {patches/mutants/v7.3/NAME.patch: (arch, the tests that fail with it, and no other does)}
REVERTED = {
    "reset-returns-at-once": ("arm64", {"ring-reset"}),
    "logging-by-bitmap": ("arm64", {"ring-thp", "ring-hugetlb"}),
    "window-rounded-up": ("x86_64", {"two-huge-pages"}),
}


def _kernel(arch, which):
    """The kernel of "base" or "series", or of the series with trees.on_top() of WHICH."""
    series = catalog.load(NAME)
    if which not in REVERTED:
        return build.kernel(series, {"base": 0, "series": len(series.patches)}[which], arch)
    return guests.planted(which, arch=arch, name=NAME)


@functools.cache
def _lost(arch, which, params=()):
    """losing() of the tests on the kernel `which`, in one boot."""
    kernel = _kernel(arch, which)
    initrd = image.base(arch, selftests.build(catalog.load(NAME), arch))
    with progress.single(f"fixes-{arch}", f"the fixes' tests on {which} of {NAME} ({arch})", 60) as note:
        result = guest.run(
            kernel,
            initrd,
            machine.Machine(arch, params=(HUGE_PAGES, *params)),
            [(test, SECONDS, command) for test, (command, _) in TESTS[arch].items()],
            "-".join(["fixes", which, arch, *params]),
            note,
        )
    assert not result.splats
    return losing(arch, dict(zip(TESTS[arch], result.outcomes)))


def losing(arch, outcomes):
    """The names of the tests that say that a write is missing in the log; each other one must have passed."""
    found = {
        test
        for test, (_, words) in TESTS[arch].items()
        if outcomes[test].status not in (0, 4, 124) and re.search(words, outcomes[test].output)
    }
    bad = {test: outcome.why() for test, outcome in outcomes.items() if test not in found and outcome.status}
    assert not bad, bad
    return found


@pytest.mark.parametrize("arch", TESTS)
def test_no_write_is_missing_in_the_log(arch):
    assert not _lost(arch, "series")


@pytest.mark.parametrize("arch", TESTS)
def test_negative_control_base_misses_writes(arch):
    assert _lost(arch, "base") == set(TESTS[arch])


@pytest.mark.parametrize("which", REVERTED)
def test_negative_control_each_test_needs_its_own_fix(which):
    arch, tests = REVERTED[which]
    assert _lost(arch, which) == tests


@pytest.mark.parametrize("which", ("base", "series"))
def test_with_shadow_page_tables(which):
    assert _lost("x86_64", which, ("kvm_amd.npt=0",)) == (set(TESTS["x86_64"]) if which == "base" else set())


FLUSH = "KVM-x86-mmu-Flush-the-TLBs-when-a-huge-page-loses"


@functools.cache
def _unflushed(before, params):
    """Reports of MMU-writable that was cleared without a flush, on the series, or on the patches before the fix."""
    series = catalog.load(NAME)
    number = next(at for at, patch in enumerate(series.patches) if FLUSH in patch.name)
    outcomes, splats = guests.run_planted(
        ("mmu-writable-check",),
        "",
        {"two-huge-pages": TESTS["x86_64"]["two-huge-pages"][0]},
        SECONDS,
        "-".join(["unflushed", "before" if before else "series", *params]),
        arch="x86_64",
        params=params,
        count=number if before else None,
    )
    assert not outcomes["two-huge-pages"].status, outcomes["two-huge-pages"].why()
    return splats


@pytest.mark.parametrize("params", ((), ("kvm_amd.npt=0",)), ids=("tdp", "shadow"))
def test_mmu_writable_is_not_cleared_without_a_flush(params):
    assert not _unflushed(False, params)


@pytest.mark.parametrize("params", ((), ("kvm_amd.npt=0",)), ids=("tdp", "shadow"))
def test_negative_control_a_flush_that_is_missing_is_noticed(params):
    assert any("kvm_arch_mmu_enable_log_dirty_pt_masked" in line for line in _unflushed(True, params))
