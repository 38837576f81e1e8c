"""The fixes: the test of each passes on the series, fails on its base, and fails on the series if the
fix of it alone is taken back (patches/mutants/SERIES). One fix without a test has a litmus test, `dirty-log-nested`."""

import functools
from pathlib import Path

import pytest

from kvmseries.source import catalog
from tests.lab import Lab

SERIES = Path(__file__).parent.name
SECONDS = 240


def boots(test):
    """Marks a check that boots guests, and takes long."""
    return pytest.mark.boot(pytest.mark.slow(test))


# For dirty_log_test's 1 GiB and three pages.
HUGE_PAGES = "series.hugepages=520"
# Each of the tests of dirty_ring_reset_test, on both architectures.
_RINGS = {
    f"ring-{test}": (["/tests/dirty_ring_reset_test", test], words)
    for test, words in {
        "signals": r"pages were written and are not in the ring|resets left entries",
        "forged": r"entries that KVM has not pushed were reset",
        "stale": r"and was not reprotected",
    }.items()
}
X86 = "x86_64" if SERIES == "v6.12" else "x86"
_HUGE = ([f"/tests/{X86}/dirty_log_init_set_test"], r"was written after it was cleared, and is not in the log")
_OVERFLOW = r"nothing to collect|are not in the ring|was overwritten|is not reported|Input/output error"
_PAGE = r"Dirty page \d+ value"


def _dirty_log_test(memory):
    return ["/tests/dirty_log_test", "-M", "dirty-ring", "-i", "3", "-s", memory]


def _overflow(case):
    return [f"/tests/{X86}/dirty_ring_overflow_test", case], _OVERFLOW


def _caps(case):
    return [f"/tests/{X86}/dirty_log_protect_caps_test", case], r"was written .* and is not in the (log|ring)"


# {arch: {name: (command, what it must say when a write is missing in the log)}}
_EVERY = {
    "arm64": {
        **_RINGS,
        "ring-steal-time": (["/tests/arm64/dirty_ring_steal_time_test"], _OVERFLOW),
        "ring-thp": (_dirty_log_test("anonymous_thp"), _PAGE),
        "ring-hugetlb": (_dirty_log_test("anonymous_hugetlb_2mb"), _PAGE),
    },
    "x86_64": {
        **_RINGS,
        "two-huge-pages": _HUGE,
        "ring-insb": _overflow("insb"),
        "ring-movsb": _overflow("movsb"),
        "ring-set-msrs": _overflow("set_msrs"),
        "ring-sync": _overflow("sync"),
        "ring-prefault": _overflow("prefault"),
        "caps-manual": _caps("manual"),
        "caps-off": _caps("off"),
        "caps-ring": _caps("ring"),
    },
}
# Those of 6.12's, which has not got the other bugs, or whose series leaves them.
_OLD = {"ring-thp", "ring-hugetlb", "two-huge-pages"}
TESTS = {
    arch: {name: test for name, test in tests.items() if SERIES != "v6.12" or name in _OLD}
    for arch, tests in _EVERY.items()
}
rings = pytest.mark.skipif(SERIES == "v6.12", reason="6.12 has no such reset of dirty rings")
SHADOW = ("kvm_amd.npt=0",)
# With the other kind of page tables these test nothing, and pass.
ONLY_SHADOW, ONLY_TDP = {"ring-sync"} & TESTS["x86_64"].keys(), {"ring-prefault"}
# {mutant: the tests that fail with it, and no other does, on each architecture}: of mutants.patch, then patches of their own.
# A ring cannot meet the window of "two-huge-pages", nor MMU-writable: x86's rings have no bitmap, 7.3's series ignores
# INITIALLY_SET without one, so no huge page is writable, or is mapped writable, while a slot logs by ring.
RINGS_REVERTED = {
    "reset-returns-at-once": {"ring-signals"},
    "reset-stops-at-signal": {"ring-signals"},
    "reset-past-dirty-index": {"ring-forged"},
    "reset-drops-batch": {"ring-stale"},
}
_REVERTED = {
    **RINGS_REVERTED,
    "stolen-time-fills-ring": {"ring-steal-time"},
    "logging-by-bitmap": {"ring-thp", "ring-hugetlb"},
    "window-rounded-up": {"two-huge-pages"},
    "string-overflows-ring": {"ring-insb", "ring-movsb"},
    "sptes-fill-ring": {"ring-prefault"},
    "full-ring-overwritten": {"ring-set-msrs"},
    "huge-pages-by-flag": {"caps-manual", "caps-off"},
    "ring-initially-set": {"caps-ring"},
}
REVERTED = {which: tests for which, tests in _REVERTED.items() if any(tests <= of.keys() for of in TESTS.values())}
# What a kernel says whose ring overflows.
OVERFLOWS = {"base", "full-ring-overwritten"} if SERIES == "v7.3" else set()


