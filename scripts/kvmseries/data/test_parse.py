import fnmatch
import re

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.data import benchmarks
from kvmseries.data.parse import Measure, nothing_harvested, parse, UNITS

# As the patched test prints it with -i 2.
OUTPUT = """\
Test iterations: 2
Manual dirty log protect: off
Testing guest mode: PA-bits:48,  VA-bits:48,  4K pages
guest physical test memory offset: 0xffffbfc000
In-kernel GICv3: on
Populate memory time: 0.340000001s
# metric populate_memory_time 0.340000001 s
Enabling dirty logging time: 0.008112345s
# metric enable_dirty_log_time 0.008112345 s

Iteration 1 dirty memory time: 1.210000000s
# metric dirty_memory_time/1 1.210000000 s
Iteration 1 get dirty log time: 0.006000000s
# metric get_dirty_log_time/1 0.006000000 s
Iteration 2 dirty memory time: 12.000000009s
# metric dirty_memory_time/2 12.000000009 s
Iteration 2 get dirty log time: 0.005000000s
# metric get_dirty_log_time/2 0.005000000 s
Disabling dirty logging time: 0.010200000s
# metric disable_dirty_log_time 0.010200000 s
Get dirty log over 2 iterations took 0.011000000s. (Avg 0.005500000s/iteration)
"""
# With KVM_CLEAR_DIRTY_LOG.
CLEARED = re.sub(
    r"(Iteration (\d) get .*\n# metric .*\n)",
    r"\1Iteration \2 clear dirty log time: 0.018000000s\n# metric clear_dirty_log_time/\2 0.018000000 s\n",
    OUTPUT,
)
# As 7.3's test prints it.
NEWER = "Random seed: 0x6b8b4567\n" + CLEARED.replace(
    "memory offset: 0xffffbfc000", "memory: [0xffffeff000, 0xfffffff000)"
)
# change_pte_test -i 1 -t 20.
CHANGE_PTE = """\
2 vCPUs, 1024 pages of anonymous, in groups of 4, seed 1
# metric read_merged_exits_per_page/1 2.028000000 x
# metric read_merged_vcpu_time/1 -0.001928000 s
# metric read_while_merged_exits/1 -210 count
# metric storm_kvm_change_pte_replaced 3663 count
"""
# access_tracking_stress_test -i 2.
AGING = """\
Test iterations: 2
guest physical test memory: [0x200000000, 0x200800000)
Populate memory time: 0.000037696s
# metric populate_memory_time 0.000037696 s
Iteration 1 age idle memory time: 0.000121632s
# metric pass_median.idle/1 0.000007248 s
Iteration 1 fault memory in time: 0.000227568s
# metric fault_memory_time/1 0.000227568 s
Iteration 1 discard fresh memory time: 0.000223664s
Iteration 1 check idle memory time: 0.000146400s
# metric false_idle.after/1 0 pages
Iteration 2 age idle memory time: 0.000121552s
Iteration 2 access memory time: 0.000121552s
# metric access_memory_time/2 0.000226592 s
# metric young.running/2 12.500000000 pages
# metric passes.running 60 count
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
    lines = [line for line in output.splitlines(keepends=True) if not line.startswith("# metric")]
    for number, line in enumerate(lines):
        text += line
        phase = line.split(":")[0]
        if " time: " in line or line.startswith("guest physical"):
            text += lock(phase, "write", 100 + number, number) + lock(phase, "read", 7, 1)
    metrics = "".join(line for line in output.splitlines(keepends=True) if line.startswith("# metric"))
    return text + metrics + lock("exit", "write", 12, 0) + lock("exit", "read", 0, 0)


def figures(measures):
    return {(measure.metric, measure.iteration): measure.value for measure in measures}


def test_every_metric_is_read_with_its_iteration():
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
    assert {measure.unit for measure in measures} == {"s"}  # and no counts of locks
    assert measures[0] == Measure("populate_memory_time", None, 0.340000001, "s")


@pytest.mark.parametrize(
    "test, output, metric, iteration, value, unit",
    [
        ("change_pte_test", CHANGE_PTE, "read_merged_vcpu_time", 1, -0.001928, "s"),
        ("change_pte_test", CHANGE_PTE, "read_while_merged_exits", 1, -210, "1"),
        ("change_pte_test", CHANGE_PTE, "read_merged_exits_per_page", 1, 2.028, "1"),
        ("change_pte_test", CHANGE_PTE, "storm_kvm_change_pte_replaced", None, 3663, "1"),
        ("access_tracking_stress_test", AGING, "pass_median.idle", 1, 7.248e-6, "s"),
        ("access_tracking_stress_test", AGING, "young.running", 2, 12.5, "1"),
        ("access_tracking_stress_test", AGING + "# metric harvested/1 1e3 pages\n", "harvested", 1, 1000, "1"),
    ],
)
def test_metrics_of_other_tests(test, output, metric, iteration, value, unit):
    (found,) = [one for one in parse(test, output) if (one.metric, one.iteration) == (metric, iteration)]
    assert (found.value, found.unit) == (pytest.approx(value), unit)


@pytest.mark.parametrize(
    "line, why",
    [
        ("# metric odd_time 1.0 s", "bench.yaml does not know"),
        ("# metric dirty_memory_time/x 1.0 s", "bench.yaml does not know"),
        ("# metric pass_median.idle/3 1.0 s", "bench.yaml does not know"),  # of another test
        ("# metric dirty_memory_time/3", "bench.yaml does not know"),
        ("# metric dirty_memory_time/3 soon s", "bench.yaml does not know"),
        ("# metric dirty_memory_time/3 nan s", "bench.yaml does not know"),
        ("# metric dirty_memory_time/3 0,5 s", "bench.yaml does not know"),
        ("# metric dirty_memory_time/3 0.5 s and more", "bench.yaml does not know"),
        ("# metrics", "bench.yaml does not know"),
        ("# metric dirty_memory_time/3 1.0 ns", "in another unit than bench.yaml has"),
        ("# metric dirty_memory_time/3 1 count", "in another unit than bench.yaml has"),
        ("# metric pages_written/1 1 s", "in another unit than bench.yaml has"),
        ("# metric pages_written/1 1 parsecs", "in another unit than bench.yaml has"),
        ("# metric dirty_memory_time/2 1.0 s", "twice"),
    ],
)
def test_a_metric_that_is_not_known_is_one_line(line, why):
    with pytest.raises(Fail, match=rf"^dirty_log_perf_test printed a metric .*{why}.*'{re.escape(line)}'") as caught:
        parse("dirty_log_perf_test", f"{OUTPUT}{line}\n")
    assert "\n" not in str(caught.value)


def test_prose_beside_the_metrics_is_not_read():
    text = OUTPUT.replace("0.340000001s", "soon").replace("Manual dirty log", "A metric of no kind: ")
    assert parse("dirty_log_perf_test", text) == parse("dirty_log_perf_test", OUTPUT)


def test_lines_may_end_as_on_a_terminal():
    assert parse("dirty_log_perf_test", OUTPUT.replace("\n", "\r\n")) == parse("dirty_log_perf_test", OUTPUT)


@pytest.mark.parametrize(
    "test, output, why",
    [
        ("dirty_log_perf_test", "", "printed no metrics"),
        ("dirty_log_perf_test", "Populate memory time: 0.340000001s\n", "printed no metrics"),
        ("dirty_log_perf_test", re.sub("# metric populate.*\n", "", OUTPUT), "printed no populate_memory_time"),
        ("access_tracking_stress_test", re.sub("# metric (fault|access).*\n", "", AGING), "printed no {fault,access}_"),
        ("dirty_hold_test", "# metric discard_time 0.02 s\n", "no clear_idle_time: the kernel .*hold-times"),
        ("dirty_log_perf_test", re.sub("# metric .*/2.*\n", "", OUTPUT), r"ran 2 iterations but measured 1: \[1\]"),
        ("dirty_log_perf_test", OUTPUT.replace("ns: 2\n", "ns: 3\n"), "ran 3 iterations but measured 2"),
        ("dirty_log_perf_test", OUTPUT[:-1] + OUTPUT[OUTPUT.index("Testing") :], "one guest mode at a time"),
    ],
)
def test_what_was_not_measured_fails(test, output, why):
    with pytest.raises(Fail, match=why):
        parse(test, output)


UNSEEN, SEEN = (f"# metric get_while_writing_times/{number} {times} count\n" for number, times in ((1, 0), (2, 1)))


def test_a_harvest_must_fall_into_the_writing():
    with pytest.raises(Fail, match=r"no harvest of -H fell into the writing: more memory \(-b\), or a shorter pause"):
        parse("dirty_log_perf_test", OUTPUT + UNSEEN)
    rings = UNSEEN.replace("get", "collect")
    assert nothing_harvested(UNSEEN) and nothing_harvested(rings) and nothing_harvested(UNSEEN + rings)
    # One harvest is enough; without -H there is nothing to ask for; clears follow what was got.
    assert not nothing_harvested(UNSEEN + SEEN) and not nothing_harvested(OUTPUT)
    assert not nothing_harvested(SEEN + UNSEEN.replace("get", "clear"))


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


def test_counts_of_clearing_and_of_what_sets_up_a_later_kernels_vm():
    found = figures(parse("dirty_log_perf_test", with_locks(NEWER)))
    assert [found["mmu_lock_write_acquisitions.clear", number] for number in (1, 2)] == [111, 114]
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


# Joined phases are what lockphase prints when stdout is no terminal.
JOINED = lock("Iteration 1 dirty memory time + Iteration 1 get dirty log time", "write", 1, 0)


@pytest.mark.parametrize(
    "line, why",
    [
        ("@@ taint x before=0 after=512", "a line that is not known: '@@ taint x before=0 after=512"),
        ('@@ lock phase="exit" nonsense', 'a line that is not known: \'@@ lock phase="exit" nonsense'),
        ("@@ lock-error lock debugging is off", "not complete: lock debugging is off$"),
        (JOINED, "phase that is not known"),
        (lock("Reading the newspaper", "write", 1, 0), "phase that is not known"),
        (lock("", "write", 1, 0), "phase that is not known"),
    ],
)
def test_lock_counts_that_are_not_known_or_not_complete_fail(line, why):
    with pytest.raises(Fail, match=why):
        parse("dirty_log_perf_test", f"{OUTPUT}{line}\n")


def test_lock_counts_of_aging_have_its_phases():
    found = figures(parse("access_tracking_stress_test", with_locks(AGING)))
    assert {
        (metric.split(".")[1], number) for metric, number in found if metric.startswith("mmu_lock_write_acquisitions.")
    } == {("setup", None), ("populate", None), ("exit", None), ("access", 2), ("age", 2)} | {
        (phase, 1) for phase in ("age", "fault", "discard", "check")
    }
    # The totals are without the setup.
    assert found["mmu_lock_read_acquisitions", None] == 7 * 7


@pytest.mark.parametrize("test", [*benchmarks.load(), benchmarks.COMMON, benchmarks.MIGRATION])
def test_every_metric_is_documented(test):
    place = "qemu-migration/harness.md" if test == benchmarks.MIGRATION else "Documentation/results.md"
    text = (paths.ROOT / place).read_text(encoding="utf-8")
    # `X_hold`, `pass_max.X`, `merge_timeX`, `write_merged_*` are several.
    known = [re.sub(r"\bX|X\b|\\\*", ".*", re.escape(name)) for name in re.findall(r"`([\w.*]+)`", text)]
    found = [name for name, column in benchmarks.columns(test).items() if not column.sum]
    names = [name.replace(".*", "").replace("*", "host_x") for name in found]
    assert names
    assert [name for name in names if not any(re.fullmatch(one, name) for one in known)] == []


SOURCES = [(test, path) for test in benchmarks.load() for path in (paths.TESTS / "tests").glob(f"{test}.c")] + [
    ("dirty_log_perf_test", path) for path in paths.PATCHES.glob("v*/*-Print-what-dirty_log_perf_test-measure*.patch")
]


def unknown(test, source):
    """What a program's source says of metrics that bench.yaml does not: names, how names begin, units."""
    known = benchmarks.columns(test)
    calls = re.findall(r'metric(?:_of|_time)?\("(\w[\w.]*)"', source)
    begins = re.findall(r'metric_part\("([\w.]+)"', source)
    units = re.findall(r'metric\w*\([^;]*?, "(\w+)"\);', source)
    return [
        *(name for name in calls if not benchmarks.metric(test, name)),
        *(name for name in begins if not any(one.startswith(name) or fnmatch.fnmatch(name, one) for one in known)),
        *(name for name in units if name not in UNITS),
    ]


@pytest.mark.parametrize("test, path", SOURCES, ids=lambda value: getattr(value, "name", value))
def test_what_programs_print_is_known(test, path):
    assert unknown(test, path.read_text(encoding="utf-8")) == []


def test_negative_control_a_metric_or_unit_that_bench_yaml_lacks():
    assert {test for test, _ in SOURCES} == set(benchmarks.load())
    source = 'metric("exit_time", x, "s");\nmetric("odd", x, "s");\nmetric_part("even_", x, "s");\nmetric("exit_time", x, "h");'
    assert unknown("vm_killed_test", source) == ["odd", "even_", "h"]
