import re

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.data.parse import Measure, nothing_harvested, parse

# As the patched test prints it with -i 2.
OUTPUT = """\
Test iterations: 2
Manual dirty log protect: off
Testing guest mode: PA-bits:48,  VA-bits:48,  4K pages
guest physical test memory offset: 0xffffbfc000
In-kernel GICv3: on
Populate memory time: 0.340000001s
Enabling dirty logging time: 0.008112345s

Iteration 1 dirty memory time: 1.210000000s
Iteration 1 get dirty log time: 0.006000000s
Iteration 2 dirty memory time: 12.000000009s
Iteration 2 get dirty log time: 0.005000000s
Disabling dirty logging time: 0.010200000s
Get dirty log over 2 iterations took 0.011000000s. (Avg 0.005500000s/iteration)
"""
CLEARED = """\
Test iterations: 1
Manual dirty log protect: on, initially all set
Testing guest mode: PA-bits:40,  VA-bits:48,  64K pages
guest physical test memory offset: 0xffbffc0000
The host has no GICv3 to offer
In-kernel GICv3: off
Populate memory time: 0.100000000s
Enabling dirty logging time: 0.000000001s

Iteration 1 dirty memory time: 0.200000000s
Iteration 1 get dirty log time: 0.006000000s
Iteration 1 clear dirty log time: 0.018000000s
Disabling dirty logging time: 0.010200000s
Get dirty log over 1 iterations took 0.006000000s. (Avg 0.006000000s/iteration)
Clear dirty log over 1 iterations took 0.018000000s. (Avg 0.018000000s/iteration)
"""
# As 7.3's test prints it, without and with -g.
NEWER = """\
Random seed: 0x6b8b4567
Test iterations: 2
Testing guest mode: PA-bits:48,  VA-bits:48,  4K pages
Random seed: 0x1
guest physical test memory: [0xffffffeff000, 0xfffffffff000)
Populate memory time: 0.028684640s
Enabling dirty logging time: 0.002649520s

Iteration 1 dirty memory time: 0.000491520s
Iteration 1 get dirty log time: 0.000218704s
Iteration 1 clear dirty log time: 0.000545936s
Iteration 2 dirty memory time: 0.009821184s
Iteration 2 get dirty log time: 0.000013728s
Iteration 2 clear dirty log time: 0.000319648s
Disabling dirty logging time: 0.002878208s
Get dirty log over 2 iterations took 0.000232432s. (Avg 0.000116216s/iteration)
Clear dirty log over 2 iterations took 0.000865584s. (Avg 0.000432792s/iteration)
"""
NEWER_G = "".join(line for line in NEWER.splitlines(keepends=True) if "lear" not in line)
# As it is printed with -l -V -H -P 4, and the same without -g.
LATENCY = """\
Test iterations: 2
Manual dirty log protect: off
Testing guest mode: PA-bits:48,  VA-bits:48,  4K pages
guest physical test memory offset: 0xfffffeff000
In-kernel GICv3: on
Populate memory time: 0.000534416s
Populate memory latency: p50 1776 ns, p99 3184 ns, max 4816 ns, 256 writes
vCPU 0 iteration 0 latency: p50 1776 ns, p99 3184 ns, max 4816 ns, 256 writes
Enabling dirty logging time: 0.000010672s

Iteration 1 dirty memory time: 0.000560784s
Iteration 1 dirty memory latency: p50 560 ns, p99 688 ns, max 704 ns, 1024 writes
vCPU 0 iteration 1 latency: p50 560 ns, p99 688 ns, max 704 ns, 1024 writes
Iteration 1 get dirty log while writing: p50 1279 ns, p99 1471 ns, max 1552 ns, 439 times
Iteration 1 get dirty log time: 0.000000352s
Iteration 1 dirty pages found: 1024 while writing, 3 after, all of 256 written
Iteration 2 dirty memory time: 0.000560672s
Iteration 2 dirty memory latency: p50 544 ns, p99 672 ns, max 720 ns, 1024 writes
vCPU 0 iteration 2 latency: p50 544 ns, p99 672 ns, max 720 ns, 1024 writes
Iteration 2 get dirty log while writing: p50 1279 ns, p99 1471 ns, max 1552 ns, 438 times
Iteration 2 get dirty log time: 0.000000480s
Iteration 2 dirty pages found: 1024 while writing, 0 after, all of 256 written
Disabling dirty logging time: 0.000004208s
Get dirty log over 2 iterations took 0.000000832s. (Avg 0.000000416s/iteration)
"""
CLEAR_LINE = "Iteration 1 clear dirty log while writing: p50 8191 ns, p99 44467488 ns, max 44467488 ns, 40 times\n"

# dirty_log_perf_test of 7.3 -R 1024 -E 2M -H 1000: an iteration.
RINGS = """\
Random seed: 0x40b8da4b
Test iterations: 1
Testing guest mode: PA-bits:48,  VA-bits:48,  4K pages
Dirty ring: 1024 entries
Eager split chunk: 2097152 bytes
guest physical test memory: [0xffffffdff000, 0xfffffffff000)
Populate memory time: 0.274563200s
Enabling dirty logging time: 0.020335424s

Iteration 1 dirty memory time: 0.157624752s
Iteration 1 collect dirty rings while writing: p50 9215 ns, p99 149776 ns, max 149776 ns, 7 times
Iteration 1 reset dirty rings while writing: p50 16252927 ns, p99 49147792 ns, max 49147792 ns, 7 times
Iteration 1 collect dirty rings time: 0.000001952s
Iteration 1 reset dirty rings time: 0.000012736s
Iteration 1 dirty rings full: 3 times
Iteration 1 dirty pages found: 513 while writing, 0 after, all of 512 written
Disabling dirty logging time: 0.000262784s
"""

