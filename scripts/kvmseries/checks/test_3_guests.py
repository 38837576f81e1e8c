"""Guests: the functional selftests on base and series, and what the lock counts must show."""

import functools

import pytest

from kvmseries import bench, catalog, claims, functional, guest, machine, progress
from kvmseries.checks import guests

BOTH = "base,series"
# x86-64 in each of the ways in which it maps memory. Where base does not run, all must pass that does in the default
# case, and that tests.yaml does not list. Base runs in make soak, which has 64K and debug kernels, too.
CASES = [("v5.10", "arm64", "max", (), BOTH), ("v5.10", "arm64", "cortex-a72", (), "series"),
         ("v5.10", "x86_64", "max", (), BOTH), ("v5.10", "x86_64", "max", ("kvm.tdp_mmu=1",), "series"),
         ("v5.10", "x86_64", "max", ("kvm_amd.npt=0",), "series")]
# bench.yaml's 1M a vCPU in pages of 4K.
PAGES = 256


@functools.lru_cache(maxsize=None)
def _selftests(name, arch, cpu, params, kernels):
    """(verdicts, complaints) of a case; where base does not run, the series' default case is what it is held to."""
    series, reference = catalog.load(name), None
    if kernels != BOTH:
        reference, _ = _selftests(name, arch, "max", (), BOTH)
    return functional.run(series, arch, bench.points(series, kernels), cpu, params=params, kernel=guests.KERNEL,
                          reference=reference)[:2]


@pytest.mark.boot
@pytest.mark.parametrize("name,arch,cpu,params,kernels", CASES,
                         ids=["-".join([*case[:3], *case[3]]) for case in CASES])
def test_selftests_pass_wherever_they_pass_on_base(name, arch, cpu, params, kernels):
    verdicts, complaints = _selftests(name, arch, cpu, params, kernels)
    assert not complaints
    # A run in which everything is skipped would find nothing.
    assert sum(verdict.results["series"] == "pass" for verdict in verdicts) >= 5


@pytest.fixture(scope="module", name="counts")
def _counts():
    """Lock counts of base, of the series' read-locked fast path, and of the series."""
    return guests.lock_counts("dirty_log_perf_test", "", (1, 4), "base,upto:fast-path,series")


@pytest.mark.boot
def test_dirty_logging_permission_faults_take_no_lock(counts):
    assert not claims.lockless(counts, "series")


@pytest.mark.boot
def test_negative_control_the_read_locked_fast_path_takes_it_for_read(counts):
    assert not claims.fast_path(counts, "upto:fast-path", PAGES)
    assert claims.lockless(counts, "upto:fast-path")


@pytest.mark.boot
def test_negative_control_base_takes_it_for_write(counts):
    assert not claims.spinlock(counts, "base", PAGES)
    assert claims.fast_path(counts, "base", PAGES)
    assert claims.lockless(counts, "base")


@pytest.mark.boot
def test_negative_control_a_fault_that_forgets_the_dirty_bit_is_caught():
    with progress.single("planted", "a planted bug: no dirty bit", 120) as note:
        kernel = guests.planted("no-dirty-bit", note=note)
        result = guest.run(kernel, guests.initrd(), machine.Machine("arm64"),
                           [("dirty_log_test", 120, ["/tests/dirty_log_test", "-m", "4"])],
                           "planted", note)
    assert result.outcomes[0].status not in (0, 4, 124)
    assert "should have its dirty bit set in this iteration but it is missing" in result.outcomes[0].output, \
        result.outcomes[0].output
