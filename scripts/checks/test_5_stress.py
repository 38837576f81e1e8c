"""Stage-2 faults that race: stage2_fault_stress_test on a kernel that delays them at random.

patches/instruments/v5.10/delays.patch goes below all that is planted here, and counts tables; on x86_64 it is
v5.10-x86-delays.patch.  Each run goes on until the races that it is there for were met, or fails.  The normal
configuration, because this is bounded; with lockdep and KASAN, and longer:
`SERIES_STRESS=600 SERIES_STRESS_CONFIG=debug make test-all CHECKS=scripts/checks/test_5_stress.py`
"""

import collections
import os
import re

import pytest

from checks import aging, guests
from kvmseries.verify import soakcounts

pytestmark = pytest.mark.reads("v5.10")

# Of the kernel without a planted bug.
CONFIGS = tuple(filter(None, os.environ.get("SERIES_STRESS_CONFIG", "").split("+")))
SECONDS = int(os.environ.get("SERIES_STRESS", "45"))
VMS = 20

PROGRAM = "/tests/stage2_fault_stress_test"
# Never so many of everything that it stops before its time.
LINE = (PROGRAM, "-m", "get", "-n", "1000000", "-r", "3", "-i", "300", "-b", "8M")
COUNTERS = ("blocks_split", "tables_collapsed", "races_lost", "entries_locked")
# All helpers of the test. One that is named with -o and cannot be had is a failure.
HELPERS = (
    "log",
    "slots",
    "punch",
    "rally",
    "readonly",
    "exec",
    "remap",
    "split",
    "collapse",
    "ksm",
    "migrate",
    "pageout",
    "age",
)
# Those that take memory away or replace it, each with holes, and the log by KVM_CLEAR_DIRTY_LOG, which QEMU uses.
ALONE = ("slots", "remap", "split", "collapse", "ksm", "migrate", "pageout", "readonly")
# How many there must be of each helper's operations and of each race; runs of one kind at most.
WANTED, MOST = 4, 4
MMUS = {"default": (), "tdp_mmu": ("kvm.tdp_mmu=1",), "shadow": ("kvm_amd.npt=0",)}


def _tables(command):
    """`command` with the number of stage-2 tables compared before and after."""
    return guests.script("tables.sh", *command)


def _wanted(helpers, counters, times=WANTED):
    """{what is counted: times} of so many helpers and counters of KVM's."""
    return dict.fromkeys([*(f"host.{name}" for name in helpers), *(f"kvm.stage2_{name}" for name in counters)], times)


def _race(kernel, name, words, wanted, seconds=SECONDS, cpu="max"):  # pylint: disable=too-many-arguments
    """Run the test with `words` over LINE until it has met what is `wanted`; nothing may be lost."""

    def run():
        line = (*LINE, *words, "-t", str(seconds))
        outcome, splats = guests.stress(kernel, f"stress-{name}", line, seconds, cpu)
        assert not outcome.status, outcome.output
        assert not splats
        return collections.defaultdict(int, soakcounts.counts(outcome.output))

    guests.races(wanted, MOST, run)


@pytest.fixture(scope="module", name="delayed")
def _delayed():
    """The kernel with delays and no bug."""
    return guests.with_bugs(configs=CONFIGS)


@pytest.mark.boot
def test_faults_that_race_lose_nothing(delayed):
    _race(delayed, "rally", ("-o", "rally"), _wanted((), COUNTERS, 1))