# change_pte_test of the series: -i 1 -t 20.
CHANGE_PTE = """\
Helper collapse is off: for huge pages
2 vCPUs, 1024 pages of anonymous, in groups of 4, seed 1
Iteration 1: 1024 of 1024 pages merged in 1.343 s, 1308.530 ms of ksmd
Iteration 1: read merged pages: 0 exits (0.000 a page), -1.928 ms of vCPUs, 2 faults by KVM's count
Iteration 1: write to merged pages: 2077 exits (2.028 a page), 1822.989 ms of vCPUs, 1024 faults by KVM's count
Iteration 1: 1024 of 1024 pages merged while read in 3.159 s, 3115.592 ms of ksmd, 7 remote TLB flushes
Iteration 1: read while merged: -210 exits (-0.205 a page), -118.692 ms of vCPUs
All: 0.000 faults a merged page that was read
Storm: 20.7 s, 812 accesses by vCPUs, 56320 pages verified by the host
Host: ksm 470 write 205 collapse 10
KVM: change_pte_replaced 3663 mmu_seq_retries 1459
"""

# memslot_unmap_perf_test of the series, cortex-a72: -i 1.
UNMAP = """\
Test iterations: 1
4 vCPUs, 64 MiB of anonymous mapped, memslot of 256 GiB with 16 pages mapped
Iteration 1 sparse create: 0.000532816s
Iteration 1 sparse caches off: 0.011296768s
Iteration 1 sparse caches on: 0.019663424s
Iteration 1 sparse log on: 0.029754080s
Iteration 1 sparse get dirty log: 0.013271904s
Iteration 1 sparse log off: 0.003952704s
Iteration 1 sparse discard: 0.003556144s
Iteration 1 sparse munmap: 0.010260096s
Iteration 1 sparse delete: 0.010828704s
Iteration 1 discard, host only: 0.029904960s
Iteration 1 nothing write latency: p50 45040 ns, p99 8126448 ns, max 96410608 ns, 925 writes
Iteration 1 discard, vCPUs idle: 1.453600048s
Iteration 1 discard, vCPUs writing: 2.256784416s
Iteration 1 discard write latency: p50 42992 ns, p99 2281701360 ns, max 2282451088 ns, 281 writes
Iteration 1 delete, vCPUs idle: 1.349454528s
Iteration 1 delete, vCPUs writing: 2.415077408s
Iteration 1 delete write latency: p50 42992 ns, p99 71303152 ns, max 338194544 ns, 4096 writes
Iteration 1 delete: 4 of 4 vCPUs ran out of memory to write to
Iteration 1 log on, vCPUs idle: 0.000961936s
Iteration 1 log on, vCPUs writing: 0.037640256s
Iteration 1 log on write latency: p50 42992 ns, p99 29360112 ns, max 104879632 ns, 435 writes
"""

# dirty_hold_test of v7.3's series, on a kernel that measures holds: -v 8 -b 64.
HOLDS = """\
Random seed: 0x6b8b4567
clear idle: longest hold 426800 ns
clear idle: 428640 ns
clear busy: longest hold 13400 ns
clear busy: 462120 ns
clear busy: longest write 15920 ns of 168
discard: longest hold 832960 ns
discard: 26961920 ns
"""

