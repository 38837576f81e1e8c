"""Tests of what the report says first; all numbers are made up."""

import pytest

from kvmseries.data import summary as s
from kvmseries.report import layout, verdict
from kvmseries.report.conftest import aging_results, full_results, make_file, make_run, merging_results, virtual_results


def of(*runs):
    return verdict.of(s.summarise([make_file(*runs)])[0])


def times(metric, base, series, vcpus=1, **keys):
    """Runs in virtual time of base and of the series: us."""
    return [
        make_run(clock="virtual", kernel=kernel, metric=metric, vcpus=vcpus, samples=[us * 1e-6], **keys)
        for kernel, us in (("base", base), ("series", series))
    ]


@pytest.mark.parametrize(
    "seconds, text",
    [
        (12.34, "12.3 s"),
        (0.9996, "1.00 s"),
        (3.25e-3, "3.25 ms"),
        (1.96e-5, "19.6 us"),
        (567e-9, "567 ns"),
        (1234, "1,234 s"),
        (0, "0.00 ns"),
        (-2e-6, "-2.00 us"),
    ],
)
def test_time_text(seconds, text):
    assert layout.time_text(seconds) == text


def test_the_head_has_the_main_time_of_the_most_vcpus_and_what_got_worse():
    found = of(
        *times("dirty_memory_time", 1024, 512),
        *times("dirty_memory_time", 20480, 512, vcpus=16),
        *times("get_dirty_log_time", 10, 20),
        *times("get_dirty_log_time", 100, 277, vcpus=16),
    )
    assert found.head == (
        "16 vCPUs: dirty memory 20.5 ms \u2192 512 us, 0.025 of base; worse: KVM_GET_DIRTY_LOG up to 2.77 times base"
    )
    assert found.better == ["dirty memory down to 0.025 of base (16 vCPUs: 20.5 ms \u2192 512 us)"]
    assert found.worse == ["KVM_GET_DIRTY_LOG up to 2.77 times base (16 vCPUs: 100 us \u2192 277 us)"]


def test_what_got_worse_is_not_hidden_behind_what_got_better():
    """A metric that is both stands on both sides, and the worst vCPU count counts."""
    found = of(*times("get_dirty_log_time", 100, 200), *times("get_dirty_log_time", 100, 10, vcpus=2))
    assert len(found.better) == len(found.worse) == 1
    assert "2.00 times base (1 vCPU: 100 us \u2192 200 us)" in found.worse[0]


def test_times_come_first_and_the_greatest_change_first():
    found = of(
        *times("get_dirty_log_time", 10, 20),
        *times("enable_dirty_log_time", 10, 30),
        *(
            make_run(kernel=kernel, clock="virtual", metric="foreign_atomics.dirty", unit="1", samples=[count])
            for kernel, count in (("base", 10), ("series", 1000))
        ),
    )
    assert [line.split(" ")[0] for line in found.worse] == ["log", "KVM_GET_DIRTY_LOG", "cache"]


def of_count(base, series):
    keys = {"metric": "mmu_lock_write_acquisitions", "config": "lockstat", "unit": "1", "vcpus": 4}
    return of(make_run(**keys, samples=[base]), make_run(**keys, kernel="series", samples=[series]))


def test_what_moves_less_than_the_instrument_repeats_to_or_by_one_for_each_cpu_is_no_change():
    for base, series in ((100, 104), (104, 100), (100, 100)):
        found = of(*times("get_dirty_log_time", base, series))
        assert not found.better and not found.worse
    assert not of_count(10, 15).worse and of_count(10, 16).worse
    assert of_count(0, 6).worse == ["taken for write (mmu_lock) (4 vCPUs: 0 \u2192 6)"]


def test_what_does_not_repeat_is_judged_at_the_other_places_alone():
    runs = [{**run, "repeats": False} for run in times("populate_memory_time", 100, 900, vcpus=16)]
    assert of(*runs).lines() == ["Does not repeat, and is not judged: populate memory."]
    found = of(*runs, *times("populate_memory_time", 100, 500, vcpus=2))
    assert found.unsteady == ["populate memory (16 vCPUs)"]
    assert found.worse == ["populate memory 5.00 times base (2 vCPUs: 100 us \u2192 500 us)"]


def test_nothing_worse_is_said_to_be_nothing_unless_one_kernel_is_alone():
    assert of(*times("dirty_memory_time", 1024, 512)).lines()[-1] == "Worse: nothing that is compared here."
    assert of(make_run(clock="virtual")) == verdict.Verdict() and verdict.Verdict().lines() == []


def test_the_emulated_wall_clock_is_no_evidence():
    found = verdict.of(s.summarise([full_results()])[0])
    assert found.head.startswith("4 vCPUs: taken for write (mmu_lock) 12,475 \u2192 4,283")
    assert not any(" ms" in line or " us" in line for line in found.better + found.worse)


def test_a_milestone_is_named():
    found = verdict.of(s.summarise([virtual_results(("base", "upto:fast-path"))])[0])
    assert found.head.startswith("16 vCPUs, fast-path: dirty memory 36.9 ms \u2192 11.1 ms, 0.30 of base")


def test_every_test_has_a_verdict():
    aging = verdict.of(s.summarise([aging_results(), aging_results(alone=True)])[0])
    assert aging.head == (
        "16 vCPUs: vCPUs running (aging pass) 3.00 ms \u2192 130 us, 0.043 of base; worse: vCPUs idle (aging pass) up to 1.06 "
        "times base"
    )
    merging = verdict.of(s.summarise([merging_results()])[0])
    assert merging.head.startswith("8 vCPUs: all (kernel and vCPUs) 39.0 ms \u2192 12.9 ms, 0.33 of base")


def migrations(speed, args="rate=2000"):
    """Migrations with 2 and 4 vCPUs; with 4 the guest of the series writes at `speed` times that of base's."""
    keys = {"test": "migration", "series": "qemu-10.0", "config": "bitmap", "args": args}
    return [
        make_run(**keys, kernel=kernel, vcpus=vcpus, metric=metric, unit=unit, samples=[value])
        for kernel, factor in (("base", 1), ("series", 0.5))
        for vcpus in (2, 4)
        for metric, unit, value in (
            ("migration_time", "s", 10 * vcpus * factor),
            ("guest_speed", "pages/s", 1000 * (speed if kernel == "series" and vcpus == 4 else 1)),
        )
    ]


@pytest.mark.parametrize(
    "speed, args, vcpus", [(1.05, "rate=1", 4), (1.2, "rate=1", 2), (0.8, "rate=1", 2), (1, "rate=0", 4)]
)
def test_the_head_is_of_guests_that_began_alike(speed, args, vcpus):
    found = of(*migrations(speed, args))
    assert found.head.startswith(f"{vcpus} vCPUs: migration (what the guest suffers) {vcpus}0.0 s")
    summary = s.summarise([make_file(*migrations(speed, args))])[0]
    assert [verdict.alike(summary, count) for count in (2, 4)] == [args != "rate=0", args != "rate=0" and speed == 1.05]