@pytest.mark.boot
def test_all_helpers_lose_nothing_in_clear_mode(delayed):
    wanted = _wanted((*ALONE, "punch", "rally", "age"), ("blocks_split", "tables_collapsed", "races_lost"), 1)
    wanted |= {"writes_verified_in_log": 1, "words_executed": 1}
    _race(delayed, "all-clear", ("-m", "clear", "-o", ",".join(HELPERS)), wanted, 60 * SECONDS // 45)


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("mode", ("clear", "clear-all-set"))
def test_faults_that_race_lose_nothing_in_clear_mode(mode, delayed):
    _race(delayed, f"rally-{mode}", ("-m", mode, "-o", "rally,log"), _wanted(("rally", "log"), COUNTERS))


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("helper", ALONE)
def test_each_helper_loses_nothing_in_clear_mode(helper, delayed):
    _race(
        delayed,
        f"{helper}-clear",
        ("-m", "clear", "-o", f"log,rally,punch,{helper}"),
        _wanted(("log", helper), ("blocks_split", "races_lost")),
    )


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("cpu", ("neoverse-n1", "cortex-a72"))
def test_exec_faults_split_blocks(cpu, delayed):
    """No write faults on a block that is logged here: the log is that of memory which is executed.  VHE and nVHE;
    not max, which has CTR_EL0.DIC in QEMU 10.0 (not in 7.2): what is read there may be executed, so no such fault comes."""
    _race(delayed, f"exec-{cpu}", ("-o", "exec"), _wanted(("exec",), ("blocks_split", "tables_collapsed")), cpu=cpu)


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("mmu", MMUS)
def test_x86_loses_nothing_in_clear_mode(mmu):
    """Huge pages are split and collapsed, and aging waits for its SPTE to change."""
    helpers = ("log", "punch", "age", "readonly")
    command = (*LINE, "-m", "clear", "-o", ",".join(helpers), "-t", str(SECONDS))
    kernel = guests.with_bugs("x86_64", CONFIGS)

    def run():
        outcome, splats, walks = aging.delayed(kernel, f"clear-{mmu}", command, SECONDS, 5000, MMUS[mmu])
        assert not outcome.status, outcome.output
        assert not splats
        return collections.defaultdict(int, soakcounts.counts(outcome.output) | walks)

    guests.races(_wanted(helpers, ()) | dict.fromkeys(("writes_verified_in_log", "zapped"), WANTED), MOST, run)


@pytest.mark.boot
def test_vms_in_a_row_leave_no_table(delayed):
    outcome, splats = guests.stress(
        delayed, "stress-tables", _tables((*LINE, "-o", "rally,punch,log", "-k", str(VMS), "-t", "20")), 60
    )
    assert not outcome.status, outcome.output
    assert not splats
    met = soakcounts.counts(outcome.output)
    assert met["kvm.stage2_blocks_split"] and met["kvm.stage2_races_lost"], outcome.output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_a_leaked_reference_to_a_table_is_counted():
    outcome, _ = guests.stress(
        guests.with_bugs(),
        "stress-table-refcount",
        _tables((*LINE, "-o", "rally,punch", "-t", "30")),
        30,
        params=(guests.bug("table-refcount"),),
    )
    found = re.search(r"^Tables of stage 2: (\d+) before, (\d+) after$", outcome.output, re.M)
    assert outcome.status == 1 and found, outcome.output
    assert int(found[2]) > int(found[1])


@pytest.mark.boot
def test_negative_control_what_stays_in_the_tlb_is_seen():
    # It ends when it has seen one: after 3 to 45 s.
    outcome, _ = guests.stress(
        guests.with_bugs(),
        "stress-no-tlbi-in-unmap",
        (*LINE, "-o", "rally", "-t", "240"),
        240,
        params=(guests.bug("no-tlbi-in-unmap"),),
    )
    assert outcome.status not in (0, 4, 124)
    assert re.search(r": (stale|lost|wrong): ", outcome.output), outcome.output


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize(
    "bug, helpers, words",
    [
        ("bit-before-leaf", "log", "is not in the dirty log"),
        ("fault-without-seq", "punch,remap", ": (stale|lost|wrong): "),
    ],
)
def test_negative_control_a_race_that_is_decided_wrongly_is_found(bug, helpers, words):
    # It ends when it has seen one.
    outcome, _ = guests.stress(
        guests.with_bugs(),
        f"stress-{bug}",
        (*LINE, "-s", "anonymous", "-o", helpers, "-t", "120"),
        120,
        params=(guests.bug(bug),),
    )
    assert outcome.status not in (0, 4, 124)
    assert re.search(words, outcome.output), outcome.output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_a_table_freed_at_once_is_noticed():
    """On a CPU that has no hardware access flag: who sets it walks into a table that others replace
    by a block meanwhile."""
    command = (
        "sh",
        "-c",
        'echo 2 > /sys/kernel/debug/kvm/stage2_delay_one_in; "$@"',
        "sh",
        *LINE,
        "-o",
        "rally",
        "-t",
        "45",
    )
    _, splats = guests.stress(
        guests.with_bugs(),
        "stress-table-freed-without-rcu",
        command,
        45,
        "cortex-a72",
        (guests.bug("table-freed-without-rcu"),),
    )
    assert any(re.search("__kvm_pgtable_walk|Bad page state", splat) for splat in splats), splats