# access_tracking_stress_test of base: -v 1 -p -b 64K -B 512K -i 3 -n 16.
AGING = """\
Test iterations: 3
Testing guest mode: PA-bits:40,  VA-bits:48,  4K pages
1 vCPUs, 16 pages of anonymous in 1 memslots, aged by 1 threads (page_idle), 128 faulted in meanwhile
guest physical test memory: [0x200000000, 0x200800000)
Populate memory time: 0.000037696s
Iteration 1 age idle memory time: 0.000121632s
Iteration 1 aging passes, vCPUs idle: 16, median 0.000007248s, p99 0.000008496s, max 0.000008496s
Iteration 1 found after aging, vCPUs idle: 0 young, 16 idle, 0 not tracked, 0 swapped out
Iteration 1 fault memory in time: 0.000227568s
Iteration 1 vCPU time, mean 0.000227568s, slowest 0.000227568s
Iteration 1 aging passes, vCPUs running: 20, median 0.000010800s, p99 0.000012416s, max 0.000012416s
Iteration 1 found after aging, vCPUs running: 0 young, 16 idle, 0 not tracked, 0 swapped out
Iteration 1 discard fresh memory time: 0.000223664s
Iteration 1 check idle memory time: 0.000146400s
Iteration 1 false idle without flush: 10 of 10 pages touched; 0 young, 16 idle, 0 young but not touched
Iteration 1 false idle after flush: 0 of 11 pages touched; 11 young, 5 idle, 0 young but not touched
Iteration 2 age idle memory time: 0.000121552s
Iteration 2 aging passes, vCPUs idle: 16, median 0.000007248s, p99 0.000008480s, max 0.000008480s
Iteration 2 found after aging, vCPUs idle: 0 young, 16 idle, 0 not tracked, 0 swapped out
Iteration 2 fault memory in time: 0.000226592s
Iteration 2 vCPU time, mean 0.000226592s, slowest 0.000226592s
Iteration 2 aging passes, vCPUs running: 20, median 0.000010656s, p99 0.000012080s, max 0.000012080s
Iteration 2 found after aging, vCPUs running: 0 young, 16 idle, 0 not tracked, 0 swapped out
Iteration 2 discard fresh memory time: 0.000224064s
Iteration 2 check idle memory time: 0.000149136s
Iteration 2 false idle without flush: 0 of 14 pages touched; 14 young, 2 idle, 0 young but not touched
Iteration 2 false idle after flush: 0 of 12 pages touched; 12 young, 4 idle, 0 young but not touched
Iteration 3 age idle memory time: 0.000121536s
Iteration 3 aging passes, vCPUs idle: 16, median 0.000007248s, p99 0.000008480s, max 0.000008480s
Iteration 3 found after aging, vCPUs idle: 0 young, 16 idle, 0 not tracked, 0 swapped out
Iteration 3 fault memory in time: 0.000232752s
Iteration 3 vCPU time, mean 0.000232752s, slowest 0.000232752s
Iteration 3 aging passes, vCPUs running: 20, median 0.000010752s, p99 0.000017872s, max 0.000017872s
Iteration 3 found after aging, vCPUs running: 0 young, 16 idle, 0 not tracked, 0 swapped out
Iteration 3 discard fresh memory time: 0.000223200s
Iteration 3 check idle memory time: 0.000148784s
Iteration 3 false idle without flush: 0 of 9 pages touched; 9 young, 7 idle, 0 young but not touched
Iteration 3 false idle after flush: 0 of 11 pages touched; 11 young, 5 idle, 0 young but not touched
Verified by the host: 16 pages
vCPU time over all iterations, mean 0.000228970s, slowest 0.000228970s
All aging passes, vCPUs idle: 48, median 0.000007248s, p99 0.000008496s, max 0.000008496s
All aging passes, vCPUs running: 60, median 0.000010784s, p99 0.000017872s, max 0.000017872s
All false idle without flush: 10 of 33 pages touched; 23 young, 25 idle, 0 young but not touched
All false idle after flush: 0 of 34 pages touched; 34 young, 14 idle, 0 young but not touched
"""
# The same with -a 0.
NO_AGING = """\
Test iterations: 3
Testing guest mode: PA-bits:40,  VA-bits:48,  4K pages
1 vCPUs, 16 pages of anonymous in 1 memslots, aged by 0 threads (none), 128 faulted in meanwhile
guest physical test memory: [0x200000000, 0x200800000)
Populate memory time: 0.000037296s
Iteration 1 fault memory in time: 0.000222192s
Iteration 1 vCPU time, mean 0.000222192s, slowest 0.000222192s
Iteration 1 discard fresh memory time: 0.000224480s
Iteration 2 fault memory in time: 0.000223760s
Iteration 2 vCPU time, mean 0.000223760s, slowest 0.000223760s
Iteration 2 discard fresh memory time: 0.000223616s
Iteration 3 fault memory in time: 0.000220608s
Iteration 3 vCPU time, mean 0.000220608s, slowest 0.000220608s
Iteration 3 discard fresh memory time: 0.000223792s
Verified by the host: 16 pages
vCPU time over all iterations, mean 0.000222186s, slowest 0.000222186s
"""
# -b 1M -e 40 -z -r 1: evicted under a memory cgroup, nothing checked for being idle.
EVICTED = """\
Test iterations: 2
Testing guest mode: PA-bits:40,  VA-bits:48,  4K pages
2 vCPUs, 512 pages of anonymous in 1 memslots, aged by 1 threads (page_idle)
guest physical test memory: [0x200000000, 0x200400000)
Memory cgroup v2, limited to 1459 KiB
Populate memory time: 0.003229408s
Iteration 1 age idle memory time: 0.001464672s
Iteration 1 aging passes, vCPUs idle: 8, median 0.000085200s, p99 0.000095968s, max 0.000095968s
Iteration 1 found after aging, vCPUs idle: 0 young, 206 idle, 306 not tracked, 289 swapped out
Iteration 1 access memory time: 0.005339536s
Iteration 1 vCPU time, mean 0.004716712s, slowest 0.005339536s
Iteration 1 aging passes, vCPUs running: 16, median 0.000221536s, p99 0.000308256s, max 0.000308256s
Iteration 1 found after aging, vCPUs running: 16 young, 226 idle, 270 not tracked, 265 swapped out
Iteration 2 age idle memory time: 0.001661760s
Iteration 2 aging passes, vCPUs idle: 8, median 0.000100112s, p99 0.000112016s, max 0.000112016s
Iteration 2 found after aging, vCPUs idle: 0 young, 95 idle, 417 not tracked, 265 swapped out
Iteration 2 access memory time: 0.005132752s
Iteration 2 vCPU time, mean 0.004703608s, slowest 0.005132752s
Iteration 2 aging passes, vCPUs running: 20, median 0.000183008s, p99 0.000302016s, max 0.000302016s
Iteration 2 found after aging, vCPUs running: 16 young, 100 idle, 396 not tracked, 394 swapped out
Verified by the host: 512 pages
vCPU time over all iterations, mean 0.004710160s, slowest 0.005236144s
All aging passes, vCPUs idle: 16, median 0.000095968s, p99 0.000112016s, max 0.000112016s
All aging passes, vCPUs running: 36, median 0.000195472s, p99 0.000308256s, max 0.000308256s
Pages swapped out: 2046, in: 1614
"""


