import re

import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import committed
from kvmseries.data import benchmarks, repeat, results
from kvmseries.report.conftest import make_run

HUGETLB = "-b 2M -s anonymous_hugetlb_2mb"


def timed(samples, **change):
    """A run of virtual time."""
    return make_run(**{"clock": "virtual", "args": "-s anonymous", "samples": samples, **change})


@pytest.mark.parametrize(
    "run, repeats",
    [
        (timed([1.0, 1.019]), True),
        (timed([1.0, 1.019, 1.01]), True),
        (timed([1e-6, 2e-6]), True),
        (timed([0.0, 0.0]), True),
        (timed([1e-6, 2e-5], metric="populate_memory_time"), True),
        (timed([1e-6, 2e-5], metric="fault_memory_time"), True),
        (timed([1.0, 1.049], vcpus=2), True),
        (timed([1.0, 1.019, 1.0, 1.049], vcpus=16), True),
        (timed([1.021, 1.0]), False),
        (timed([1.0, 1.0, 1.0, 1.0, 1.021]), False),
        (timed([1e-6, 2.2e-5]), False),
        (timed([1.0, 1.051], vcpus=2), False),
        (timed([1.0, 1.0, 1.2, 1.3, 1.4], vcpus=64), False),
        (timed([1.0, 2.0], metric="populate_memory_time"), False),
        (timed([1.0, 2.0], args=HUGETLB), False),
        # What is not judged.
        (timed([1.0]), None),
        (timed([1, 2], metric="get_dirty_log_time"), None),
        (timed([1, 2], model="line*2"), None),
        (timed([1, 2], clock="wall", model=""), None),
    ],
)
def test_whether_rounds_repeat(run, repeats):
    assert repeat.judge(run) is repeats
    assert repeat.failed([run]) == ([run] if repeats is False else [])


def test_a_complaint_says_what_differs_and_how_many_more_there_are():
    run = timed([9.0, 1.0, 1.021], vcpus=2)
    beginning = "virtual time does not repeat: dirty_memory_time of base with 2 vCPUs is 1.000000 s to 9.000000 s"
    for more, words in ((1, ""), (2, "; 1 more time does not"), (3, "; 2 more times do not")):
        assert repeat.complaint([run] * more) == f"{beginning}{words}; measure again with --retry 2"
    assert "with 1 vCPU is 0.000001 s to 0.000022 s" in repeat.complaint([timed([1e-6, 2.2e-5])])


def test_what_differs_by_chance_is_marked_and_does_not_fail():
    run = timed([1.0, 2.0], metric="populate_memory_time", args=HUGETLB)
    assert repeat.mark([dict(run)])[0]["repeats"] is False
    assert not repeat.failed([run])
    assert repeat.chance(run).metrics == ("populate_memory_time",)
    for change in ({"args": "-b 2M"}, {"metric": "dirty_memory_time"}, {"test": "change_pte_test"}):
        assert repeat.chance({**run, **change}) is None


def test_every_chance_of_bench_yaml_has_a_reason_and_says_whether_it_was_shown():
    entries = [one for all_ in repeat._entries().values() for one in all_]
    assert entries
    for one in entries:
        assert len(one.why) > 40 and one.shown
        assert ("not shown" in str(one)) == (one.shown == repeat.UNEXPLAINED)


@pytest.mark.parametrize(
    "entry, reason",
    [
        ("{args: x, metrics: [populate_memory_time], why: because}", "'shown' is a required property"),
        ("{args: x, metrics: [populate_memory_time], why: because, shown: ''}", "''.*"),
        ("{args: x, metrics: [], why: because, shown: seen}", "\\[\\].*"),
        ("populate_memory_time", "'populate_memory_time' is not of type 'object'"),
        (
            "{args: x, metrics: [get_dirty_log_time], why: because, shown: seen}",
            "'get_dirty_log_time' is not one of .*: other metrics are not judged, and need no reason",
        ),
    ],
)
def test_a_chance_without_a_reason_is_refused(monkeypatch, tmp_path, entry, reason):
    rest = "  timeout: 1\n  args: {}\n"
    (tmp_path / "bench.yaml").write_text(f"some_test:\n{rest}  chance:\n    - {entry}\n", encoding="utf-8")
    monkeypatch.setattr(paths, "TESTS", tmp_path)
    repeat._entries.cache_clear()
    try:
        with pytest.raises(Fail, match=f"bench.yaml: some_test.chance\\[0\\][^:]*: {reason}$"):
            repeat.chance(timed([1]))
    finally:
        repeat._entries.cache_clear()


def test_a_chance_may_be_of_any_metric_that_is_judged():
    form = yaml.safe_load(benchmarks.FORM.read_text(encoding="utf-8"))["$defs"]
    chance = form["test"]["properties"]["chance"]["items"]
    assert set(chance["properties"]["metrics"]["items"]["enum"]) == set(repeat.JUDGED)
    assert set(chance["required"]) == set(chance["properties"]) == set(repeat.Chance.__dataclass_fields__)


def test_new_samples_replace_those_of_the_same_run_alone():
    runs = repeat.mark([timed([1.0, 2.0]), timed([3.0, 3.0], kernel="series"), timed([1.0, 2.0], vcpus=2)])
    repeat.replace(runs, [timed([5.0, 5.0]), timed([7.0], kernel="other")])
    found = [(run["samples"], run["earlier"]) for run in runs]
    assert found == [([5.0, 5.0], [[1.0, 2.0]]), ([3.0, 3.0], []), ([1.0, 2.0], [])]
    repeat.replace(runs, [timed([6.0, 6.0])])
    assert runs[0]["earlier"] == [[1.0, 2.0], [5.0, 5.0]]
    assert repeat.mark(runs)[0]["repeats"] is True and len(runs[0]["earlier"]) == 2


def differing(files):
    """The rows of the table of results.md: the times whose rounds differ, of {name of a file: its runs}."""
    return [
        f"| `{name}` | {run['kernel']} | {run['vcpus']} | `{run['metric']}`"
        + (f", iteration {run['iteration']}" if run["iteration"] else "")
        + f" | {' / '.join(f'{sample * 1e6:,.0f}' for sample in run['samples'])} | {'yes' if repeat.chance(run) else 'no'} |"
        for name, runs in sorted(files.items())
        for run in repeat.mark(runs)
        if run["repeats"] is False
    ]


def test_results_md_lists_the_committed_times_that_do_not_repeat():
    folder = paths.ROOT / "Documentation"
    rows = differing(
        {path.name: results.load(path)["runs"] for path in committed() if not path.name.startswith(("soak-", "hunt-"))}
    )
    text = (folder / "results.md").read_text(encoding="utf-8")
    assert rows == [line for line in text.splitlines() if re.match(r"\| `\S+\.json` \|", line)], "\n".join(rows)


def test_negative_control_a_time_that_does_not_repeat_has_a_row():
    runs = [timed([0.001, 0.002], vcpus=2, iteration=1), timed([1.0, 1.0]), timed([1.0, 2.0], metric="other")]
    runs.append(timed([0.1, 0.2], metric="populate_memory_time", args=HUGETLB))
    assert differing({"a.json": runs}) == [
        "| `a.json` | base | 2 | `dirty_memory_time`, iteration 1 | 1,000 / 2,000 | no |",
        "| `a.json` | base | 1 | `populate_memory_time` | 100,000 / 200,000 | yes |",
    ]
