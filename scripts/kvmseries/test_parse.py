import re

import pytest

from kvmseries.errors import Fail
from kvmseries.parse import Measure, parse

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
CLEAR_LINE = ("Iteration 1 clear dirty log while writing: p50 8191 ns, p99 44467488 ns, "
              "max 44467488 ns, 40 times\n")


def lock(phase, mode, acquisitions, contentions, name="&(kvm)->mmu_lock"):
    """A line of lockphase: print_row() in tools-testing-selftests-kvm/guest/lockphase.c."""
    return (f'@@ lock phase="{phase}" class="{name}" mode={mode} con-bounces=0 '
            f"contentions={contentions} waittime-min=0.00 waittime-max=0.00 waittime-total=0.00 "
            f"waittime-avg=0.00 acq-bounces=3 acquisitions={acquisitions} holdtime-min=0.06 "
            "holdtime-max=9.10 holdtime-total=70.15 holdtime-avg=1.50\n")


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
        ("populate_memory_time", None): 0.340000001, ("enable_dirty_log_time", None): 0.008112345,
        ("dirty_memory_time", 1): 1.21, ("get_dirty_log_time", 1): 0.006,
        ("dirty_memory_time", 2): 12.000000009, ("get_dirty_log_time", 2): 0.005,
        ("disable_dirty_log_time", None): 0.0102}
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
            ("dirty_latency", 2, (544e-9, 672e-9, 720e-9, 1024)))
        for part, value in zip(("p50", "p99", "max", "writes"), values)}
    assert found["get_while_writing_p50", 1] == 1279e-9
    assert found["get_while_writing_max", 2] == 1552e-9
    assert found["get_while_writing_times", 2] == 438
    assert found["clear_while_writing_p99", 1] == 44467488e-9
    assert [found[f"pages_found_{what}", 1] for what in ("while_writing", "after")] == [1024, 3]
    assert found["pages_written", 1] == 256
    # The times are read as ever.
    assert found["dirty_memory_time", 2] == 0.000560672
    assert found["get_dirty_log_time", 1] == 0.000000352
    assert {m.unit for m in measures
            if m.metric.endswith(("_p50", "_p99", "_max", "_time"))} == {"s"}
    assert {m.unit for m in measures if m.metric.startswith("pages_")
            or m.metric.endswith(("_writes", "_times"))} == {"1"}


def test_no_harvest_while_writing_has_no_times():
    found = figures(parse("dirty_log_perf_test", OUTPUT + (
        "Iteration 1 get dirty log while writing: p50 0 ns, p99 0 ns, max 0 ns, 0 times\n")))
    assert {key: value for key, value in found.items() if "writing" in key[0]} == {
        ("get_while_writing_times", 1): 0}


def test_latencies_do_not_end_a_phase():
    """lockphase and the virtual clock end a phase at " time: "."""
    lines = [line for line in (LATENCY + CLEAR_LINE).splitlines()
             if " ns, " in line or "found" in line]
    assert len(lines) == 11 and not any(" time: " in line for line in lines)


@pytest.mark.parametrize("output", [NEWER, NEWER_G])
def test_what_later_kernels_tests_print_is_read(output):
    cleared = {("clear_dirty_log_time", 1): 0.000545936, ("clear_dirty_log_time", 2): 0.000319648}
    assert figures(parse("dirty_log_perf_test", output)) == {
        ("populate_memory_time", None): 0.02868464, ("enable_dirty_log_time", None): 0.00264952,
        ("dirty_memory_time", 1): 0.00049152, ("get_dirty_log_time", 1): 0.000218704,
        ("dirty_memory_time", 2): 0.009821184, ("get_dirty_log_time", 2): 0.000013728,
        ("disable_dirty_log_time", None): 0.002878208, **(cleared if output == NEWER else {})}


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
        value for (metric, _), value in found.items()
        if metric.startswith("mmu_lock_write_acquisitions.") and not metric.endswith(".setup"))


def test_counts_of_other_locks_are_left_out():
    text = OUTPUT + lock("exit", "write", 5, 0) + lock("exit", "write", 99, 9, "&(kvm)->slots_lock")
    found = figures(parse("dirty_log_perf_test", text))
    assert found["mmu_lock_write_acquisitions", None] == 5


def test_without_counts_there_are_no_totals():
    assert not [m for m in parse("dirty_log_perf_test", OUTPUT) if "mmu_lock" in m.metric]


@pytest.mark.parametrize("line", [
    "Iteration 1 reset dirty log time: 0.1s", "Populate memory time: soon", "Aborted",
    "Manual dirty log protect: maybe", "In-kernel GICv3: perhaps", "@@ taint x before=0 after=512",
    "Iteration 3 dirty memory time: 0,5s", "Test iterations: many", '@@ lock phase="exit" nonsense',
    "Populate memory latency: p50 1 ns, p99 2 ns, 5 writes", "vCPU 1 iteration 2 latency: soon",
    "Iteration 1 dirty memory latency: p50 -1 ns, p99 2 ns, max 3 ns, 5 writes",
    "Iteration 1 dirty pages found: 9 while writing, 0 after, 7 of 8 written",
    "Populate memory time: 0.5s and more", "Random seed: 1", "guest physical test memory: 0x1000"])
def test_an_unknown_line_fails_loudly(line):
    with pytest.raises(Fail, match="a line that is not known: '" + re.escape(line)):
        parse("dirty_log_perf_test", f"{OUTPUT}{line}\n")


def test_lines_may_end_as_on_a_terminal():
    assert parse("dirty_log_perf_test", OUTPUT.replace("\n", "\r\n")) \
        == parse("dirty_log_perf_test", OUTPUT)


def test_a_missing_iteration_fails():
    text = "".join(line for line in OUTPUT.splitlines(keepends=True) if "Iteration 2" not in line)
    with pytest.raises(Fail, match="ran 2 iterations but timed 1"):
        parse("dirty_log_perf_test", text)


def test_two_guest_modes_in_one_run_fail():
    """Their figures could not be told apart."""
    mode = OUTPUT[OUTPUT.index("Testing"):]
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


@pytest.mark.parametrize("phase", ["Iteration 1 dirty memory time + Iteration 1 get dirty log time",
                                   "Reading the newspaper", ""])
def test_counts_of_an_unknown_phase_fail(phase):
    """Joined phases are what lockphase prints when stdout is no terminal."""
    with pytest.raises(Fail, match="phase that is not known"):
        parse("dirty_log_perf_test", OUTPUT + lock(phase, "write", 1, 0))