def lock(phase, mode, acquisitions, contentions, name="&(kvm)->mmu_lock"):
    """A line of lockphase: print_row() in tools-testing-selftests-kvm/guest/lockphase.c."""
    return (
        f'@@ lock phase="{phase}" class="{name}" mode={mode} con-bounces=0 '
        f"contentions={contentions} waittime-min=0.00 waittime-max=0.00 waittime-total=0.00 "
        f"waittime-avg=0.00 acq-bounces=3 acquisitions={acquisitions} holdtime-min=0.06 "
        "holdtime-max=9.10 holdtime-total=70.15 holdtime-avg=1.50\n"
    )


def with_locks(output=OUTPUT):
    """`output` as lockphase prints it: the counts of a phase behind the line that ends it."""
    text = ""
    for number, line in enumerate(output.splitlines(keepends=True)):
        text += line
        phase = line.split(":")[0]
        if " time: " in line or line.startswith("guest physical"):
            text += lock(phase, "write", 100 + number, number) + lock(phase, "read", 7, 1)
    return text + lock("exit", "write", 12, 0) + lock("exit", "read", 0, 0)


def figures(measures):
    return {(measure.metric, measure.iteration): measure.value for measure in measures}


def test_every_time_is_read_with_its_iteration():
    measures = parse("dirty_log_perf_test", OUTPUT)
    assert figures(measures) == {
        ("populate_memory_time", None): 0.340000001,
        ("enable_dirty_log_time", None): 0.008112345,
        ("dirty_memory_time", 1): 1.21,
        ("get_dirty_log_time", 1): 0.006,
        ("dirty_memory_time", 2): 12.000000009,
        ("get_dirty_log_time", 2): 0.005,
        ("disable_dirty_log_time", None): 0.0102,
    }
    assert {measure.unit for measure in measures} == {"s"}
    assert measures[0] == Measure("populate_memory_time", None, 0.340000001, "s")


def test_clear_dirty_log_lines_are_read():
    found = figures(parse("dirty_log_perf_test", CLEARED))
    assert found["clear_dirty_log_time", 1] == 0.018
    assert found["enable_dirty_log_time", None] == 1e-9


def test_latencies_and_harvests_while_writing_are_read():
    measures = parse("dirty_log_perf_test", LATENCY + CLEAR_LINE)
    found = figures(measures)
    assert {key: value for key, value in found.items() if "_latency_" in key[0]} == {
        (f"{phase}_{part}", iteration): value
        for phase, iteration, values in (
            ("populate_latency", None, (1776e-9, 3184e-9, 4816e-9, 256)),
            ("dirty_latency", 1, (560e-9, 688e-9, 704e-9, 1024)),
            ("dirty_latency", 2, (544e-9, 672e-9, 720e-9, 1024)),
        )
        for part, value in zip(("p50", "p99", "max", "writes"), values)
    }
    assert found["get_while_writing_p50", 1] == 1279e-9
    assert found["get_while_writing_max", 2] == 1552e-9
    assert found["get_while_writing_times", 2] == 438
    assert found["clear_while_writing_p99", 1] == 44467488e-9
    assert [found[f"pages_found_{what}", 1] for what in ("while_writing", "after")] == [1024, 3]
    assert found["pages_written", 1] == 256
    # The times are read as ever.
    assert found["dirty_memory_time", 2] == 0.000560672
    assert found["get_dirty_log_time", 1] == 0.000000352
    assert {m.unit for m in measures if m.metric.endswith(("_p50", "_p99", "_max", "_time"))} == {"s"}
    assert {m.unit for m in measures if m.metric.startswith("pages_") or m.metric.endswith(("_writes", "_times"))} == {
        "1"
    }


# Of -H: an iteration that no harvest fell into, and the same with one.
UNSEEN = "Iteration 1 get dirty log while writing: p50 0 ns, p99 0 ns, max 0 ns, 0 times\n"
SEEN = "Iteration 2 get dirty log while writing: p50 1279 ns, p99 1279 ns, max 1279 ns, 1 times\n"


def test_no_harvest_while_writing_has_no_times():
    found = figures(parse("dirty_log_perf_test", OUTPUT + UNSEEN + SEEN))
    assert {key: value for key, value in found.items() if key[0].startswith("get_while_writing") and key[1] == 1} == {
        ("get_while_writing_times", 1): 0
    }


def test_a_harvest_must_fall_into_the_writing():
    with pytest.raises(Fail, match=r"no harvest of -H fell into the writing: more memory \(-b\), or a shorter pause"):
        parse("dirty_log_perf_test", OUTPUT + UNSEEN)
    rings = UNSEEN.replace("get dirty log", "collect dirty rings")
    assert nothing_harvested(UNSEEN) and nothing_harvested(rings) and nothing_harvested(UNSEEN + rings)
    # One harvest is enough; without -H there is nothing to ask for; clears follow what was got.
    assert not nothing_harvested(UNSEEN + SEEN) and not nothing_harvested(OUTPUT)
    assert not nothing_harvested(SEEN + UNSEEN.replace("get", "clear"))


