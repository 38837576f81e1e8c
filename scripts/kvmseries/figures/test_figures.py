"""Texts, results and figures.yaml of a test's own: what is right passes, and each mistake is one line."""

import json
import re

import pytest
import yaml

from kvmseries import cli
from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from kvmseries.data import ids, repeat, results
from kvmseries.figures import compute, judge, text as texts

RUN = {
    "series": "v5.10",
    "arch": "arm64",
    "accel": "tcg",
    "clock": "virtual",
    "model": "nominal",
    "cpu": "neoverse-n1",
    "config": "normal",
    "params": [],
    "test": "dirty_log_perf_test",
    "args": "-b 1M -i 2",
    "iteration": 2,
    "metric": "dirty_memory_time",
    "unit": "s",
}
TODAY = {"base": "b" * 16, "series": "5" * 16}
README = """\
# Words

| vCPUs | base, ns | series/base | both, us |
| --: | --: | --: | --: |
| 1 | 1,000 | 0.50 | 256 and 128 |
| 4 | 4,000 | 0.13 | 1,024 and 128 |

With 4 vCPUs growth is 4.0 on base and 1.00 on the series, and the ratio is 0.13
to 0.50. A gain.

What gets slower: KVM_GET_DIRTY_LOG, 2.0 times.
"""
LETTER = """\
A letter.

  vCPUs              1      4
  base           1,000  4,000
  series           500    500

What gets slower: KVM_GET_DIRTY_LOG.
"""
FIGURES = {
    "results": {"dirty": {"file": "dirty.json", "minutes": 7, "command": "scripts/series bench v5.10"}},
    "pictures": ["Documentation/results/dirty.json --picture x.png"],
    "texts": {
        "README.md": {
            "tables": True,
            "notice": "With 4 vCPUs",
            "slower": "What gets slower",
            "entries": [
                {
                    "table": "| vCPUs | base, ns |",
                    "all": {"of": "dirty", "metric": "dirty_memory_time", "iteration": 2},
                    "columns": [
                        {"kernel": "base", "form": "page.0"},
                        {"kernel": "series", "by": {"kernel": "base"}, "form": "x.2"},
                        [{"kernel": "base", "form": "us.0"}, {"kernel": "series", "form": "us.0"}],
                    ],
                    "rows": [{"vcpus": 1}, {"vcpus": 4}],
                },
                {
                    "text": "growth is {a} on base and {b} on the series, and the ratio is {c}. A",
                    "all": {"of": "dirty", "metric": "dirty_memory_time", "iteration": 2, "vcpus": 4},
                    "a": {"kernel": "base", "by": {"vcpus": 1}, "form": "x.1"},
                    "b": {"kernel": "series", "by": {"vcpus": 1}, "form": "x.2"},
                    "c": {
                        "kernel": "series",
                        "by": {"kernel": "base"},
                        "over": {"vcpus": [1, 4]},
                        "op": "range",
                        "form": "x.2",
                    },
                },
                {
                    "text": "KVM_GET_DIRTY_LOG, {a} times",
                    "a": {
                        "of": "dirty",
                        "metric": "get_dirty_log_time",
                        "iteration": 2,
                        "vcpus": 4,
                        "kernel": "series",
                        "by": {"kernel": "base"},
                        "form": "x.1",
                    },
                },
            ],
        },
        "patches/letter": {
            "tables": True,
            "notice": "A letter",
            "width": 75,
            "entries": [
                {
                    "table": "vCPUs 1 4",
                    "all": {"of": "dirty", "metric": "dirty_memory_time", "iteration": 2, "form": "page.0"},
                    "columns": [{"vcpus": 1}, {"vcpus": 4}],
                    "rows": [{"kernel": "base"}, {"kernel": "series"}],
                }
            ],
        },
    },
    "worse": [{"metric": "get_dirty_log_time", "of": "all", "says": "KVM_GET_DIRTY_LOG"}],
}
# vCPUs -> us of 256 pages
BASE, SERIES = {1: 256, 4: 1024}, {1: 128, 4: 128}


