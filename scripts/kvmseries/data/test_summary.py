"""Tests of the aggregation; all numbers are made up."""

import math

import pytest

from kvmseries.data import summary as s
from kvmseries.report.conftest import aging_results, column, full_results, make_file, make_run, only

WRITES = "mmu_lock_write_acquisitions"


@pytest.mark.parametrize(
    "args, expected",
    [
        ("-v 4", ""),
        ("-m 2 -v 4 -i 2", "-m 2 -i 2"),
        ("-v4 -m 2", "-m 2"),
        ("", ""),
        ("-m 2  -b 1G", "-m 2 -b 1G"),
        ("-x -v", "-x -v"),
        ("--dev 4", "--dev 4"),
    ],
)
def test_without_vcpus(args, expected):
    assert s.without_vcpus(args) == expected


def test_groups_never_mix():
    other = {"series": "v6.1", "arch": "x86_64", "accel": "kvm", "clock": "virtual", "cpu": "cortex-a72"}
    other |= {"params": ["a=1"], "test": "other", "args": "-m 3", "config": "64k"}
    variants = [{}, *({key: value} for key, value in other.items())]
    summaries = s.summarise([make_file(*(make_run(**keys) for keys in variants))])
    assert len(summaries) == len(variants)
    assert [summary.last("base", 1, s.DIRTY).median for summary in summaries] == [1.0] * 10


def test_counts_of_lockstat_kernels_and_times_of_others_share_a_group():
    summary = only(
        make_file(
            make_run(config="lockstat"),
            make_run(samples=[2.0]),
            make_run(args="-m 2 -i 2 -b 4M -v 2", vcpus=2),
            make_run(metric=WRITES, unit="1", samples=[3]),
            make_run(config="lockstat", metric=WRITES, unit="1", samples=[7]),
        )
    )
    assert (summary.vcpus, summary.unused) == ([1, 2], 2)
    assert summary.last("base", 1, s.DIRTY).median == 2.0 and summary.last("base", 1, WRITES).median == 7
    assert summary.last("base", 2, WRITES) is None


def test_ratio_of_medians_and_of_pairs():
    base, series = s.Value({(0, 0): 10, (0, 1): 20, (0, 2): 40}), s.Value({(0, 0): 5, (0, 1): 30, (0, 2): 10})
    assert s.ratio(series, base) == s.Ratio(0.5, 0.25, 1.5)
    assert s.ratio(s.Value({(0, 0): 1.0}), s.Value({(1, 0): 2.0})) == s.Ratio(0.5, None, None)


@pytest.mark.parametrize("base", [None, s.Value({(0, 0): 0}), s.Value({(0, 0): 1.0}, 2), s.Ratio(1, 1, 1)])
def test_ratio_that_means_nothing(base):
    assert s.ratio(s.Value({(0, 0): 1.0}), base) is s.ratio(None, s.Value({(0, 0): 1.0})) is None


def test_samples_pair_within_their_file_and_those_that_are_no_numbers_are_left_out():
    first = make_file(make_run(samples=[1.0]), make_run(samples=[1.0]))  # further samples
    second = make_file(
        make_run(samples=[math.nan, math.inf, 4.0]), make_run(kernel="series", samples=[math.nan, 9, 2.0])
    )
    summary = only(first, second)
    base, series = (summary.last(kernel, 1, s.DIRTY) for kernel in ("base", "series"))
    assert base.samples == {(0, 0): 1.0, (0, 1): 1.0, (1, 2): 4.0}
    assert s.ratio(series, base) == s.Ratio(5.5, 0.5, 0.5)
    assert only(make_file(make_run(), make_run(kernel="series", samples=[math.nan]))).last("series", 1, s.DIRTY) is None


def test_kernels_in_order_and_what_is_compared():
    """Those of other series come last, and are not compared."""
    runs = [make_run(kernel=kernel) for kernel in ("v7.3:base", "series", "upto:b", "upto:a", "base")]
    assert only(make_file(*runs)).kernels == ["base", "upto:b", "upto:a", "series", "v7.3:base"]
    assert only(make_file(*runs)).compared == "series"
    assert only(make_file(*runs[2:])).compared == "upto:a"
    assert only(make_file(runs[1])).compared is only(make_file(runs[0], runs[4])).compared is None


@pytest.mark.parametrize(
    "host, groups",
    [
        ({}, 1),
        ({"memory": 1}, 1),
        ({"cpu": "other"}, 2),
        ({"tools": {}}, 1),
        ({"tools": {"qemu-system-aarch64": "QEMU emulator version 9.1"}}, 2),
        ({"kernels": {"base arm64 normal": "5.10.223"}}, 2),
    ],
)
def test_hosts_and_kernel_versions_do_not_mix(host, groups):
    results = [make_file(make_run()), make_file(make_run(), **host)]
    assert len(s.summarise(results)) == groups


@pytest.mark.parametrize(
    "accel, clock, name",
    [("tcg", "wall", s.EMULATED), ("tcg", "virtual", s.VIRTUAL), ("kvm", "wall", s.WALL), ("here", "wall", s.WALL)],
)
def test_every_clock_has_its_name(accel, clock, name):
    group = only(make_file(make_run(accel=accel, clock=clock))).group
    assert group.clock_name == name
    assert group.emulated == (name == s.EMULATED)