def test_latencies_do_not_end_a_phase():
    """lockphase and the virtual clock end a phase at " time: "."""
    lines = [line for line in (LATENCY + CLEAR_LINE).splitlines() if " ns, " in line or "found" in line]
    assert len(lines) == 11 and not any(" time: " in line for line in lines)


@pytest.mark.parametrize("output", [NEWER, NEWER_G])
def test_what_later_kernels_tests_print_is_read(output):
    cleared = {("clear_dirty_log_time", 1): 0.000545936, ("clear_dirty_log_time", 2): 0.000319648}
    assert figures(parse("dirty_log_perf_test", output)) == {
        ("populate_memory_time", None): 0.02868464,
        ("enable_dirty_log_time", None): 0.00264952,
        ("dirty_memory_time", 1): 0.00049152,
        ("get_dirty_log_time", 1): 0.000218704,
        ("dirty_memory_time", 2): 0.009821184,
        ("get_dirty_log_time", 2): 0.000013728,
        ("disable_dirty_log_time", None): 0.002878208,
        **(cleared if output == NEWER else {}),
    }


def test_counts_of_each_phase_and_in_total():
    measures = [m for m in parse("dirty_log_perf_test", with_locks()) if m.unit == "1"]
    found = figures(measures)
    assert found["mmu_lock_write_acquisitions.setup", None] == 103
    assert found["mmu_lock_write_acquisitions.populate", None] == 105
    assert found["mmu_lock_write_acquisitions.enable", None] == 106
    assert found["mmu_lock_write_acquisitions.dirty", 1] == 108
    assert found["mmu_lock_write_acquisitions.get", 2] == 111
    assert found["mmu_lock_write_acquisitions.disable", None] == 112
    assert found["mmu_lock_write_acquisitions.exit", None] == 12
    assert found["mmu_lock_read_acquisitions.dirty", 2] == 7
    # What sets the VM up is left out of the totals.
    assert found["mmu_lock_write_acquisitions", None] == 105 + 106 + 108 + 109 + 110 + 111 + 112 + 12
    assert found["mmu_lock_read_acquisitions", None] == 7 * 7
    assert found["mmu_lock_write_contentions", None] == 5 + 6 + 8 + 9 + 10 + 11 + 12
    assert found["mmu_lock_read_contentions", None] == 7
    assert found["mmu_lock_contentions", None] == 61 + 7


def test_counts_of_clearing_are_its_own():
    found = figures(parse("dirty_log_perf_test", with_locks(CLEARED)))
    assert found["mmu_lock_write_acquisitions.clear", 1] == 111


def test_what_sets_up_a_later_kernels_vm_is_no_part_of_the_totals():
    found = figures(parse("dirty_log_perf_test", with_locks(NEWER_G)))
    assert found["mmu_lock_write_acquisitions.setup", None] == 104
    assert found["mmu_lock_write_acquisitions", None] == sum(
        value
        for (metric, _), value in found.items()
        if metric.startswith("mmu_lock_write_acquisitions.") and not metric.endswith(".setup")
    )


def test_counts_of_other_locks_are_left_out():
    text = OUTPUT + lock("exit", "write", 5, 0) + lock("exit", "write", 99, 9, "&(kvm)->slots_lock")
    found = figures(parse("dirty_log_perf_test", text))
    assert found["mmu_lock_write_acquisitions", None] == 5


def test_rings_are_collected_and_reset():
    found = {(measure.metric, measure.iteration): measure.value for measure in parse("dirty_log_perf_test", RINGS)}
    assert found["collect_rings_time", 1] == 0.000001952 and found["reset_rings_time", 1] == 0.000012736
    assert found["rings_full", 1] == 3
    assert found["collect_while_writing_times", 1] == 7 and found["reset_while_writing_max", 1] == 0.049147792
    assert ("get_dirty_log_time", 1) not in found


def test_without_counts_there_are_no_totals():
    assert not [m for m in parse("dirty_log_perf_test", OUTPUT) if "mmu_lock" in m.metric]


@pytest.mark.parametrize(
    "line",
    [
        "Iteration 1 reset dirty log time: 0.1s",
        "Populate memory time: soon",
        "Aborted",
        "Manual dirty log protect: maybe",
        "In-kernel GICv3: perhaps",
        "@@ taint x before=0 after=512",
        "Iteration 3 dirty memory time: 0,5s",
        "Test iterations: many",
        '@@ lock phase="exit" nonsense',
        "Populate memory latency: p50 1 ns, p99 2 ns, 5 writes",
        "vCPU 1 iteration 2 latency: soon",
        "Iteration 1 dirty memory latency: p50 -1 ns, p99 2 ns, max 3 ns, 5 writes",
        "Iteration 1 dirty pages found: 9 while writing, 0 after, 7 of 8 written",
        "Populate memory time: 0.5s and more",
        "Random seed: 1",
        "guest physical test memory: 0x1000",
    ],
)
def test_an_unknown_line_fails_loudly(line):
    with pytest.raises(Fail, match="a line that is not known: '" + re.escape(line)):
        parse("dirty_log_perf_test", f"{OUTPUT}{line}\n")


def test_lines_may_end_as_on_a_terminal():
    assert parse("dirty_log_perf_test", OUTPUT.replace("\n", "\r\n")) == parse("dirty_log_perf_test", OUTPUT)


