"""What a write fault that only the dirty log has caused does to mmu_lock, by counts of it; and that a fault which forgets the
dirty bit is caught."""

import re

import pytest

from tests import claims
from tests.lab import Lab, with_mutants

pytestmark = pytest.mark.boot

# bench.yaml's 1M a vCPU in pages of 4K.
TEST, PAGES, VCPUS = "dirty_log_perf_test", 256, (1, 4)


def _counted(kernel):
    """Lock counts of dirty_log_perf_test, where KVM takes mmu_lock today and nowhere else, by the instrument hold-times.  In
    virtual time, where threads that spin do not keep each other from two CPUs of the host."""
    lab = Lab("v5.10", kernel, patches=("hold-times",)).virtual(max(VCPUS) + 2)
    return lab.lock_counts(TEST, "", VCPUS, f"counts-{kernel}-{TEST}")


@pytest.fixture(scope="module", name="counts")
def _counts():
    """Lock counts of base, of the series' read-locked fast path, and of the series, by LOCK_STAT."""
    return [
        run
        for kernel in ("base", "upto:fast-path", "series")
        for run in Lab("v5.10", kernel, configs=("lockstat",), machine={"cpus": max(VCPUS) + 2}).lock_counts(
            TEST, "", VCPUS, f"lockstat-{kernel.replace(':', '-')}-{TEST}"
        )
    ]


@pytest.mark.slow
def test_dirty_logging_permission_faults_take_no_lock():
    counts = _counted("base") + _counted("series")
    assert not claims.lockless(counts, "series")
    # As it is on base, by the same count.
    assert not claims.spinlock(counts, "base", PAGES)
    assert claims.lockless(counts, "base")


@pytest.mark.slow
def test_lock_stat_says_the_same(counts):
    """It sees each lock, wherever it is taken.

    Several vCPUs touch the pages that they share, such as those of the code, for the first time while memory is
    populated.  Each that comes before the page is mapped takes the lock: more of them in virtual time, where all run at
    once.  So that phase is compared with one vCPU."""
    assert not claims.lockless(counts, "series")
    for label in ("base", "series"):
        ours = {(run["vcpus"], run["metric"], run["iteration"]): run["samples"][-1] for run in _counted(label)}
        for run in counts:
            by_chance = run["metric"].endswith(".populate") and run["vcpus"] > 1
            counted = re.search(r"_(write|read)_acquisitions\.", run["metric"])
            if run["kernel"] == label and counted and not by_chance:
                # Notifiers come now and then.
                assert ours[run["vcpus"], run["metric"], run["iteration"]] == pytest.approx(
                    run["samples"][-1], rel=0.02, abs=16
                ), run


@pytest.mark.slow
def test_negative_control_the_read_locked_fast_path_takes_it_for_read(counts):
    assert not claims.fast_path(counts, "upto:fast-path", PAGES)
    assert claims.lockless(counts, "upto:fast-path")


@pytest.mark.slow
def test_negative_control_base_takes_it_for_write(counts):
    assert not claims.spinlock(counts, "base", PAGES)
    assert claims.fast_path(counts, "base", PAGES)
    assert claims.lockless(counts, "base")


def test_negative_control_a_fault_that_forgets_the_dirty_bit_is_caught():
    lab = with_mutants("v5.10").but(mutant="no-dirty-bit")
    commands = {"dirty_log_test": ["/tests/dirty_log_test", "-m", "4"], "tail": ["/bin/tail", "-f", "/dev/null"]}
    ran = lab.run(commands, {"dirty_log_test": 120, "tail": 13}, "mutant")
    # A command that hangs says where.
    hung = ran.one("tail")
    assert (
        hung.status == 124 and len(re.findall(r"^== \d+ tail: state S, .* in \w*nanosleep", hung.output, re.M)) == 2
    ), hung
    words = "should have its dirty bit set in this iteration but it is missing"
    assert ran.found(words, "dirty_log_test"), ran.one("dirty_log_test").output