def test_variants_of_the_model_never_mix_with_the_nominal_one():
    summary = only(
        make_file(
            *(
                make_run(clock="virtual", model=model, samples=[number])
                for model, number in (("line*2", 9.0), ("nominal", 1.0), ("line*0.5", 5.0))
            ),
            make_run(clock="virtual", model="line*2", vcpus=64, kernel="series"),
        )
    )
    assert summary.last("base", 1, s.DIRTY).samples == {(0, 0): 1.0}
    assert summary.at("base", 1, s.DIRTY, None, "line*2").samples == {(0, 0): 9.0}
    assert (summary.kernels, summary.vcpus) == (["base"], [1])
    assert summary.variants == ["line*2", "line*0.5"]


def test_other_series_tests_number_their_guest_modes_otherwise():
    def args(*runs):
        return [summary.group.args for summary in s.summarise([make_file(*runs)])]

    base = make_run(args="-m 2 -b 4M -v 1")
    other = make_run(args="-m 3 -b 4M -v 1", kernel="v7.3:base")
    assert args(base, other) == args(other, base) == ["-m 2 -b 4M"]
    assert args(other) == ["-m 3 -b 4M"]
    assert len(args(base, {**other, "args": "-m 3 -b 8M -v 1"})) == 2
    assert len(args(base, {**other, "kernel": "series"})) == 2


@pytest.mark.parametrize(
    "vtime, groups",
    [
        ({"parameters": {"insn": {"ns": 0.4}}, "slice_ns": 500}, 1),
        ({"parameters": {"insn": {"ns": 0.5}}, "slice_ns": 500}, 2),
        ({"parameters": {"insn": {"ns": 0.4}}, "slice_ns": 100}, 2),
        ({"parameters": {"insn": {"ns": 0.4, "what": "else"}}, "slice_ns": 500, "qemu": "x"}, 1),
    ],
)
def test_models_do_not_mix(vtime, groups):
    first = {"parameters": {"insn": {"ns": 0.4}}, "slice_ns": 500}
    results = [make_file(make_run(clock="virtual"), vtime=one) for one in (first, vtime)]
    results.append(make_file(make_run(clock="virtual")))
    assert len(s.summarise(results)) == groups


def test_kernels_booted_on_the_machine_itself_share_a_table():
    run = make_run(accel="here", cpu="host", test="t", args="")
    files = [
        {"schema": 4, "host": {"machine": "aarch64", "kernel": f"5.10.262-{name}"}, "runs": [{**run, "kernel": name}]}
        for name in ("base", "series")
    ]
    assert len(s.summarise(files)) == 1
    for file in files:
        file["runs"][0]["accel"] = "kvm"
    assert len(s.summarise(files)) == 2


def test_the_last_iteration_goes_before_the_whole_test():
    runs = [make_run(iteration=None, samples=[5]), *(make_run(iteration=n, samples=[n]) for n in (1, 2))]
    summary = only(make_file(*runs, make_run(kernel="series", iteration=1)))
    assert summary.iterations(s.DIRTY) == [1, 2]
    assert summary.last("base", 1, s.DIRTY) == s.Value({(0, 0): 2}, 2)
    assert summary.at("base", 1, s.DIRTY, 1).median == 1 and summary.at("base", 1, s.DIRTY, 3).median == 5
    # A kernel that lacks the last iteration has no value.
    assert summary.last("series", 1, s.DIRTY) is None


def derived(first, second, column, **keys):
    """The Value of a Column of `first` and `second`, samples of the metrics a and b."""
    keys["clock"] = "virtual"
    runs = [make_run(metric="a", samples=first, **keys), make_run(metric="b", samples=second, **keys)]
    return only(make_file(*runs)).value("base", keys.get("vcpus", 1), column)


def test_columns_are_summed_and_divided_sample_by_sample():
    assert list(derived([1, 2], [10, 30], column("x", sum=("a", "b"))).samples.values()) == [11, 32]
    assert list(derived([1, 2], [10, 40], column("x", sum=("a",), per="b")).samples.values()) == [0.1, 0.05]
    assert list(derived([3], [2], column("x", sum=("a",), per="b", less=1)).samples.values()) == [0.5]
    assert derived([8], [2], column("x", sum=("a",), per="b", each=True, scale=10), vcpus=4).median == 10
    assert derived([8], [0], column("x", sum=("a",), per="b")) is None
    assert derived([8], [2], column("x", sum=("a", "c"))) is None


def test_runs_without_aging_belong_to_those_with():
    with_aging, without = aging_results(), aging_results(alone=True)
    summary = only(with_aging, without)
    assert summary.alone and summary.vcpus == [1, 4, 16] and summary.kernels == ["base", "series"]
    (column_,) = [one for one in summary.columns() if one.title == "faulting: aging/no aging"]
    ratio = summary.value("base", 4, column_)
    assert ratio.median == pytest.approx(1800 / 1600) and isinstance(ratio, s.Ratio)
    alone = only(without)
    assert alone.alone is None and "fault memory in, no aging" not in {one.title for one in alone.columns()}


def test_phases_of_a_full_file():
    summary = only(full_results())
    assert summary.phases() == ["setup", "populate", "enable", "dirty", "get", "clear", "disable", "exit"]
    assert summary.last("series", 4, "mmu_lock_read_acquisitions.dirty").median == 4096
    times = [one for one in summary.columns() if one.timed]
    assert summary.samples_text(times) == "3 samples" and summary.samples_text([]) == "no samples"
    assert summary.samples_text(summary.columns()) == "2 to 3 samples"