def test_a_missing_iteration_fails():
    text = "".join(line for line in OUTPUT.splitlines(keepends=True) if "Iteration 2" not in line)
    with pytest.raises(Fail, match="ran 2 iterations but timed 1"):
        parse("dirty_log_perf_test", text)


def test_two_guest_modes_in_one_run_fail():
    """Their figures could not be told apart."""
    mode = OUTPUT[OUTPUT.index("Testing") :]
    with pytest.raises(Fail, match="one guest mode at a time"):
        parse("dirty_log_perf_test", OUTPUT + mode)


def test_an_output_without_the_number_of_iterations_fails():
    with pytest.raises(Fail, match="ran None iterations"):
        parse("dirty_log_perf_test", OUTPUT.split("\n", 1)[1])


@pytest.mark.parametrize("output", ["", "Test iterations: 2\n"])
def test_an_output_without_figures_fails(output):
    with pytest.raises(Fail, match="printed no figures"):
        parse("dirty_log_perf_test", output)


def test_incomplete_lock_counts_fail():
    text = OUTPUT + "@@ lock-error lock debugging is off, see the kernel log\n"
    with pytest.raises(Fail, match="not complete: lock debugging is off, see the kernel log$"):
        parse("dirty_log_perf_test", text)


@pytest.mark.parametrize(
    "phase", ["Iteration 1 dirty memory time + Iteration 1 get dirty log time", "Reading the newspaper", ""]
)
def test_counts_of_an_unknown_phase_fail(phase):
    """Joined phases are what lockphase prints when stdout is no terminal."""
    with pytest.raises(Fail, match="phase that is not known"):
        parse("dirty_log_perf_test", OUTPUT + lock(phase, "write", 1, 0))


def test_merging_is_read():
    assert figures(parse("change_pte_test", CHANGE_PTE)) == pytest.approx(
        {
            ("pages_merged", 1): 1024,
            ("merge_time", 1): 1.343,
            ("merge_ksmd_time", 1): 1.30853,
            ("read_merged_exits", 1): 0,
            ("read_merged_exits_per_page", 1): 0,
            ("read_merged_vcpu_time", 1): -0.001928,
            ("read_merged_faults", 1): 2,
            ("write_merged_exits", 1): 2077,
            ("write_merged_exits_per_page", 1): 2.028,
            ("write_merged_vcpu_time", 1): 1.822989,
            ("write_merged_faults", 1): 1024,
            ("pages_merged_while_read", 1): 1024,
            ("merge_time_while_read", 1): 3.159,
            ("merge_ksmd_time_while_read", 1): 3.115592,
            ("merge_tlb_flushes_while_read", 1): 7,
            ("read_while_merged_exits", 1): -210,
            ("read_while_merged_exits_per_page", 1): -0.205,
            ("read_while_merged_vcpu_time", 1): -0.118692,
            ("storm_host_ksm", None): 470,
            ("storm_host_write", None): 205,
            ("storm_host_collapse", None): 10,
            ("storm_kvm_change_pte_replaced", None): 3663,
            ("storm_kvm_mmu_seq_retries", None): 1459,
        }
    )


@pytest.mark.parametrize(
    "output, message",
    [
        (CHANGE_PTE + "Iteration 1: 1024 of 1024 pages thought about\n", "a line that is not known"),
        ("All: 0.000 faults a merged page that was read\n", "no figures"),
    ],
)
def test_what_is_not_known_of_merging_fails(output, message):
    with pytest.raises(Fail, match=message):
        parse("change_pte_test", output)


def test_unmapping_is_read():
    found = figures(parse("memslot_unmap_perf_test", UNMAP))
    assert len(found) == 9 + 7 + 4 * 4 + 1
    assert found["sparse_create_time", 1] == pytest.approx(0.000532816)
    assert found["sparse_get_dirty_log_time", 1] == pytest.approx(0.013271904)
    assert [found[f"discard_time.{which}", 1] for which in ("host", "idle", "writing")] == pytest.approx(
        [0.029904960, 1.453600048, 2.256784416]
    )
    assert found["log_on_time.writing", 1] == pytest.approx(0.037640256)
    assert [found[f"write_{part}.delete", 1] for part in ("p50", "p99", "max")] == pytest.approx(
        [42992e-9, 71303152e-9, 338194544e-9]
    )
    assert (found["writes.nothing", 1], found["vcpus_out.delete", 1]) == (925, 4)


@pytest.mark.parametrize(
    "output, message",
    [
        (UNMAP + "Iteration 1 sparse sale: 0.000000001s\n", "a line that is not known"),
        (UNMAP.replace("iterations: 1", "iterations: 2"), "ran 2 iterations but timed 1"),
        ("Test iterations: 1\n", "no figures"),
    ],
)
def test_what_is_not_known_of_unmapping_fails(output, message):
    with pytest.raises(Fail, match=message):
        parse("memslot_unmap_perf_test", output)


def test_every_metric_of_unmapping_is_documented():
    text = (paths.ROOT / "Documentation" / "results.md").read_text(encoding="utf-8")
    for measure in parse("memslot_unmap_perf_test", UNMAP):
        name, dot, of = measure.metric.partition(".")
        assert f"`{name}{dot and '.X'}`" in text, name
        assert not dot or f"`{of}`" in text, of


