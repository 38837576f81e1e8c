"""Counts from what the tests print, as they print it."""

from kvmseries.verify import soakcounts

STRESS = """\
4 vCPUs, 8 MiB of anonymous_thp, 1000000 of everything within 80 s, seed 3
Helper pageout is off: no swap
Dirty log: get
80.1 s, 123456 accesses by vCPUs, 7890 exits, 1 by EFAULT, 2 by MMIO
Verified with the vCPUs stopped: 200 times, 5000 words, 4000 writes in the dirty log of 300 harvests
Verified by vCPUs: 70 words executed, 8 writes to the read-only memslot
Host: log 20 slots 3
KVM: stage2_blocks_split 50 stage2_races_lost 6
Dirty log: clear
80.1 s, 4 accesses by vCPUs, 10 exits, 1 by EFAULT, 2 by MMIO
Verified with the vCPUs stopped: 1 times, 2 words, 3 writes in the dirty log of 4 harvests
Host: log 1 slots 1
KVM: stage2_blocks_split 1 stage2_races_lost 1
Walks that age: lost 9
Walks that age: zapped 8
Tables of stage 2: 4 before, 4 after
"""


def test_the_stress_test():
    assert soakcounts.counts(STRESS) == {
        "vms": 2,
        "accesses": 123460,
        "exits": 7900,
        "stops": 201,
        "words_verified": 5002,
        "writes_verified_in_log": 4003,
        "harvests": 304,
        "host.log": 21,
        "host.slots": 4,
        "kvm.stage2_blocks_split": 51,
        "kvm.stage2_races_lost": 7,
        "walks_that_age.lost": 9,
        "words_executed": 70,
        "writes_to_readonly": 8,
        "walks_that_age.zapped": 8,
        "tables_before": 4,
        "tables_after": 4,
    }


def test_change_pte():
    assert soakcounts.counts(
        "Storm: 60.0 s, 99 accesses by vCPUs, 5 pages verified by the host\n"
        "Host: ksm 3 write 4\nKVM: change_pte_replaced 7 change_pte_unmapped 0\n"
    ) == {
        "accesses": 99,
        "pages_verified": 5,
        "host.ksm": 3,
        "host.write": 4,
        "kvm.change_pte_replaced": 7,
        "kvm.change_pte_unmapped": 0,
    }


def test_aging_and_the_dirty_log():
    text = (
        "Iteration 1 found after aging, vCPUs running: 12 young, 3 idle, 0 not tracked, 0 swapped out\n"
        "Iteration 1 false idle after flush: 0 of 64 pages touched; 1 young, 2 idle, 3 young but not touched\n"
        "Verified by the host: 64 pages\nPages swapped out: 5, in: 6\n"
        "Total bits checked: dirty (100), clear (2000), track_next (3)\n"
    )
    assert soakcounts.counts(text) == {
        "pages_young.running": 12,
        "false_idle_after_flush": 0,
        "pages_touched": 64,
        "pages_verified": 64,
        "swapped_out": 5,
        "swapped_in": 6,
        "log_dirty_checked": 100,
        "log_clear_checked": 2000,
    }


def test_what_is_not_known_counts_nothing():
    assert not soakcounts.counts("KVM: no counters\nall is well 5\n")


def test_total():
    assert soakcounts.total([{"b": 1}, {}, {"b": 2, "a": 3}]) == {"a": 3, "b": 3}
