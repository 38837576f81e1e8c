"""Guests: the functional selftests on base and series, and what the lock counts must show."""

import functools
import re

import pytest

from checks import claims, guests
from kvmseries.base import progress
from kvmseries.source import catalog
from kvmseries.verify import functional
from kvmseries.vm import machine, run as guest

NAME = "v5.10"
pytestmark = pytest.mark.reads(NAME)
ARCHES = ("arm64", "x86_64")
# nVHE, and x86-64 in the other ways in which it maps memory. Base does not run there, and all must pass that does in
# the default case, and that tests.yaml does not list. Base runs in make soak, which has 64K and debug kernels, too.
OTHERS = {
    "arm64-cortex-a72": ("arm64", "cortex-a72", ()),
    "x86_64-tdp_mmu": ("x86_64", "max", ("kvm.tdp_mmu=1",)),
    "x86_64-shadow": ("x86_64", "max", ("kvm_amd.npt=0",)),
}
# Programs that test how memory is mapped; the others are the same in whichever way it is.
MAPS = (
    "dirty_log_test",
    "dirty_log_perf_test",
    "demand_paging_test",
    "stage2_fault_stress_test",
    "access_tracking_stress_test",
    "change_pte_test",
    "set_memory_region_test",
    "kvm_create_max_vcpus",
)
# bench.yaml's 1M a vCPU in pages of 4K.
TEST, PAGES, VCPUS = "dirty_log_perf_test", 256, (1, 4)


@functools.cache
def _default(arch):
    """(verdicts, complaints) of base and series in the default configuration."""
    series = catalog.load(NAME)
    return functional.run(series, arch, catalog.points(series, "base,series"), kernel=guests.TREE)[:2]


def _check(found, complaints):
    assert not complaints
    # A run in which everything is skipped would find nothing.
    assert sum(verdict.results["series"] == "pass" for verdict in found) >= 5


@pytest.mark.boot
@pytest.mark.parametrize("arch", ARCHES)
def test_selftests_pass_wherever_they_pass_on_base(arch):
    _check(*_default(arch))


def _another(case, only=None):
    """Check the series where base does not run."""
    arch, cpu, params = OTHERS[case]
    series = catalog.load(NAME)
    reference, _ = _default(arch)
    _check(
        *functional.run(
            series,
            arch,
            catalog.points(series, "series"),
            cpu,
            params=params,
            kernel=guests.TREE,
            reference=reference,
            only=only,
        )[:2]
    )


@pytest.mark.boot
def test_selftests_pass_on_another_cpu():
    _another("arm64-cortex-a72")


@pytest.mark.boot
@pytest.mark.parametrize("mmu", ("x86_64-tdp_mmu", "x86_64-shadow"))
def test_selftests_that_map_pass_with_another_mmu(mmu):
    _another(mmu, MAPS)


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("mmu", ("x86_64-tdp_mmu", "x86_64-shadow"))
def test_all_selftests_pass_with_another_mmu(mmu):
    _another(mmu)


@pytest.fixture(scope="module", name="counts")
def _counts():
    """Lock counts of base, of the series' read-locked fast path, and of the series, by LOCK_STAT."""
    return guests.lock_counts(TEST, "", VCPUS, "base,upto:fast-path,series")


@pytest.mark.boot
def test_dirty_logging_permission_faults_take_no_lock():
    counts = [run for label in ("base", "series") for run in guests.counted_locks(TEST, "", VCPUS, label)]
    assert not claims.lockless(counts, "series")
    # As it is on base, by the same count.
    assert not claims.spinlock(counts, "base", PAGES)
    assert claims.lockless(counts, "base")


@pytest.mark.boot
@pytest.mark.slow
def test_lock_stat_says_the_same(counts):
    """It sees each lock, wherever it is taken.

    Several vCPUs touch the pages that they share, such as those of the code, for the first time while memory is
    populated.  Each that comes before the page is mapped takes the lock: more of them in virtual time, where all run at
    once.  So that phase is compared with one vCPU."""
    assert not claims.lockless(counts, "series")
    for label in ("base", "series"):
        ours = {
            (run["vcpus"], run["metric"], run["iteration"]): run["samples"][-1]
            for run in guests.counted_locks(TEST, "", VCPUS, label)
        }
        for run in counts:
            by_chance = run["metric"].endswith(".populate") and run["vcpus"] > 1
            counted = re.search(r"_(write|read)_acquisitions\.", run["metric"])
            if run["kernel"] == label and counted and not by_chance:
                # Notifiers come now and then.
                assert ours[run["vcpus"], run["metric"], run["iteration"]] == pytest.approx(
                    run["samples"][-1], rel=0.02, abs=16
                ), run


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_the_read_locked_fast_path_takes_it_for_read(counts):
    assert not claims.fast_path(counts, "upto:fast-path", PAGES)
    assert claims.lockless(counts, "upto:fast-path")


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_base_takes_it_for_write(counts):
    assert not claims.spinlock(counts, "base", PAGES)
    assert claims.fast_path(counts, "base", PAGES)
    assert claims.lockless(counts, "base")


@pytest.mark.boot
def test_there_is_a_vm_before_the_first_command():
    """Or a test's first VM has a branch of the scheduler patched while other CPUs run it, which emulators may miss."""
    kernel, commands = guests.built("series"), [("vms", 60, ["/bin/ls", "-1", "/sys/kernel/debug/kvm"])]
    result = guest.run(kernel, guests.initrd(), machine.Machine("arm64"), commands, "held")
    # Each VM has a directory PID-FD.
    assert len(re.findall(r"^\d+-\d+$", result.outcomes[0].output, re.M)) == 1, result.outcomes
    assert not result.splats
    assert "hold_vm" not in (result.folder / "job.log").read_text(encoding="utf-8")


@pytest.mark.boot
def test_commands_keep_off_cpu_0_of_x86_64():
    """Or QEMU may lose the state of nested virtualisation of that CPU."""
    kernel, commands = guests.built("series", "x86_64"), [("cpus", 60, ["/bin/cat", "/proc/self/status"])]
    emulated = machine.Machine("x86_64")
    result = guest.run(kernel, guests.initrd("x86_64"), emulated, commands, "spared")
    assert re.findall(r"^Cpus_allowed_list:\s+(\S+)$", result.outcomes[0].output, re.M) == [f"1-{emulated.cpus}"]
    assert not result.splats


@pytest.mark.boot
def test_negative_control_a_fault_that_forgets_the_dirty_bit_is_caught():
    with progress.single("planted", "a planted bug: no dirty bit", 120) as note:
        result = guest.run(
            guests.with_bugs(),
            guests.initrd(),
            machine.Machine("arm64", params=(guests.bug("no-dirty-bit"),)),
            [
                ("dirty_log_test", 120, ["/tests/dirty_log_test", "-m", "4"]),
                ("tail", 13, ["/bin/tail", "-f", "/dev/null"]),
            ],
            "planted",
            note,
        )
    # A command that hangs says where.
    hung = result.outcomes[1]
    assert (
        hung.status == 124 and len(re.findall(r"^== \d+ tail: state S, .* in \w*nanosleep", hung.output, re.M)) == 2
    ), hung
    assert result.outcomes[0].status not in (0, 4, 124)
    assert "should have its dirty bit set in this iteration but it is missing" in result.outcomes[0].output, (
        result.outcomes[0].output
    )