def runs(samples=3, base=BASE, series=SERIES, more=()):
    found = [
        {**RUN, "kernel": kernel, "vcpus": vcpus, "samples": [us * 1e-6] * samples}
        for kernel, times in (("base", base), ("series", series))
        for vcpus, us in times.items()
    ]
    found += [
        {**RUN, "metric": "get_dirty_log_time", "kernel": kernel, "vcpus": 4, "samples": [us * 1e-6] * samples}
        for kernel, us in (("base", 10), ("series", 20))
    ]
    return found + list(more)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A project of a test's own, whose texts are right: place(name, text) changes one of its files, and
    place.figures(change) figures.yaml."""
    monkeypatch.setattr(ids, "today", lambda label, series, what: TODAY.get(label))
    monkeypatch.setattr(ids, "guest", lambda: "8" * 16)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(judge, "FILE", tmp_path / "Documentation/figures.yaml")
    monkeypatch.setattr(compute, "RESULTS", tmp_path / "Documentation/results")

    class Place:
        """The project."""

        root = tmp_path

        def __call__(self, name, content):
            write(tmp_path / name, content)

        def read(self, name):
            return (tmp_path / name).read_text(encoding="utf-8")

        def results(self, made=None, **others):
            results.save(
                tmp_path / "Documentation/results/dirty.json",
                {},
                runs(**others),
                made
                or {
                    "ids": {"kernels": TODAY, "guest": "8" * 16},
                    "command": "scripts/series bench v5.10",
                    "seconds": 61,
                },
            )

        def figures(self, change=lambda data: None):
            data = yaml.safe_load(yaml.safe_dump(FIGURES))
            change(data)
            self("Documentation/figures.yaml", yaml.safe_dump(data))

        def judge(self, where="README.md", strict=False):
            data = judge.load(tmp_path / "Documentation/figures.yaml")
            files = compute.Files(data["results"], tmp_path / "Documentation/results")
            found = judge.judge(data, files, where, tmp_path, strict)
            return found, found.problems + judge.unsaid(data, files, found, tmp_path)

        def run(self, *options):
            return cli.main(["figures", *options])

    made = Place()
    made("README.md", README)
    made("patches/letter", LETTER)
    made.results()
    made.figures()
    return made


def test_a_text_that_is_right_has_no_problem(place):
    for where in ("README.md", "patches/letter"):
        judged, problems = place.judge(where, strict=True)
        assert problems == []
        assert judged.better == place.read(where)
    assert len(judged.rows) == 4


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("| 1 | 1,000 |", "| 1 | 1,001 |", "says 1,001, the results say 1,000"),
        ("256 and 128", "256 and 12", "says 12, the results say 128"),
        ("4.0 on base", "4.1 on base", "says 4.1, the results say 4.0"),
        ("0.13\nto 0.50", "0.13 to 0.51", "says 0.13 to 0.51, the results say 0.13 to 0.50"),
        ("| 256 and 128 |", "| 256 |", "has 1 figures, its entry 2"),
        ("growth is 4.0", "growth were 4.0", "stands there 0 times, not once"),
        ("| 4 | 4,000 | 0.13 | 1,024 and 128 |\n", "", "has 1 rows, its entry 2"),
        (
            "A gain.\n",
            "A gain.\n\n| a | b |\n|---|---|\n| 7 | x |\n",
            "no entry of figures.yaml lists the table of '| 7 | x |'",
        ),
        ("| 256 and 128 |\n", "| 256 and 128 | 9 |\n", "the cell"),
        ("What gets slower:", "What is slower:", "no paragraph begins with 'What gets slower'"),
    ],
)
def test_a_changed_text_is_found(place, old, new, problem):
    assert README.count(old) == 1
    place("README.md", README.replace(old, new))
    assert [line for line in place.judge()[1] if problem in line and line.startswith("README.md: ")]


def test_a_table_without_columns_is_one_line(place):
    place.figures(lambda data: data["texts"]["README.md"]["entries"][0].pop("columns"))
    assert [
        line
        for line in place.judge()[1]
        if line.startswith("README.md: the table '| vCPUs | base, ns |' has no columns")
    ]


def test_a_number_of_a_cover_letter_s_table_that_is_not_listed_is_found(place):
    place(
        "patches/letter",
        LETTER.replace("  series           500    500\n", "  series           500    500\n\n  more    1    2\n"),
    )
    assert place.judge("patches/letter")[1] == [
        "patches/letter: no entry of figures.yaml lists the table of 'more    1    2'"
    ]
    place("patches/letter", LETTER.replace("  series           500    500", "  series           500    500      7"))
    assert place.judge("patches/letter")[1]


def test_changed_results_are_put_into_the_texts(place, capsys):
    place.results(base={1: 256, 4: 12800}, series={1: 64, 4: 64})
    assert place.run() == 1
    assert place.run("--write") == 0
    out = capsys.readouterr().out
    assert "README.md: read 'growth is {a} on base" in out and "4.0 -> 50.0" in out
    assert "patches/letter: 3 cells of tables and 0 figures of sentences are new" in out
    assert "| 4 | 50,000 | 0.01 | 12,800 and 64 |" in place.read("README.md")
    # Two blanks stay between columns, which stay where they are if there is room.
    assert place.read("patches/letter").splitlines()[3:5] == [
        "  base           1,000  50,000",
        "  series           250    250",
    ]
    assert place.run() == 0


def test_one_round_passes_only_if_the_text_says_so_and_never_where_all_is_checked(place):
    place.results(samples=1)
    _, problems = place.judge()
    assert problems == [
        "README.md: what it says of its results' state is not true: it should have 'Generated: of the 1 "
        "results file that is quoted here, 1 has fewer than 3 rounds "
        "(`scripts/series figures --measure`).'"
    ]
    assert place.run("--write") == 0
    assert place.judge()[1] == [] == place.judge("patches/letter")[1]
    assert "README.md: dirty.json has fewer than 3 rounds" in place.judge(strict=True)[1]
    lines = place.read("patches/letter").splitlines()
    # Readers of a letter do not have the tool.
    assert lines[2:4] == ["Of the 1 result that is quoted here, 1 has fewer than 3 rounds.", ""]
    place("patches/letter", "\n".join(lines).replace("Of the 1 result ", "Generated: of the 1 results file ") + "\n")
    assert "is not true: it should have 'Of the 1 result that" in place.judge("patches/letter")[1][0]
    place.results()
    assert place.judge()[1] == ["README.md: the paragraph about its results' state is out of date"]
    assert place.run("--write") == 0
    assert (place.read("README.md"), place.read("patches/letter")) == (README, LETTER)


@pytest.mark.parametrize(
    "kernels, words",
    [
        ({"base": "b" * 16, "series": "0" * 16}, "1 is of an older version of the source"),
        ({"base": None, "series": "5" * 16}, "1 does not record which version of the source it measured"),
        ({}, "1 does not record which version"),
    ],
)
def test_an_old_id_must_be_said(place, kernels, words):
    place.results({"ids": {"kernels": kernels}, "command": "", "seconds": 0})
    assert words in place.judge()[1][0]
    assert place.run("--write") == 0
    assert place.judge()[1] == []
    assert "of the source" in place.judge(strict=True)[1][0]


def test_a_file_of_an_older_schema_is_of_an_unknown_state(place):
    place("Documentation/results/dirty.json", json.dumps({"schema": 2, "host": {}, "runs": runs()}))
    assert "1 does not record which version of the source it measured" in place.judge()[1][0]


def test_what_got_worse_must_be_said(place):
    place("README.md", README.replace("What gets slower: KVM_GET_DIRTY_LOG, 2.0 times.\n", "What gets slower: no.\n"))
    place.figures(lambda data: data["texts"]["README.md"]["entries"].pop())
    wanted = "what gets slower does not say that get_dirty_log_time is 2.00 times base's with 4 vCPUs (dirty.json)"
    assert place.judge()[1] == [f"README.md: {wanted}: it should have 'KVM_GET_DIRTY_LOG'"]
    place.figures(lambda data: (data["texts"]["README.md"]["entries"].pop(), data.update(worse=[])))
    assert place.judge()[1] == [f"README.md: {wanted}"]
    place.figures(
        lambda data: (
            data["texts"]["README.md"]["entries"].pop(),
            data.update(worse=[{"metric": "get_.*", "of": ["dirty"], "why": "by chance"}]),
        )
    )
    assert place.judge()[1] == []


def run_of(metric, base, series, **others):
    return [
        {**RUN, "metric": metric, "vcpus": 4, "kernel": kernel, "samples": [value] * 3, **others}
        for kernel, value in (("base", base), ("series", series))
    ]


@pytest.mark.parametrize(
    "more, found",
    [
        (run_of("guest_stall", 1.0, 1.09), set()),
        (run_of("guest_stall", 1.0, 1.2), {"guest_stall"}),
        (run_of("sparse_delete_time", 1.0, 1.2), {"sparse_delete_time"}),
        (run_of("write_p99.discard", 1.0, 1.09), set()),
        (run_of("completed", 1, 0, unit="1"), set()),
        (run_of("passes.running", 100, 80, unit="1"), {"passes.running"}),
        (run_of("tlbi_broadcast.dirty", 10, 11, unit="1"), set()),
        (run_of("tlbi_broadcast.dirty", 10, 30, unit="1"), {"tlbi_broadcast.dirty"}),
        (run_of("tlbi_local.dirty", 0, 500, unit="1"), {"tlbi_local.dirty"}),
        (run_of("tlbi_local.dirty", 0, 500, unit="1") + run_of("tlbi_broadcast.dirty", 500, 0, unit="1"), set()),
        (run_of("a_count_of_no_kind", 10, 300, unit="1"), set()),
        (run_of("guest_stall", 1.0, 1.2, model="line*2"), {"guest_stall"}),
        (run_of("guest_stall", 1.0, 1.09, model="line*2"), set()),
    ],
)
def test_what_is_worse_than_base(place, more, found):
    place.results(more=more)
    files = compute.Files(FIGURES["results"], place.root / "Documentation/results")
    assert {metric for metric, _ in judge.worse(files, "dirty")} == {"get_dirty_log_time"} | found


def test_a_variant_of_the_model_in_which_something_got_worse_is_named(place):
    place.results(more=run_of("guest_stall", 1.0, 1.2, model="line*2"))
    assert place.judge()[1] == [
        "README.md: what gets slower does not say that guest_stall is 1.20 times base's with 4 vCPUs "
        "(dirty.json, model line*2)"
    ]


STEP = [
    {**RUN, "metric": metric, "kernel": "upto:half", "vcpus": 4, "samples": [value] * 3}
    for metric, value in (("populate_memory_time", 300e-6), ("dirty_memory_time", 1e-3))
] + [{**RUN, "metric": "populate_memory_time", "kernel": "base", "vcpus": 4, "samples": [200e-6] * 3}]


def test_what_got_worse_with_a_step_must_be_said_where_the_step_is_quoted(place):
    place.results(more=STEP)
    assert place.judge()[1] == []
    quote = {"of": "dirty", "metric": "dirty_memory_time", "iteration": 2, "kernel": "upto:half", "vcpus": 4}
    place("README.md", README + "\nHalf of it takes 1,000 us.\n")
    place.figures(
        lambda data: data["texts"]["README.md"]["entries"].append(
            {"text": "Half of it takes {a} us", "a": {**quote, "form": "us.0"}}
        )
    )
    wanted = "what gets slower does not say that populate_memory_time of upto:half is 1.50 times base's with 4 vCPUs"
    assert place.judge()[1][-1] == f"README.md: {wanted} (dirty.json)"
    for kernel, problems in (("upto:half", 0), ("series", 1)):
        entry = {"metric": "populate_memory_time", "of": ["dirty"], "kernel": kernel, "why": "it is a half"}
        data = judge.load(place.root / "Documentation/figures.yaml")
        data["worse"].append(entry)
        files = compute.Files(data["results"], place.root / "Documentation/results")
        assert len(judge.unsaid(data, files, judge.judge(data, files, "README.md", place.root), place.root)) == problems


@pytest.mark.parametrize(
    "figure, reason",
    [
        (
            {"metric": "no_such_time"},
            "dirty.json has no run of no_such_time (kernel base, vcpus 4, iteration 2): it was not",
        ),
        ({"vcpus": None, "iteration": 2}, "has no run"),
        ({"of": "other"}, "there are no results 'other': there is dirty"),
        ({"odd": 1}, "unknown key 'odd'"),
        ({"op": "mean"}, "unknown operation 'mean'"),
        ({"form": "km.0"}, "unknown form"),
        ({"form": "us.x"}, "unknown form 'us.x'"),
        ({"over": {"vcpus": [1, 4]}}, "'over' needs op min, max or range"),
        ({"published": "none"}, "published.yaml has no column 'none'"),
        ({"published": "zhang2022-base", "as": "height"}, "unknown comparison 'height'"),
        ({"published": "upton2022-series", "vcpus": 3}, "has no run"),
    ],
)
def test_a_figure_that_cannot_be_is_one_line(place, figure, reason):
    files = compute.Files(FIGURES["results"], place.root / "Documentation/results")
    good = {"of": "dirty", "metric": "dirty_memory_time", "kernel": "base", "vcpus": 4, "iteration": 2, "form": "us.0"}
    assert compute.text(compute.compute(files, good), "us.0") == "1,024"
    with pytest.raises(Fail, match=re.escape(reason)) as caught:
        compute.compute(files, {**good, **figure})
    assert "\n" not in str(caught.value)


def test_one_that_names_two_runs_must_say_more(place):
    place.results(more=[{**RUN, "kernel": "base", "vcpus": 4, "params": ["x"], "samples": [1, 1, 1]}])
    assert (
        "dirty.json has 2 runs of dirty_memory_time (iteration 2, vcpus 4, kernel base): say more"
        in place.judge()[1][0]
    )


def test_sums_counts_by_another_and_variants(place):
    place.results(
        more=[
            *run_of("syncs", 10, 5, unit="1"),
            *run_of("kicks", 20, 5, unit="1"),
            *run_of("dirty_memory_time", 2048e-6, 256e-6, model="line*2"),
        ]
    )
    files = compute.Files(FIGURES["results"], place.root / "Documentation/results")

    def text(form, **figure):
        figure = {"of": "dirty", "kernel": "series", "vcpus": 4, "iteration": 2, "form": form, **figure}
        return compute.text(compute.compute(files, figure), form)

    assert text("x.1", metric="kicks", per={"metric": "syncs"}) == "1.0"
    assert text("x.2", metric="kicks", per={"metric": "syncs"}, by={"kernel": "base"}) == "0.50"
    assert text("us.0", metric=["dirty_memory_time", "get_dirty_log_time"]) == "148"
    assert text("us.0", metric="dirty_memory_time", over={"model": "all"}, op="range") == "128 to 256"
    assert text("us.0", metric="dirty_memory_time", over={"model": "all"}, op="max") == "256"
    assert text("+%.0", metric="get_dirty_log_time", by={"kernel": "base"}) == "+100"
    assert text("vmpage.0", metric="dirty_memory_time") == "125"
    growth = text("+%.1", metric="dirty_memory_time", kernel="base", published="zhang2022-base")
    assert growth == f"{(4 / (2.503 / 0.926) - 1) * 100:+.1f}"
    page = text("+%.1", metric="dirty_memory_time", kernel="base", published="zhang2022-base", **{"as": "page"})
    assert page == f"{(4000 / (2.503 / 524288 * 1e9) - 1) * 100:+.1f}"


@pytest.mark.parametrize(
    "number, form, wanted",
    [
        (0.0000195, "us.a", "19.5"),
        (0.00002, "us.a", "20"),
        (0, "us.a", "0"),
        (5222.5, "x.0", "5,223"),
        (0.97, "-%.0", "-3"),
        (1.0, "+%.0", "0"),
        (0.9999, "+%.0", "0"),
        (1.087, "-%.0", "9"),
        (0.0541, "x.r", "0.054"),
        (11.28, "x.r", "11.3"),
    ],
)
def test_how_a_number_is_written(number, form, wanted):
    assert compute.write(number, form) == wanted


@pytest.mark.parametrize(
    "content, reason",
    [
        ("{", "is not a results file: it is not JSON"),
        ('{"schema": 9, "host": {}, "runs": []}', "has schema 9"),
        (None, "cannot read"),
    ],
)
def test_a_results_file_that_is_none_is_one_line(place, content, reason, capsys):
    file = place.root / "Documentation/results/dirty.json"
    if content is None:
        file.unlink()
    else:
        file.write_text(content, encoding="utf-8")
    before = place.read("README.md")
    assert place.run("--write") == 1
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 1 and reason in error[0] and error[0].startswith("series: error: ")
    assert place.read("README.md") == before


def test_results_that_are_cut_short_are_no_results(place):
    file = place.root / "Documentation/results/dirty.json"
    file.write_bytes(file.read_bytes()[:-400])
    assert "it is not JSON" in place.judge()[1][0]


@pytest.mark.parametrize(
    "content, reason",
    [
        ("[", "cannot read"),
        ("3", "figures.yaml: 3 is not of type 'object'"),
        ("texts: {}", "figures.yaml: 'results' is a required property"),
        ("results: {}", "figures.yaml: 'texts' is a required property"),
        (
            "results: {}\ntexts: {}\nodd: 1",
            "figures.yaml: Additional properties are not allowed ('odd' was unexpected)",
        ),
        ("results: []\ntexts: {}", "figures.yaml: results: [] is not of type 'object'"),
        ("results: {}\ntexts: {x: {odd: 1}}", "texts.x: Additional properties are not allowed ('odd' was unexpected)"),
        ("results: {}\ntexts: {x: {}}", "texts.x: 'entries' is a required property"),
        (
            "results: {a: {odd: 1}}\ntexts: {}",
            "results.a: Additional properties are not allowed ('odd' was unexpected)",
        ),
        ("results: {a: {}}\ntexts: {}", "results.a: 'file' is a required property"),
        ("results: {}\ntexts: {}\nworse: [{metric: x, says: x}]", "worse[0]: 'of' is a required property"),
        ("results: {}\ntexts: {}\nworse: [{of: x, says: x}]", "worse[0]: 'metric' is a required property"),
        ("results: {}\ntexts: {}\nworse: [{metric: x, of: x}]", "worse[0]: 'says' is a required property: or 'why'"),
        ("results: {}\ntexts: {}\nworse: [{metric: x, of: x, why: 1}]", "worse[0].why: 1 is not of type 'string'"),
    ],
)
def test_a_list_of_figures_that_is_none_is_one_line(place, content, reason):
    place("Documentation/figures.yaml", content)
    with pytest.raises(Fail, match=re.escape(reason)) as caught:
        judge.load(place.root / "Documentation/figures.yaml")
    assert "\n" not in str(caught.value)


def test_a_text_that_is_not_there(place):
    (place.root / "patches/letter").unlink()
    assert place.judge("patches/letter")[1] == ["cannot read patches/letter: No such file or directory"]


def test_a_patch_is_found_by_its_name_whatever_its_number(place):
    place.figures(
        lambda data: data["texts"].update(
            {
                "patches/*-A-patch.patch": {
                    "entries": [
                        {
                            "text": "takes {a} ns",
                            "a": {
                                "of": "dirty",
                                "metric": "dirty_memory_time",
                                "iteration": 2,
                                "kernel": "base",
                                "vcpus": 4,
                                "form": "page.0",
                            },
                        }
                    ]
                }
            }
        )
    )
    assert place.judge("patches/*-A-patch.patch")[1] == ["patches/*-A-patch.patch is 0 files, not one"]
    # Thousands as the text writes them.
    place("patches/0007-A-patch.patch", "It takes 4000 ns.\n")
    assert place.judge("patches/*-A-patch.patch")[1] == []
    place("patches/0007-A-patch.patch", "It takes 1234 ns.\n")
    assert "says 1234, the results say 4000" in place.judge("patches/*-A-patch.patch")[1][0]
    assert place.run("--write") == 0
    assert place.read("patches/0007-A-patch.patch") == "It takes 4000 ns.\n"


def test_all_figures_are_printed(place, capsys):
    assert place.run() == 0
    out = capsys.readouterr().out
    assert out.count("same") == 16 and "README.md" in out and "growth is {a} on base" in out


def test_commands_that_measure_again(place, capsys):
    place.results(samples=1)
    assert place.run("--write") == 0
    capsys.readouterr()
    assert place.run("--measure") == 0
    assert capsys.readouterr().out.splitlines() == [
        "# dirty.json: rounds; 1 min",
        "scripts/series bench v5.10 --json Documentation/results/dirty.json",
        "scripts/series report --table none Documentation/results/dirty.json --picture x.png",
        "scripts/series figures --write",
        "# 1 minutes in all",
    ]
    place.results()
    assert place.run("--write") == place.run("--measure") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Nothing is old, and all was measured in enough rounds."


def test_a_number_is_not_a_part_of_a_longer_one():
    with pytest.raises(Fail, match="0 times"):
        texts.places("takes 12.5 us", [{"text": "takes {a}", "a": {}}, {"text": "takes {a} us.", "a": {}}], "x")
    assert texts.places("takes 12.5", [{"text": "takes {a}", "a": {}}], "x")[0].there == "12.5"


def test_what_does_not_repeat_is_not_quoted_but_its_rounds_are(place):
    """The rounds of the series with 4 vCPUs are 128 to 160 us: the median is refused, and a ratio of it."""
    unsteady = [
        {**run, "samples": [128e-6, 160e-6, 130e-6]}
        if (run["kernel"], run["vcpus"], run["metric"]) == ("series", 4, "dirty_memory_time")
        else run
        for run in runs()
    ]
    results.save(
        place.root / "Documentation/results/dirty.json",
        {},
        repeat.mark(unsteady),
        {"ids": {"kernels": TODAY, "guest": "8" * 16}, "command": "scripts/series bench v5.10", "seconds": 61},
    )
    found = [problem for problem in place.judge()[1] if "does not repeat" in problem]
    assert len(found) == 4  # two cells of the table, growth, a range of ratios
    assert found[0].endswith(
        "dirty.json: dirty_memory_time of series with 4 vCPUs does not repeat from round to round "
        "(0.000128 s to 0.000160 s): quote its rounds (op: rounds), or measure again"
    )
    data = judge.load(place.root / "Documentation/figures.yaml")
    files = compute.Files(data["results"], place.root / "Documentation/results")
    figure = {
        "of": "dirty",
        "metric": "dirty_memory_time",
        "iteration": 2,
        "kernel": "series",
        "vcpus": 4,
        "op": "rounds",
    }
    assert compute.text(compute.compute(files, figure), "us.0") == "128 to 160"
    assert compute.text(compute.compute(files, {**figure, "form": "page.0"}), "page.0") == "500 to 625"


@pytest.mark.parametrize("more", [{"by": {"kernel": "base"}}, {"over": {"vcpus": [1, 4]}}, {"published": "x"}])
def test_rounds_are_of_a_figure_of_its_own(place, more):
    data = judge.load(place.root / "Documentation/figures.yaml")
    files = compute.Files(data["results"], place.root / "Documentation/results")
    figure = {
        "of": "dirty",
        "metric": "dirty_memory_time",
        "iteration": 2,
        "kernel": "series",
        "vcpus": 4,
        "op": "rounds",
    }
    assert compute.text(compute.compute(files, figure), "us.0") == "128"
    with pytest.raises(Fail, match="op rounds is for a figure of its own"):
        compute.compute(files, {**figure, **more})


def not_listed(data, files, text):
    """What is worse than base in any results, by judge.worse(), and is not in a text: neither the words of its entry nor,
    where the entry has a reason instead, the metric's name."""
    words = " ".join(text.split())
    return [
        f"{name}: {metric}"
        for name in data["results"]
        for metric, kernel in judge.worse(files, name)
        if not any(
            (entry["says"] if "says" in entry else f"`{metric}`") in words
            for entry in data["worse"]
            if re.fullmatch(entry["metric"], metric)
            and (entry["of"] == "all" or name in entry["of"])
            and entry.get("kernel", kernel) == kernel
        )
    ]


