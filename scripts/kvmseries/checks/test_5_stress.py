"""Stage-2 faults that race: stage2_fault_stress_test on a kernel that delays them at random.

patches/debug/v5.10-delays.patch goes below all that is planted here, and counts tables.  The normal
configuration, because this is bounded; with lockdep and KASAN, and longer:
`SERIES_STRESS=600 SERIES_STRESS_CONFIG=debug make test-all CHECKS=scripts/kvmseries/checks/test_5_stress.py`
"""

import os
import re

import pytest

from kvmseries.checks import guests

# Of the kernel without a planted bug.
CONFIGS = tuple(filter(None, os.environ.get("SERIES_STRESS_CONFIG", "").split("+")))
SECONDS = int(os.environ.get("SERIES_STRESS", "45"))
VMS = 20

PROGRAM = "/tests/stage2_fault_stress_test"
# Never so many of everything that it stops before its time.
LINE = (PROGRAM, "-m", "get", "-n", "1000000", "-r", "3", "-i", "300", "-b", "8M")
COUNTERS = ("blocks_split", "tables_collapsed", "races_lost", "entries_locked")


def _tables(command):
    """`command` with the number of stage-2 tables compared before and after."""
    return guests.script("tables.sh", *command)


def _counts(text):
    """{counter: sum over all VMs} of what the test printed."""
    sums = dict.fromkeys(COUNTERS, 0)
    for name, count in re.findall(r"\bstage2_(\w+) (\d+)", text):
        if name in sums:
            sums[name] += int(count)
    return sums


@pytest.fixture(scope="module", name="delayed")
def _delayed():
    """The kernel with delays and no bug."""
    return guests.planted("delays", configs=CONFIGS)


@pytest.mark.boot
def test_faults_that_race_lose_nothing(delayed):
    outcome, splats = guests.stress(delayed, "stress-race",
                                    (*LINE, "-o", "rally", "-t", str(SECONDS)), SECONDS)
    assert not outcome.status, outcome.output
    assert not splats
    # Or nothing has raced, and this has shown nothing.
    assert all(_counts(outcome.output).values()), outcome.output


@pytest.mark.boot
def test_vms_in_a_row_leave_no_table(delayed):
    outcome, splats = guests.stress(delayed, "stress-tables", _tables(
        (*LINE, "-o", "rally,punch,log", "-k", str(VMS), "-t", "20")), 60)
    assert not outcome.status, outcome.output
    assert not splats
    counts = _counts(outcome.output)
    assert counts["blocks_split"] and counts["races_lost"], outcome.output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_a_leaked_reference_to_a_table_is_counted():
    outcome, _ = guests.stress(guests.planted("delays", "table-refcount"), "stress-table-refcount",
                               _tables((*LINE, "-o", "rally,punch", "-t", "30")), 30)
    found = re.search(r"^Tables of stage 2: (\d+) before, (\d+) after$", outcome.output, re.M)
    assert outcome.status == 1 and found, outcome.output
    assert int(found[2]) > int(found[1])


@pytest.mark.boot
def test_negative_control_what_stays_in_the_tlb_is_seen():
    # It ends when it has seen one: after 3 to 45 s.
    outcome, _ = guests.stress(guests.planted("delays", "no-tlbi-in-unmap"),
                               "stress-no-tlbi-in-unmap", (*LINE, "-o", "rally", "-t", "240"), 240)
    assert outcome.status not in (0, 4, 124)
    assert re.search(r": (stale|lost|wrong): ", outcome.output), outcome.output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_a_table_freed_at_once_is_noticed():
    """On a CPU that has no hardware access flag: who sets it walks into a table that others replace
    by a block meanwhile."""
    command = ("sh", "-c", 'echo 2 > /sys/kernel/debug/kvm/stage2_delay_one_in; "$@"', "sh", *LINE,
               "-o", "rally", "-t", "45")
    _, splats = guests.stress(guests.planted("delays", "table-freed-without-rcu"),
                              "stress-table-freed-without-rcu", command, 45, "cortex-a72")
    assert any(re.search("__kvm_pgtable_walk|Bad page state", splat) for splat in splats), splats