@functools.cache
def _lost(arch, which, params=()):
    """The tests that say, on the kernel `which`, that a write is missing in the log; each other one must have passed."""
    lab = Lab(SERIES, "series" if which in REVERTED else which, (HUGE_PAGES, *params), arch)
    if which in RINGS_REVERTED:
        lab = lab.but(patches=("mutants",), mutant=which)
    elif which in REVERTED:
        lab = lab.but(patches=(which,))
    commands = {test: command for test, (command, _) in TESTS[arch].items()}
    ran = lab.run(commands, SECONDS, "-".join([SERIES, "fixes", which, arch, *params]))
    found = ran.finders({test: words for test, (_, words) in TESTS[arch].items()})
    if which in OVERFLOWS:
        assert any("kvm_dirty_ring_push" in line for line in ran.splats)
    else:
        # KVM_PRE_FAULT_MEMORY, which finds the VM dead.
        warns = which == "sptes-fill-ring" and not params
        assert not [line for line in ran.splats if not warns or "kvm_vcpu_ioctl" not in line]
    return found


@boots
@pytest.mark.parametrize("arch", TESTS)
def test_no_write_is_missing_in_the_log(arch):
    assert not _lost(arch, "series")


@boots
@pytest.mark.parametrize("arch", TESTS)
def test_negative_control_base_misses_writes(arch):
    assert _lost(arch, "base") == set(TESTS[arch]) - ONLY_SHADOW


@boots
@pytest.mark.parametrize("which", REVERTED)
def test_negative_control_each_test_needs_its_own_fix(which):
    tests = REVERTED[which]
    found = {arch: _lost(arch, which) for arch, of in TESTS.items() if tests <= of.keys()}
    assert found == dict.fromkeys(found, tests)


@boots
@pytest.mark.parametrize(
    "which, tests",
    {
        "base": set(TESTS["x86_64"]) - ONLY_TDP,
        **({"sptes-fill-ring": ONLY_SHADOW} if ONLY_SHADOW else {}),
        "series": set(),
    }.items(),
)
def test_with_shadow_page_tables(which, tests):
    assert _lost("x86_64", which, SHADOW) == tests


def test_each_test_has_a_patch_that_takes_its_fix_back():
    assert ONLY_SHADOW.union(*REVERTED.values()) == set().union(*TESTS.values())


def _lost_by_two_callers(arch, which):
    """Whether a write is lost if another thread has reset its page, with a delay before the flush."""
    lab = Lab(SERIES, "base", (), arch, ("reset-delay",))
    if which != "base":
        lab = lab.but(kernel="series", patches=("mutants", "reset-delay"), mutant=which if which != "series" else "")
    ran = lab.run(["/tests/dirty_ring_reset_test", "two-callers"], SECONDS, f"{SERIES}-two-callers-{which}-{arch}")
    assert not ran.splats
    return ran.finders("after KVM_RESET_DIRTY_RINGS has returned")


@rings
@boots
@pytest.mark.parametrize("arch", TESTS)
def test_a_second_reset_returns_after_the_flush_of_the_first(arch):
    assert not _lost_by_two_callers(arch, "series")


@rings
@boots
@pytest.mark.parametrize("which", ("base", "reset-flushes-late"))
def test_negative_control_a_reset_that_flushes_late_is_noticed(which):
    assert all(_lost_by_two_callers(arch, which) for arch in TESTS)


each_mmu = pytest.mark.parametrize("params", ((), SHADOW), ids=("tdp", "shadow"))
FLUSH = "KVM-x86-mmu-Don-t-clear-MMU-writable-of-huge-pages"


@functools.cache
def _unflushed(before, params):
    """Reports of MMU-writable that was cleared without a flush, on the series, or on the patches before the fix."""
    patches = catalog.load(SERIES).patches
    number = next(at for at, patch in enumerate(patches) if FLUSH in patch.name)
    lab = Lab(SERIES, f"upto:{number}" if before else "series", params, "x86_64", ("mmu-writable-check",))
    name = "-".join([SERIES, "unflushed", "before" if before else "series", *params])
    ran = lab.run(TESTS["x86_64"]["two-huge-pages"][0], SECONDS, name)
    assert not ran.status, ran.one().why()
    return ran.splats


@boots
@each_mmu
def test_mmu_writable_is_not_cleared_without_a_flush(params):
    assert not _unflushed(False, params)


@boots
@each_mmu
def test_negative_control_a_flush_that_is_missing_is_noticed(params):
    assert any("kvm_arch_mmu_enable_log_dirty_pt_masked" in line for line in _unflushed(True, params))


@functools.cache
def _written(which, option):
    """How many of its 256 pages vCPU 0 of dirty_log_perf_test, as base or the series has it, writes to by base's count of
    faults on arm64."""
    lab = Lab(SERIES, "base", patches=("hold-times",), tests=0 if which == "base" else None)
    counts = lab.lock_counts("dirty_log_perf_test", option, (1,), f"{SERIES}-memstress-{which}{option[:2]}")
    (faults,) = {
        run["samples"][0]
        for run in counts
        if (run["metric"], run["iteration"]) == ("mmu_lock_read_acquisitions.dirty", 2)
    }
    return faults


@pytest.mark.skipif(SERIES == "v6.12", reason="patches/v6.12 leaves that bug")
@boots
@pytest.mark.parametrize("option", ("-w 50", "-a"))
def test_memstress_writes_to_a_random_part_of_the_pages(option):
    assert 256 / 4 < _written("series", option) < 256 * 3 / 4
    # And negative control: to each page, or to one.
    assert not 256 / 4 < _written("base", option) < 256 * 3 / 4
