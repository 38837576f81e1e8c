"""Tests of `series report --compare`: planted regressions are found, noise is not; numbers are made up."""

import copy
import io

import pytest
from rich.console import Console

from kvmseries import cli
from kvmseries.base.errors import Fail
from kvmseries.data import benchmarks, results, summary as s
from kvmseries.report import compare
from kvmseries.report.conftest import full_results, make_file, make_run, virtual_results


def virtual(samples, vcpus=1, **keys):
    return make_file(make_run(clock="virtual", vcpus=vcpus, samples=samples, **keys))


def outcome(before, after):
    (change,) = compare.compare(before, after).changes
    return change.verdict


def planted(data, factor, **keys):
    """A copy of a file in which the samples of the runs that have these keys are times factor."""
    data, hits = copy.deepcopy(data), 0
    for run in data["runs"]:
        if all(run[key] == value for key, value in keys.items()):
            run["samples"] = [sample * factor for sample in run["samples"]]
            hits += 1
    assert hits
    return data


def printed(comparison):
    file = io.StringIO()
    Console(file=file, width=150).print(compare.view(comparison))
    return " ".join(file.getvalue().split())


LESS = [
    name.replace(".*", ".dirty")
    for name, column in benchmarks.columns(benchmarks.COMMON).items()
    if column.better == "less" and not name.startswith(s.PER_FAULT)
]
PER_FAULT = s.PER_FAULT + ".dirty"


@pytest.mark.parametrize(
    "metric, before, after, vcpus, verdict",
    [
        (s.DIRTY, [1.0], [1.0], 1, "same"),
        (s.DIRTY, [1.0], [1.019], 1, "same"),
        (s.DIRTY, [1.0], [1.021], 1, "worse"),
        (s.DIRTY, [1.0], [0.979], 1, "better"),
        (s.DIRTY, [1.0], [1.049], 2, "same"),
        (s.DIRTY, [1.0], [1.051], 2, "worse"),
        (s.DIRTY, [1.0], [0.94], 64, "better"),
        (s.DIRTY, [1.0, 1.1, 1.2], [1.19, 1.3, 1.4], 2, "same"),
        (s.DIRTY, [1.0, 1.1, 1.2], [1.21, 1.3, 1.4], 2, "worse"),
        (s.DIRTY, [1.21, 1.3, 1.4], [1.0, 1.1, 1.2], 2, "better"),
        (s.DIRTY, [0.0], [0.0], 1, "same"),
        ("new_metric", [10], [20], 1, "changed"),
        (s.DIRTY, [0.0], [0.1], 1, "worse"),
        # Instructions per fault are exact with one vCPU.
        (PER_FAULT, [3350], [3350], 1, "same"),
        (PER_FAULT, [3350], [3351], 1, "worse"),
        (PER_FAULT, [3350], [3349], 1, "better"),
        (PER_FAULT, [3350, 3350], [3351, 3351], 1, "worse"),
        (PER_FAULT, [3350, 3352], [3353], 1, "same"),
        (PER_FAULT, [3350], [3400], 2, "same"),
        (PER_FAULT, [3350], [3600], 2, "worse"),
        # Of merging.
        ("read_merged_exits_per_page", [0], [0.09], 2, "same"),
        ("read_merged_exits_per_page", [0], [1], 2, "worse"),
        ("read_merged_exits_per_page", [1.002], [0], 2, "better"),
        ("read_while_merged_exits_per_page", [4.6], [4.8], 2, "same"),
        ("read_while_merged_exits_per_page", [0.25], [0.3], 2, "same"),
        ("write_merged_exits_per_page", [2], [2.2], 2, "worse"),
        ("merge_ksmd_time", [5e-3], [5.2e-3], 2, "same"),
        ("merge_ksmd_time", [5e-3], [5.3e-3], 2, "worse"),
        ("merge_ksmd_time_while_read", [5e-3], [4.7e-3], 2, "better"),
        ("read_merged_vcpu_time", [0], [29e-6], 2, "same"),
        ("read_merged_vcpu_time", [0], [961e-6], 2, "worse"),
        ("write_merged_vcpu_time", [5.8e-3], [4.3e-3], 2, "better"),
        ("write_merged_vcpu_time", [-3e-6], [1e-6], 2, "same"),
        ("pages_merged", [512], [600], 2, "better"),
        ("merge_time", [0.02], [0.04], 2, "worse"),
        ("read_merged_exits", [0], [512], 2, "changed"),
        ("read_while_merged_vcpu_time", [-1e-4], [4e-3], 2, "changed"),
        *((metric, [1000], [1050], 2, "same") for metric in LESS),
        *((metric, [1000], [1051], 2, "worse") for metric in LESS),
        *((metric, [1000], [949], 2, "better") for metric in LESS),
        *((metric, [3], [6], 2, "same") for metric in LESS),
        *((metric, [3], [7], 2, "worse") for metric in LESS),
        *((metric, [0], [3], 2, "same") for metric in LESS),
        *((metric, [0], [4], 2, "worse") for metric in LESS),
    ],
)
def test_what_is_beyond_spread_and_floor(metric, before, after, vcpus, verdict):
    unit = "s" if metric.partition("_while")[0].endswith("_time") else "1"
    test = "dirty_log_perf_test" if metric == s.DIRTY else "change_pte_test"
    keys = {"metric": metric, "vcpus": vcpus, "unit": unit, "test": test}
    assert outcome(virtual(before, **keys), virtual(after, **keys)) == verdict


