"""Stage-2 faults that race: stage2_fault_stress_test on a kernel that delays them at random.

patches/instruments/v5.10/delays.patch goes below all that is planted here, and counts tables; on x86_64 it is
x86-delays.patch.  Each run goes on until the races that it is there for were met, or fails.  With lockdep and KASAN, for
hours: make soak.
"""

import re

import pytest

from tests import aging
from tests.lab import MMUS, races, script, with_mutants

pytestmark = pytest.mark.boot

SECONDS = 45
VMS = 20
DELAYED = with_mutants("v5.10")

PROGRAM = "/tests/stage2_fault_stress_test"
# Never so many of everything that it stops before its time.
LINE = (PROGRAM, "-m", "get", "-n", "1000000", "-r", "3", "-i", "300", "-b", "8M")
COUNTERS = ("blocks_split", "tables_collapsed", "races_lost", "entries_locked")
# All helpers of the test. One that is named with -o and cannot be had is a failure.
HELPERS = tuple("log slots punch rally readonly exec remap split collapse ksm migrate pageout age".split())
# Those that take memory away or replace it, each with holes, and the log by KVM_CLEAR_DIRTY_LOG, which QEMU uses.
ALONE = ("slots", "remap", "split", "collapse", "ksm", "migrate", "pageout", "readonly")
# How many there must be of each helper's operations and of each race; runs of one kind at most.
WANTED, MOST = 4, 4
# Mutants that decide a race wrongly: the helpers that make it, and words of what is found.
WRONG = {
    "bit-before-leaf": ("log", "is not in the dirty log"),
    "fault-without-seq": ("punch,remap", ": (stale|lost|wrong): "),
}


def _wanted(helpers, counters, times=WANTED):
    """{what is counted: times} of so many helpers and counters of KVM's."""
    return dict.fromkeys([*(f"host.{name}" for name in helpers), *(f"kvm.stage2_{name}" for name in counters)], times)


def _race(name, words, wanted, seconds=SECONDS, cpu="max"):
    """Run the test with `words` over LINE until it has met what is `wanted`; nothing may be lost."""
    lab, line = DELAYED.but(machine={"cpu": cpu}), (*LINE, *words, "-t", seconds)
    races(wanted, MOST, lambda: lab.stress(line, seconds, f"stress-{name}").good().counts())


def _planted(mutant, line, seconds, cpu="max"):
    """The Ran of a command with `mutant` planted."""
    return DELAYED.but(mutant=mutant, machine={"cpu": cpu}).stress(line, seconds, f"stress-{mutant}")


@pytest.mark.slow
def test_faults_that_race_lose_nothing():
    _race("rally", ("-o", "rally"), _wanted((), COUNTERS, 1))


def test_all_helpers_lose_nothing_in_clear_mode():
    wanted = _wanted((*ALONE, "punch", "rally", "age"), ("blocks_split", "tables_collapsed", "races_lost"), 1)
    wanted |= {"writes_verified_in_log": 1, "words_executed": 1}
    _race("all-clear", ("-m", "clear", "-o", ",".join(HELPERS)), wanted, 60)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ("clear", "clear-all-set"))
def test_faults_that_race_lose_nothing_in_clear_mode(mode):
    _race(f"rally-{mode}", ("-m", mode, "-o", "rally,log"), _wanted(("rally", "log"), COUNTERS))


@pytest.mark.slow
@pytest.mark.parametrize("helper", ALONE)
def test_each_helper_loses_nothing_in_clear_mode(helper):
    wanted = _wanted(("log", helper), ("blocks_split", "races_lost"))
    _race(f"{helper}-clear", ("-m", "clear", "-o", f"log,rally,punch,{helper}"), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("cpu", ("neoverse-n1", "cortex-a72"))
def test_exec_faults_split_blocks(cpu):
    """No write faults on a block that is logged here: the log is that of memory which is executed.  VHE and nVHE;
    not max, which has CTR_EL0.DIC in QEMU 10.0 (not in 7.2): what is read there may be executed, so no such fault comes."""
    _race(f"exec-{cpu}", ("-o", "exec"), _wanted(("exec",), ("blocks_split", "tables_collapsed")), cpu=cpu)


@pytest.mark.slow
@pytest.mark.parametrize("mmu", MMUS)
def test_x86_loses_nothing_in_clear_mode(mmu):
    """Huge pages are split and collapsed, and aging waits for its SPTE to change."""
    helpers = ("log", "punch", "age", "readonly")
    command = (*LINE, "-m", "clear", "-o", ",".join(helpers), "-t", SECONDS)
    lab = with_mutants("v5.10", "x86_64").but(params=MMUS[mmu])
    wanted = _wanted(helpers, ()) | dict.fromkeys(("writes_verified_in_log", "walks_that_age.zapped"), WANTED)
    races(wanted, MOST, lambda: lab.stress(aging.ages(5000, command), SECONDS, f"aging-clear-{mmu}").good().counts())


@pytest.mark.slow
def test_vms_in_a_row_leave_no_table():
    command = script("tables.sh", *LINE, "-o", "rally,punch,log", "-k", VMS, "-t", "20")
    ran = DELAYED.stress(command, 60, "stress-tables").good()
    met = ran.counts()
    assert met["kvm.stage2_blocks_split"] and met["kvm.stage2_races_lost"], ran.output


@pytest.mark.slow
def test_negative_control_a_leaked_reference_to_a_table_is_counted():
    ran = _planted("table-refcount", script("tables.sh", *LINE, "-o", "rally,punch", "-t", "30"), 30)
    found = re.search(r"^Tables of stage 2: (\d+) before, (\d+) after$", ran.output, re.M)
    assert ran.status == 1 and found, ran.output
    assert int(found[2]) > int(found[1])


@pytest.mark.slow
def test_negative_control_what_stays_in_the_tlb_is_seen():
    # It ends when it has seen one: after 3 to 45 s.
    ran = _planted("no-tlbi-in-unmap", (*LINE, "-o", "rally", "-t", "240"), 240)
    assert ran.found(r": (stale|lost|wrong): "), ran.output


@pytest.mark.slow
@pytest.mark.parametrize("mutant", WRONG)
def test_negative_control_a_race_that_is_decided_wrongly_is_found(mutant):
    helpers, words = WRONG[mutant]
    # It ends when it has seen one.
    ran = _planted(mutant, (*LINE, "-s", "anonymous", "-o", helpers, "-t", "120"), 120)
    assert ran.found(words), ran.output


@pytest.mark.slow
def test_negative_control_a_table_freed_at_once_is_noticed():
    """On a CPU that has no hardware access flag: who sets it walks into a table that others replace
    by a block meanwhile."""
    often = 'echo 2 > /sys/kernel/debug/kvm/stage2_delay_one_in; "$@"'
    ran = _planted(
        "table-freed-without-rcu", ("sh", "-c", often, "sh", *LINE, "-o", "rally", "-t", "45"), 45, "cortex-a72"
    )
    assert any(re.search("__kvm_pgtable_walk|Bad page state", splat) for splat in ran.splats), ran.splats