def test_each_text_with_tables_says_what_gets_slower():
    """README, the index of results, cover letters: those whose numbers in tables must all be figures."""
    texts = judge.load()["texts"]
    quoting = [name for name, text in texts.items() if text.get("tables")]
    assert len(quoting) > 10
    assert [name for name in quoting if not texts[name].get("slower")] == []


def test_the_list_of_what_gets_slower_is_full():
    data = judge.load()
    text = (
        (judge.FILE.parent / "results" / "README.md")
        .read_text(encoding="utf-8")
        .partition("\n## What gets slower\n")[2]
    )
    assert not_listed(data, compute.Files(data["results"]), text) == []


def test_negative_control_a_list_that_is_not_full(place):
    place.results(more=run_of("guest_stall", 1.0, 1.2))
    data = yaml.safe_load(yaml.safe_dump(FIGURES))
    files = compute.Files(data["results"], place.root / "Documentation/results")
    said = "KVM_GET_DIRTY_LOG is slower"
    assert not_listed(data, files, said) == ["dirty: guest_stall"]
    data["worse"].append({"metric": "guest_.*", "of": ["dirty"], "why": "by chance"})
    assert not_listed(data, files, said) == ["dirty: guest_stall"]
    assert not_listed(data, files, "`guest_stall`") == ["dirty: get_dirty_log_time"]
    assert not_listed(data, files, f"{said}, `guest_stall`") == []