def test_holds_are_read():
    assert figures(parse("dirty_hold_test", HOLDS)) == {
        ("clear_idle_hold", None): pytest.approx(426.8e-6),
        ("clear_idle_time", None): pytest.approx(428.64e-6),
        ("clear_busy_hold", None): pytest.approx(13.4e-6),
        ("clear_busy_time", None): pytest.approx(462.12e-6),
        ("clear_busy_write", None): pytest.approx(15.92e-6),
        ("clear_busy_writes", None): 168,
        ("discard_hold", None): pytest.approx(832.96e-6),
        ("discard_time", None): pytest.approx(26961.92e-6),
    }


@pytest.mark.parametrize(
    "output, message",
    [
        (HOLDS + "discard: shortest hold 1 ns\n", "a line that is not known"),
        (
            HOLDS.replace("discard: longest hold 832960 ns\n", ""),
            "no discard_hold: the kernel has to have .*hold-times.patch",
        ),
        ("", "printed no clear_busy_hold"),
    ],
)
def test_what_is_not_known_of_holds_fails(output, message):
    with pytest.raises(Fail, match=message):
        parse("dirty_hold_test", output)


def test_every_metric_of_holds_is_documented():
    text = (paths.ROOT / "Documentation" / "results.md").read_text(encoding="utf-8")
    for measure in parse("dirty_hold_test", HOLDS):
        what, _, part = measure.metric.rpartition("_")
        assert f"`{what}`" in text and (f"`X_{part}`" in text or f"`{measure.metric}`" in text), measure.metric


KILLED = "Random seed: 0x6b8b4567\n1 VMs of 64 MiB killed: exit takes 2106 us each; tables of 0 KiB left\n"


def test_the_exit_of_a_killed_vm_is_read():
    # 5.10 does not count tables.
    for output in (KILLED, KILLED.replace("; tables of 0 KiB left", "")):
        assert figures(parse("vm_killed_test", output)) == {("exit_time", None): pytest.approx(2106e-6)}
    assert "`exit_time`" in (paths.ROOT / "Documentation" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "output, message",
    [(KILLED + "exit takes ages\n", "a line that is not known"), ("Random seed: 0x1\n", "did not print how long")],
)
def test_what_is_not_known_of_killed_vms_fails(output, message):
    with pytest.raises(Fail, match=message):
        parse("vm_killed_test", output)


def aged(output=AGING):
    return figures(parse("access_tracking_stress_test", output))


def test_young_pages_of_passes_and_the_log_are_read():
    output = AGING.replace(
        "Iteration 3 found after aging, vCPUs running: 0 young, 16 idle, 0 not tracked, 0 swapped out",
        "Iteration 3 found young by a pass, vCPUs running: 12.5 of 16 pages\n"
        "Iteration 3 dirty log: 7 harvests, 41 pages",
    )
    found = aged(output)
    assert (found["young.running", 3], found["harvests", 3], found["harvested", 3]) == (12.5, 7, 41)
    assert ("idle.running", 3) not in found


def test_aging_passes_and_times_are_read():
    found = aged()
    assert {key: value for key, value in found.items() if key[1] == 3} == {
        ("age_idle_time", 3): 0.000121536,
        ("passes.idle", 3): 16,
        ("pass_median.idle", 3): 0.000007248,
        ("pass_p99.idle", 3): 0.00000848,
        ("pass_max.idle", 3): 0.00000848,
        ("young.idle", 3): 0,
        ("idle.idle", 3): 16,
        ("untracked.idle", 3): 0,
        ("swapped.idle", 3): 0,
        ("fault_memory_time", 3): 0.000232752,
        ("vcpu_time_mean", 3): 0.000232752,
        ("passes.running", 3): 20,
        ("pass_median.running", 3): 0.000010752,
        ("pass_p99.running", 3): 0.000017872,
        ("pass_max.running", 3): 0.000017872,
        ("young.running", 3): 0,
        ("idle.running", 3): 16,
        ("untracked.running", 3): 0,
        ("swapped.running", 3): 0,
        ("discard_memory_time", 3): 0.0002232,
        ("check_idle_time", 3): 0.000148784,
        ("false_idle.without", 3): 0,
        ("touched.without", 3): 9,
        ("young.without", 3): 9,
        ("idle.without", 3): 7,
        ("false_young.without", 3): 0,
        ("false_idle.after", 3): 0,
        ("touched.after", 3): 11,
        ("young.after", 3): 11,
        ("idle.after", 3): 5,
        ("false_young.after", 3): 0,
    }
    assert (found["false_idle.without", 1], found["touched.without", 1]) == (10, 10)
    # Of the whole test.
    assert found["populate_memory_time", None] == 0.000037696
    assert (found["passes.running", None], found["pass_max.running", None]) == (60, 0.000017872)
    assert (found["false_idle.without", None], found["touched.without", None]) == (10, 33)
    assert (found["false_idle.after", None], found["young.after", None]) == (0, 34)
    assert len(found) == 1 + 3 * 31 + 2 * 4 + 2 * 5


def test_units_of_aging():
    for measure in parse("access_tracking_stress_test", AGING):
        timed = (
            measure.metric.startswith("pass_")
            or measure.metric.split("_")[-1] == "time"
            or measure.metric == "vcpu_time_mean"
        )
        assert measure.unit == ("s" if timed else "1"), measure.metric