def test_a_planted_convoy_shows():
    before = virtual_results()
    after = planted(before, 1.3, kernel="upto:fast-path", vcpus=16, metric=s.DIRTY, iteration=2)
    comparison = compare.compare(before, after)
    (worse,) = comparison.of("worse")
    assert (worse.key["kernel"], worse.key["vcpus"], worse.key["iteration"]) == ("upto:fast-path", 16, 2)
    assert worse.relative == pytest.approx(0.3)
    assert comparison.status == 1
    line = compare.verdict(comparison)
    assert line.startswith("worse 1 (most: dirty_memory_time on upto:fast-path, 16 vCPUs, +30.00 %)")
    text = printed(comparison)
    assert s.VIRTUAL in text
    assert "worse fast-path 16 dirty_memory_time 2 11.06 ms (10.95\u201311.17) 14.38 ms" in text
    back = compare.compare(after, before)
    assert (back.status, len(back.of("better")), back.of("worse")) == (0, 1, [])


def test_nothing_moves_between_a_file_and_itself():
    data = virtual_results(variants={"line*2": 1.2})
    comparison = compare.compare(data, data)
    assert (comparison.status, len(comparison.of("same"))) == (0, len(data["runs"]))
    assert printed(comparison) == ""
    assert compare.verdict(comparison) == f"worse 0, better 0, same {len(data['runs'])}"


def test_variants_of_the_model_are_compared_with_themselves():
    before = virtual_results(variants={"line*2": 1.2})
    comparison = compare.compare(before, planted(before, 2, model="line*2", metric=s.DIRTY))
    assert {change.key["model"] for change in comparison.of("worse")} == {"line*2"}
    assert "dirty_memory_time 2 line*2" in printed(comparison)


def test_a_lock_taken_for_read_instead_of_for_write_is_no_regression():
    def locks(writes, reads):
        return make_file(
            *(
                make_run(config="lockstat", metric=f"{metric}.dirty", unit="1", samples=[number], vcpus=2)
                for metric, number in (("mmu_lock_write_acquisitions", writes), ("mmu_lock_read_acquisitions", reads))
            )
        )

    comparison = compare.compare(locks(2048, 0), locks(0, 2050))
    assert [change.verdict for change in comparison.changes] == ["better", "changed"]
    assert comparison.status == 0 and "changed 1" in compare.verdict(comparison)
    assert compare.compare(locks(2048, 0), locks(0, 4096)).status == 1
    assert compare.compare(locks(0, 2048), locks(2048, 0)).status == 1


def test_emulated_wall_clock_is_not_compared():
    before = full_results()
    comparison = compare.compare(before, planted(before, 3.0, unit="s"))
    assert comparison.status == 0 and not comparison.of("worse")
    assert s.EMULATED in compare.verdict(comparison)
    assert all(change.key["unit"] == "1" and "contentions" not in change.key["metric"] for change in comparison.changes)
    assert compare.compare(before, planted(before, 2, metric="mmu_lock_write_acquisitions.dirty")).status == 1
    times = make_file(make_run())
    with pytest.raises(Fail, match="nothing in common that can be compared: .*not evidence"):
        compare.compare(times, times)


