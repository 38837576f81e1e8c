"""Guests: the functional selftests on base and series, and what the lock counts must show."""

import os

import pytest

from kvmseries import (bench, build, catalog, claims, functional, guest, image, machine,
                       progress, selftests, trees)

KERNEL = os.environ.get("KERNEL") or None
# The debug kernel on cortex-a72, and over and over: make soak.
CASES = [("v5.10", "arm64", "max", ()), ("v5.10", "arm64", "cortex-a72", ()),
         ("v5.10", "x86_64", "max", ()), ("v5.10", "arm64", "max", ("64k",)),
         ("v5.10", "arm64", "max", ("debug",))]
# bench.yaml's 1M a vCPU in pages of 4K.
PAGES = 256


@pytest.mark.boot
@pytest.mark.parametrize("name,arch,cpu,configs", CASES,
                         ids=["-".join([*case[:3], *case[3]]) for case in CASES])
def test_selftests_pass_wherever_they_pass_on_base(name, arch, cpu, configs):
    series = catalog.load(name)
    verdicts, complaints, _ = functional.run(series, arch, bench.points(series, "base,series"), cpu,
                                             configs=configs, kernel=KERNEL)
    assert not complaints
    # A run in which everything is skipped would find nothing.
    assert sum(verdict.results["series"] == "pass" for verdict in verdicts) >= 5


@pytest.fixture(scope="module", name="counts")
def _counts():
    """Lock counts of base, of the series' read-locked fast path, and of the series."""
    series = catalog.load("v5.10")
    job = bench.Job(
        series=series, arch="arm64", test="dirty_log_perf_test",
        line=tuple(bench.arguments("dirty_log_perf_test", "arm64", "", series.kernel)),
        vcpus=(1, 4),
        points=bench.points(series, "base,upto:fast-path,series"), samples=1, configs=(), counts=True,
        times=False, cpu="max", accel="tcg", params=(), kernel=KERNEL)
    runs, _ = bench.run(job)
    return runs


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
    series = catalog.load("v5.10")
    with progress.single("planted", "a planted bug: no dirty bit", 120) as note:
        tree = trees.planted(series, ["no-dirty-bit"], KERNEL)
        kernel = build.in_tree(tree, "arm64", note=note)
        initrd = image.base("arm64", selftests.build(series, "arm64", KERNEL))
        result = guest.run(kernel, initrd, machine.Machine("arm64"),
                           [("dirty_log_test", 120, ["/tests/dirty_log_test", "-m", "4"])],
                           "planted", note)
    assert result.outcomes[0].status not in (0, 4, 124)
    assert "Test Assertion Failure" in result.outcomes[0].output