def test_no_aging_has_no_passes():
    found = aged(NO_AGING)
    assert {metric for metric, _ in found} == {
        "populate_memory_time",
        "fault_memory_time",
        "vcpu_time_mean",
        "discard_memory_time",
    }
    assert {number for metric, number in found if metric == "fault_memory_time"} == {1, 2, 3}


def test_eviction_is_read():
    found = aged(EVICTED)
    assert (found["swapped_out", None], found["swapped_in", None]) == (2046, 1614)
    assert [found[f"{name}.running", 2] for name in ("young", "idle", "untracked", "swapped")] == [16, 100, 396, 394]
    assert found["access_memory_time", 1] == 0.005339536
    assert found["swapped.idle", 1] == 289
    assert not any(metric.startswith(("false_idle", "fault_memory")) for metric, _ in found)


def test_no_pass_that_ended_has_a_count_alone():
    line = next(line for line in AGING.splitlines() if "Iteration 3 aging passes, vCPUs r" in line)
    found = aged(AGING.replace(line, "Iteration 3 aging passes, vCPUs running: 0"))
    assert found["passes.running", 3] == 0 and ("pass_median.running", 3) not in found
    assert found["pass_median.running", 2] == 0.000010656


def test_lock_counts_of_aging_have_its_phases():
    found = aged(with_locks(AGING))
    wanted = {("setup", None), ("populate", None), ("exit", None)} | {
        (phase, number) for phase in ("age", "fault", "discard", "check") for number in (1, 2, 3)
    }
    assert {
        (metric.split(".")[1], number) for metric, number in found if metric.startswith("mmu_lock_write_acquisitions.")
    } == wanted
    age = AGING.splitlines().index("Iteration 2 age idle memory time: 0.000121552s")
    assert found["mmu_lock_write_acquisitions.age", 2] == 100 + age
    assert found["mmu_lock_write_contentions.age", 2] == age
    # The totals are without the setup.
    assert found["mmu_lock_read_acquisitions", None] == 7 * 13
    assert found["mmu_lock_write_acquisitions", None] == sum(
        value
        for (metric, _), value in found.items()
        if metric.startswith("mmu_lock_write_acquisitions.") and not metric.endswith(".setup")
    )
    evicted = aged(with_locks(EVICTED))
    assert ("mmu_lock_read_acquisitions.access", 2) in evicted


@pytest.mark.parametrize(
    "line",
    [
        "Iteration 1 age idle memory time: soon",
        "Iteration 1 split memory time: 0.1s",
        "Iteration 1 aging passes, vCPUs asleep: 5",
        "All vCPU time, mean 0.1s",
        "Iteration 1 found after aging, vCPUs idle: 0 young, 491 idle, 21 not tracked",
        "Iteration 1 false idle before flush: 0 of 9 pages touched; 9 young, 7 idle, 0 young but not touched",
        "Iteration 1 false idle after flush: 0 of 9 pages touched; 9 young, 7 idle",
        "Pages swapped out: many, in: 2",
        "Memory cgroup v3",
        "Verified by the guest: 3 pages",
        "Aborted",
        "==== Test Assertion Failure ====",
        "Populate memory time: 0.5s and more",
        "@@ taint x before=0 after=512",
        '@@ lock phase="exit" nonsense',
    ],
)
def test_an_unknown_line_of_aging_fails_loudly(line):
    with pytest.raises(Fail, match="a line that is not known: '" + re.escape(line)):
        aged(f"{AGING}{line}\n")


@pytest.mark.parametrize("phase", ["Iteration 1 split memory time", "fault memory in time"])
def test_lock_counts_of_an_unknown_phase_of_aging_fail(phase):
    with pytest.raises(Fail, match="phase that is not known"):
        aged(AGING + lock(phase, "write", 1, 0))


def test_incomplete_lock_counts_of_aging_fail():
    with pytest.raises(Fail, match="not complete: lock debugging is off"):
        aged(AGING + "@@ lock-error lock debugging is off, see the kernel log\n")


@pytest.mark.parametrize("output", ["", AGING.split("Iteration 1")[0]])
def test_aging_without_figures_fails(output):
    with pytest.raises(Fail, match="access_tracking_stress_test printed no figures"):
        aged(output)


def test_aging_that_broke_off_fails():
    with pytest.raises(Fail, match="ran 4 iterations but timed 3"):
        aged(AGING.replace("Test iterations: 3", "Test iterations: 4"))


def test_every_metric_of_aging_is_documented():
    text = (paths.ROOT / "Documentation" / "results.md").read_text(encoding="utf-8")
    for output in (AGING, EVICTED, with_locks(AGING)):
        for measure in parse("access_tracking_stress_test", output):
            name, dot, of = measure.metric.partition(".")
            assert f"`{name}{dot and '.X' * (not name.startswith('mmu_lock'))}`" in text, name
            assert not dot or f"`{of}`" in text, of


TAP = """\
ok 1 memory
ok 2 # SKIP dirty log: it is off (see -l)
not ok 3 aging
# Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
"""


def test_results_in_tap_are_passed_over():
    assert aged("TAP version 13\n1..3\n" + AGING + TAP) == aged(AGING)


@pytest.mark.parametrize("line", ["okay", "ok memory", "1..", "TAP version", "TAP version 13 of it"])
def test_what_is_not_quite_tap_fails(line):
    with pytest.raises(Fail, match="a line that is not known"):
        aged(AGING + line + "\n")