def test_wall_clock_of_real_hardware_is_compared():
    before, same, worse = (make_file(make_run(accel="here", samples=[number])) for number in (1.0, 1.04, 1.06))
    assert outcome(before, same) == "same" and outcome(before, worse) == "worse"
    assert s.WALL in printed(compare.compare(before, worse))


def test_times_of_other_models_are_not_compared():
    before, after = virtual_results(), virtual_results()
    after["host"] = copy.deepcopy(after["host"])
    after["host"]["vtime"]["parameters"]["line"]["ns"] = 80.0
    comparison = compare.compare(before, planted(after, 2, unit="s"))
    assert comparison.status == 0
    assert compare.MODELS in compare.verdict(comparison)
    assert compare.compare(before, planted(after, 2, unit="1")).status == 1


def test_what_only_one_file_has_is_told():
    before, after = virtual_results(("base",)), virtual_results(("base", "series"))
    assert f"only in the second file {len(before['runs'])}" in compare.verdict(compare.compare(before, after))


@pytest.mark.parametrize(
    "before, after, reason",
    [
        ([virtual([1.0])], [virtual([1.0], 2), virtual([1.0], 4)], "'vcpus' is '1' in one, '2', '4' in the other$"),
        ([virtual([1.0])], [make_file(make_run())], "'clock' is"),
        ([], [virtual([1.0])], "one has no runs"),
        (
            [virtual([1.0], 1), virtual([1.0], 2, kernel="series")],
            [virtual([1.0], 2), virtual([1.0], 1, kernel="series")],
            "no run of one agrees",
        ),
        ([virtual([1.0])], [virtual([1.0], unit="1")], "'unit' is 's' in one, '1' in the other"),
    ],
)
def test_files_with_nothing_in_common(before, after, reason):
    joined = [make_file(*(run for file in files for run in file["runs"])) for files in (before, after)]
    with pytest.raises(Fail, match=f"^A and B have nothing in common.*: {reason}"):
        compare.compare(*joined, ("A", "B"))


def test_repeated_runs_are_further_samples():
    runs = [make_run(clock="virtual", samples=[number]) for number in (1.0, 1.2)]
    assert outcome(make_file(*runs), virtual([1.1])) == "same"


def test_markup_in_a_file_is_text():
    def file(number):
        return virtual([number], args="[red]x[/]", kernel="[bold]")

    assert "[red]x[/]" in printed(compare.compare(file(1.0), file(2.0)))


def test_the_verb(tmp_path, capsys):
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    before = virtual_results()
    for path, data in zip(paths, (before, planted(before, 1.2, metric=s.DIRTY, vcpus=4))):
        results.save(path, data["host"], data["runs"], {"ids": {}, "command": "", "seconds": 0})
    assert cli.main(["report", "--compare", str(paths[0]), str(paths[1])]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("worse 4 (most: dirty_memory_time on ")
    assert cli.main(["report", "--compare", str(paths[0]), str(paths[0])]) == 0
    results.save(paths[1], {}, [], {"ids": {}, "command": "", "seconds": 0})
    capsys.readouterr()
    assert cli.main(["report", "--compare", *map(str, paths)]) == 1
    error = capsys.readouterr().err
    assert error == f"series: error: {paths[0]} and {paths[1]} have nothing in common: one has no runs\n"
    assert cli.main(["report", "--compare", str(paths[0])]) == 2


def test_exits_meanwhile_are_no_evidence_in_an_emulator():
    names = [f"{what}_exits_per_page" for what in ("read_merged", "write_merged", "read_while_merged")]
    data = make_file(*(make_run(test="change_pte_test", metric=metric, unit="1", samples=[1]) for metric in names))
    comparison = compare.compare(data, planted(data, 2))
    assert [change.key["metric"] for change in comparison.of("worse")] == names[:2]
    assert comparison.left_out == {compare.WALL: 1}
