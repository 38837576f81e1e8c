"""Templates, results and figures.yaml of a test's own: what is right passes, and each mistake is one line."""

import re

import pytest
import yaml

from kvmseries import cli
from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import committed, write
from kvmseries.data import ids, repeat, results
from kvmseries.figures import query, slower, texts
from kvmseries.report.conftest import make_run

RUN = make_run(clock="virtual", cpu="neoverse-n1", args="-b 1M -i 2", iteration=2)
TODAY = {"base": "b" * 16, "series": "5" * 16, "upto:half": "a" * 16}
README = """\
{% set slower = ["What gets slower"] %}
# Words

| vCPUs | base, ns | series/base | both, us |
| --: | --: | --: | --: |
{% for vcpus in [1, 4] %}
| {{ vcpus }} | {{ fig("dirty", "dirty_memory_time/2", "base", vcpus, form="page.0") }} | \
{{ fig("dirty", "dirty_memory_time/2", "series", vcpus, form="x.2", by="base") }} | \
{{ fig("dirty", "dirty_memory_time/2", "base", vcpus, form="us.0") }} and \
{{ fig("dirty", "dirty_memory_time/2", "series", vcpus, form="us.0") }} |
{% endfor %}

{{ notice() }}With 4 vCPUs growth is {{ fig("dirty", "dirty_memory_time/2", "base", 4, form="x.1", by=1) }} on base. The ratio is \
{{ fig("dirty", "dirty_memory_time/2", "series", form="x.2", by="base", over={"vcpus": [1, 4]}, op="range", part=0) }}
to {{ fig("dirty", "dirty_memory_time/2", "series", form="x.2", by="base", over={"vcpus": [1, 4]}, op="range", part=1) }}.

What gets slower: KVM_GET_DIRTY_LOG, {{ fig("dirty", "get_dirty_log_time/2", "series", 4, form="x.1", by="base") }} times.
"""
MADE = """\
# Words

| vCPUs | base, ns | series/base | both, us |
| --: | --: | --: | --: |
| 1 | 1,000 | 0.50 | 256 and 128 |
| 4 | 4,000 | 0.13 | 1,024 and 128 |

With 4 vCPUs growth is 4.0 on base. The ratio is 0.13
to 0.50.

What gets slower: KVM_GET_DIRTY_LOG, 2.0 times.
"""
PATCH = """\
It takes {{ fig("dirty", "dirty_memory_time/2", "base", 4, form="page.0", plain=true) }} ns.

  vCPUs              1      4
  base{{ fig("dirty", "dirty_memory_time/2", "base", 1, form="page.0", width=16) }}\
{{ fig("dirty", "dirty_memory_time/2", "base", 4, form="page.0", width=7) }}
"""
MAILED = """\
From: Somebody <x@y>
Subject: [PATCH] A patch

It takes 4000 ns.

  vCPUs              1      4
  base           1,000  4,000
---
 file | 2 +-
"""
FIGURES = {
    "results": {"dirty": {"file": "dirty.json", "command": "scripts/series bench v5.10"}},
    "pictures": ["Documentation/results/dirty.json --picture x.png"],
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
    """A project of a test's own, whose texts are right: place(name, text) changes one of its files."""
    monkeypatch.setattr(ids, "today", lambda label, series, what: TODAY.get(label))
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(texts, "FILE", tmp_path / "Documentation/figures.yaml")
    monkeypatch.setattr(texts, "FOLDER", tmp_path / "Documentation/texts")
    monkeypatch.setattr(query, "RESULTS", tmp_path / "Documentation/results")

    class Place:
        """The project."""

        root = tmp_path

        def __call__(self, name, content):
            write(tmp_path / name, content)

        def template(self, content, name="README.md"):
            self(f"Documentation/texts/{name}.in", content)

        def read(self, name="README.md"):
            return (tmp_path / name).read_text(encoding="utf-8")

        def results(self, kernels=None, **others):
            results.save(
                tmp_path / "Documentation/results/dirty.json",
                {},
                repeat.mark(runs(**others)),
                {"ids": {"kernels": TODAY if kernels is None else kernels}, "command": "x", "seconds": 61},
            )

        def figures(self, **changes):
            self("Documentation/figures.yaml", yaml.safe_dump({**FIGURES, **changes}))

        def files(self):
            return query.Files(FIGURES["results"])

        def problems(self, name="README.md"):
            data = texts.load()
            return texts.problems(data, self.files(), texts.make(self.files(), f"{name}.in"))

        def run(self, *options):
            return cli.main(["report", "--texts", *options])

        def fig(self, *words, **more):
            """What a template makes of fig()."""
            made = texts.Text("x")
            found = texts._figure(self.files(), made, *words, *([None] * (4 - len(words))), more)
            return found.strip("\ue000\ue001")

    made = Place()
    made("README.md", MADE)
    made("patches/0007-A-patch.patch", MAILED)
    made.template(README)
    made.template(PATCH, "patches/A-patch.patch")
    made.results()
    made.figures()
    return made


@pytest.mark.parametrize(
    "old, new",
    [("| 1 | 1,000 |", "| 1 | 1,001 |"), ("256 and 128", "256 and 12"), ("to 0.50", "to 0.51"), ("# W", "# V")],
)
def test_negative_control_a_text_that_was_changed_by_hand(place, capsys, old, new):
    assert MADE.count(old) == 1
    place("README.md", MADE.replace(old, new))
    assert place.run("--check") == 1
    assert "README.md is not what Documentation/texts and the results make: it says '" in capsys.readouterr().err
    assert place.read() == MADE.replace(old, new)
    assert place.run() == 0 and place.read() == MADE


def test_negative_control_results_that_have_changed(place, capsys):
    place.results(base={1: 256, 4: 12800}, series={1: 64, 4: 64})
    assert place.run("--check") == 1
    assert place.run() == 0
    error = capsys.readouterr().err
    assert "README.md is new: read what has changed" in error and "0007-A-patch.patch is new" in error
    assert "| 4 | 50,000 | 0.01 | 12,800 and 64 |" in place.read()
    # Two blanks stay between columns; what export writes stays.
    text = place.read("patches/0007-A-patch.patch")
    assert text == MAILED.replace("4000", "50000").replace("  4,000", "  50,000")
    assert place.run("--check") == 0


@pytest.mark.parametrize("row", ["| 7 | FIG | 7 |\n", "  more 7      FIG      7\n"])
def test_negative_control_a_number_of_a_table_that_is_no_figure(place, row):
    figure = '{{ fig("dirty", "dirty_memory_time/2", "base", 1, form="us.0") }}'
    place.template("Words 7.\n\n" + row.replace("FIG", figure).replace("7 |", "x |", 1))
    assert [line for line in place.problems() if "a table has a number that is no figure: '" in line]
    place.template("{% set tables = false %}\n" + place.read("Documentation/texts/README.md.in"))
    assert not [line for line in place.problems() if "no figure" in line]


@pytest.mark.parametrize(
    "kernels, samples, words",
    [
        (None, 1, "1 has fewer than 3 rounds"),
        ({"base": "b" * 16, "series": "0" * 16}, 3, "1 is of an older version of the source"),
        ({"base": None, "series": "5" * 16}, 3, "1 does not record which version of the source it measured"),
        ({}, 3, "1 does not record which version"),
    ],
)
def test_old_results_and_too_few_rounds_are_a_note_and_no_failure(place, kernels, samples, words):
    place.results(kernels, samples=samples)
    assert place.run("--check") == 1
    assert place.run() == place.run("--check") == 0
    assert f"\n\nOf the 1 result that is quoted here, {words}" in place.read()
    assert place.read("patches/0007-A-patch.patch") == MAILED
    place.results()
    assert place.run() == 0 and place.read() == MADE


def test_what_got_worse_must_be_said(place):
    place.template(re.sub("What gets slower:.*", "What gets slower: no.", README))
    place("README.md", re.sub("What gets slower:.*", "What gets slower: no.", MADE))
    wanted = "what gets slower does not say that get_dirty_log_time is 2.00 times base's with 4 vCPUs (dirty.json)"
    assert place.problems() == [f"README.md: {wanted}: it should have 'KVM_GET_DIRTY_LOG'"]
    place.figures(worse=[])
    assert place.problems() == [f"README.md: {wanted}"]
    place.results(more=run_of("guest_stall", 1.0, 1.2, model="line*2"))
    assert place.problems()[1:] == [
        "README.md: what gets slower does not say that guest_stall is 1.20 times base's with 4 vCPUs (dirty.json, model line*2)"
    ]
    place.results()
    place.figures(worse=[{"metric": "get_.*", "of": ["dirty"], "why": "by chance"}])
    assert place.problems() == []
    place.template(README.replace("What gets slower:", "What is slower:"))
    assert "README.md: no paragraph begins with 'What gets slower'" in place.problems()


# Metrics of other tests than RUN's.
TESTS = {"completed": "migration", "passes.running": "access_tracking_stress_test"}


def run_of(metric, base, series, **others):
    keys = {**RUN, "test": TESTS.get(metric, RUN["test"]), "metric": metric, "vcpus": 4, **others}
    return [
        {**keys, "kernel": kernel, "samples": [value] * 3} for kernel, value in (("base", base), ("series", series))
    ]


FALLEN = run_of("tlbi_broadcast.dirty", 500, 0, unit="1")


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
        (run_of("tlbi_local.dirty", 0, 500, unit="1") + FALLEN, set()),
        # It rose by more than the dearer one fell.
        (run_of("tlbi_local.dirty", 0, 1100, unit="1") + FALLEN, {"tlbi_local.dirty"}),
        (run_of("a_count_of_no_kind", 10, 300, unit="1"), set()),
        (run_of("guest_stall", 1.0, 1.2, model="line*2"), {"guest_stall"}),
        (run_of("guest_stall", 1.0, 1.09, model="line*2"), set()),
    ],
)
def test_what_is_worse_than_base(place, more, found):
    place.results(more=more)
    assert {metric for metric, _ in slower.worse(place.files(), "dirty")} == {"get_dirty_log_time"} | found


STEP = [
    {**RUN, "metric": metric, "kernel": "upto:half", "vcpus": 4, "samples": [value] * 3}
    for metric, value in (("populate_memory_time", 300e-6), ("dirty_memory_time", 1e-3))
] + [{**RUN, "metric": "populate_memory_time", "kernel": "base", "vcpus": 4, "samples": [200e-6] * 3}]


def test_what_got_worse_with_a_step_must_be_said_where_the_step_is_quoted(place):
    place.results(more=STEP)
    assert place.problems() == []
    figure = '{{ fig("dirty", "dirty_memory_time/2", "upto:half", 4, form="us.0") }}'
    place.template(f"{README}\nHalf of it takes {figure} us.\n")
    place("README.md", MADE + "\nHalf of it takes 1,000 us.\n")
    wanted = "what gets slower does not say that populate_memory_time of upto:half is 1.50 times base's with 4 vCPUs"
    assert place.problems() == [f"README.md: {wanted} (dirty.json)"]
    for kernel, problems in (("upto:half", 0), ("series", 1)):
        entry = {"metric": "populate_memory_time", "of": ["dirty"], "kernel": kernel, "why": "it is a half"}
        place.figures(worse=[*FIGURES["worse"], entry])
        assert len(place.problems()) == problems


GOOD = ("dirty", "dirty_memory_time/2", "base", 4)


@pytest.mark.parametrize(
    "words, more, reason",
    [
        (("dirty", "no_such_time/2", "base", 4), {}, "dirty.json has no run of no_such_time (kernel base, iteration 2"),
        (("dirty", "dirty_memory_time", "x", 4), {}, "has no run of dirty_memory_time (kernel x, iteration None"),
        (("other", "dirty_memory_time/2", "base", 4), {}, "there are no results 'other': there is dirty"),
        (GOOD, {"odd": 1}, "unknown key 'odd'"),
        (GOOD, {"op": "mean"}, "unknown operation 'mean'"),
        (GOOD, {"form": "km.0"}, "unknown form"),
        (GOOD, {"form": "us.x"}, "unknown form 'us.x'"),
        (GOOD, {"over": {"vcpus": [1, 4]}}, "'over' needs op min, max or range"),
        (GOOD, {"published": "none"}, "published.yaml has no column 'none'"),
        (GOOD, {"published": "zhang2022-base", "compare": "height"}, "unknown comparison 'height'"),
        (("dirty", "dirty_memory_time/2", "base", 3), {"published": "upton2022-series"}, "has no run"),
        (GOOD, {"op": "rounds", "by": "series"}, "op rounds is for a figure of its own"),
        (GOOD, {"op": "rounds", "over": {"vcpus": [1, 4]}}, "op rounds is for a figure of its own"),
        (GOOD, {"op": "rounds", "published": "x"}, "op rounds is for a figure of its own"),
    ],
)
def test_a_figure_that_cannot_be_is_one_line(place, words, more, reason):
    assert place.fig(*GOOD, form="us.0") == "1,024" == place.fig(*GOOD, form="us.0", op="rounds")
    with pytest.raises(Fail, match=re.escape(reason)) as caught:
        place.fig(*words, **more)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "template, reason",
    [
        ("a\n{{ fig( }}\n", "line 2: unexpected"),
        ("{{ figure(1) }}\n", "'figure' is undefined"),
        ("{{ fig(1) }}\n", "missing 2 required positional arguments"),
        ('{{ fig("dirty", "x", "base") }}\n', "dirty.json has no run of x"),
        ("{% include 'none' %}\n", "none"),
    ],
)
def test_a_template_that_is_none_is_one_line_and_nothing_is_written(place, capsys, template, reason):
    place.template(template)
    place("patches/0007-A-patch.patch", MAILED.replace("4000", "4001"))
    assert place.run() == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("series: error: Documentation/texts/README.md.in: ") and reason in error
    assert place.read() == MADE and "4001" in place.read("patches/0007-A-patch.patch")


def test_one_that_names_two_runs_must_say_more(place):
    place.results(more=[{**RUN, "kernel": "base", "vcpus": 4, "params": ["x"], "samples": [1, 1, 1]}])
    with pytest.raises(Fail, match=r"dirty.json has 2 runs of dirty_memory_time \(kernel base, .*\): say more"):
        place.fig(*GOOD)
    assert place.fig(*GOOD, params=["x"]) == "1"


def test_sums_counts_by_another_and_variants(place):
    counts = run_of("syncs", 10, 5, unit="1") + run_of("kicks", 20, 5, unit="1")
    place.results(more=[*counts, *run_of("dirty_memory_time", 2048e-6, 256e-6, model="line*2")])

    def text(form, metric, kernel="series", **more):
        return place.fig("dirty", f"{metric}/2", kernel, 4, form=form, **more)

    assert text("x.1", "kicks", per="syncs") == "1.0"
    assert text("x.2", "kicks", per="syncs", by="base") == "0.50"
    assert text("us.0", "dirty_memory_time+get_dirty_log_time") == "148"
    assert text("us.0", "dirty_memory_time", over={"model": "all"}, op="range") == "128 to 256"
    assert text("us.0", "dirty_memory_time", over={"model": "all"}, op="range", part=1) == "256"
    assert text("us.0", "dirty_memory_time", over={"model": "all"}, op="max") == "256"
    assert text("x.1", "dirty_memory_time", over={"metric": ["kicks", "syncs"]}, op="range") == "5.0"
    assert text("+%.0", "get_dirty_log_time", by="base") == "+100"
    assert text("vmpage.0", "dirty_memory_time") == "125"
    growth = text("+%.1", "dirty_memory_time", "base", published="zhang2022-base")
    assert growth == f"{(4 / (2.503 / 0.926) - 1) * 100:+.1f}"
    page = text("+%.1", "dirty_memory_time", "base", published="zhang2022-base", compare="page")
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
    assert query.write(number, form) == wanted


@pytest.mark.parametrize(
    "content, reason",
    [
        ("[", "cannot read"),
        ("3", "figures.yaml: 3 is not of type 'object'"),
        ("results: {a: {file: a.json}}", "results.a: 'command' is a required property"),
        ("results: {}\nodd: 1", "figures.yaml: Additional properties are not allowed ('odd' was unexpected)"),
        ("results: {a: {}}", "results.a: 'file' is a required property"),
        ("results: {}\nworse: [{metric: x, says: x}]", "worse[0]: 'of' is a required property"),
        ("results: {}\nworse: [{metric: x, of: all}]", "worse[0]: 'says' is a required property: or 'why'"),
        ("results: {}\nworse: [{metric: x, of: all, why: 1}]", "worse[0].why: 1 is not of type 'string'"),
    ],
)
def test_a_list_of_results_that_is_none_is_one_line(place, content, reason):
    place("Documentation/figures.yaml", content)
    with pytest.raises(Fail, match=re.escape(reason)) as caught:
        texts.load()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name, reason",
    [("README.md", "cannot read README.md"), ("Documentation/results/dirty.json", "cannot read .*dirty.json")],
)
def test_a_text_or_results_that_are_not_there(place, capsys, name, reason):
    (place.root / name).unlink()
    assert place.run() == 1
    assert re.match(f"series: error: .*{reason}: No such file or directory\n$", capsys.readouterr().err)


def test_a_patch_is_found_by_its_name_whatever_its_number(place):
    (place.root / "patches/0007-A-patch.patch").rename(place.root / "patches/0012-A-patch.patch")
    assert place.problems("patches/A-patch.patch") == []
    (place.root / "patches/0012-A-patch.patch").unlink()
    with pytest.raises(Fail, match=r"A-patch.patch.in: patches has 0 patches \*-A-patch.patch, not one"):
        place.problems("patches/A-patch.patch")


def test_commands_that_measure_again(place, capsys):
    place.results(samples=1)
    assert place.run("--old") == 0
    assert capsys.readouterr().out.splitlines() == [
        "# dirty.json: rounds; 1 min",
        "scripts/series bench v5.10 --json Documentation/results/dirty.json",
        "scripts/series report --table none Documentation/results/dirty.json --picture x.png",
        "scripts/series report --texts",
        "# 1 minutes in all",
    ]
    place.results()
    assert place.run("--old") == 0
    assert capsys.readouterr().out.splitlines() == ["Nothing is old, and all was measured in enough rounds."]


def test_what_does_not_repeat_is_not_quoted_but_its_rounds_are(place):
    """The rounds of the series with 4 vCPUs are 128 to 160 us: the median is refused, and a ratio of it."""
    place.results()
    unsteady = [
        {**run, "samples": [128e-6, 160e-6, 130e-6]}
        if (run["kernel"], run["vcpus"], run["metric"]) == ("series", 4, "dirty_memory_time")
        else run
        for run in runs()
    ]
    path = place.root / "Documentation/results/dirty.json"
    results.save(path, {}, repeat.mark(unsteady), {"ids": {"kernels": TODAY}, "command": "", "seconds": 61})
    words = ("dirty", "dirty_memory_time/2", "series", 4)
    for more in ({}, {"by": 1}, {"by": "base"}):
        with pytest.raises(Fail, match="dirty_memory_time of series with 4 vCPUs does not repeat from round to round "):
            place.fig(*words, **more)
    assert place.fig(*words, form="us.0", op="rounds") == "128 to 160"
    assert place.fig(*words, form="page.0", op="rounds") == "500 to 625"
    with pytest.raises(Fail, match=r"README.md.in: dirty.json: .*quote its rounds \(op=\"rounds\"\), or measure again"):
        place.problems()


# Results of commands that are not in figures.yaml.
OTHERS = ("soak-", "hunt-")


def missing(text, results, files):
    """Names of files that are not in figures.yaml and are not linked, and short names that an index does not link."""
    known = {entry["file"] for entry in results.values()}
    wrong = [name for name in files if name not in known and not (name.startswith(OTHERS) and f"]({name})" in text)]
    return wrong + [name for name, entry in results.items() if f"[`{name}`]({entry['file']})" not in text]


def test_each_results_file_is_in_the_index_and_has_a_command():
    text = (query.RESULTS / "README.md").read_text(encoding="utf-8")
    files = [path.name for path in committed()]
    assert files
    assert missing(text, texts.load()["results"], files) == []


def test_negative_control_an_index_that_lacks_something():
    entry = {"a": {"file": "a.json", "command": "bench a"}}
    assert missing("| [`a`](a.json) | x |", entry, ["a.json"]) == []
    assert missing("| [`a`](b.json) | x |", entry, ["a.json"]) == ["a"]
    assert missing("| [`a`](a.json), [b](b.json) | x |", entry, ["a.json", "b.json"]) == ["b.json"]
    files = ["a.json", "soak-b.json", "soak-c.json"]
    assert missing("[`a`](a.json), [b](soak-b.json)", entry, files) == ["soak-c.json"]


def not_listed(data, files, text):
    """What is worse than base in any results, by slower.worse(), and is not in a text: neither the words of its entry nor,
    where the entry has a reason instead, the metric's name."""
    words = " ".join(text.split())
    return [
        f"{name}: {metric}"
        for name in data["results"]
        for metric, kernel in slower.worse(files, name)
        if not any(
            (entry["says"] if "says" in entry else f"`{metric}`") in words
            for entry in slower.entries(data, name, metric, kernel)
        )
    ]


def test_each_text_with_tables_says_what_gets_slower():
    """README, the index of results, cover letters: those whose numbers in tables must all be figures."""
    found = {name: (texts.FOLDER / name).read_text(encoding="utf-8") for name in texts.names()}
    quoting = {name: text for name, text in found.items() if "set tables = false" not in text}
    assert len(quoting) > 10
    assert [name for name, text in quoting.items() if not text.startswith("{% set slower = [")] == []


def test_the_list_of_what_gets_slower_is_full():
    data = texts.load()
    text = (query.RESULTS / "README.md").read_text(encoding="utf-8").partition("\n## What gets slower\n")[2]
    assert not_listed(data, query.Files(data["results"]), text) == []


def test_negative_control_a_list_that_is_not_full(place):
    place.results(more=run_of("guest_stall", 1.0, 1.2))
    data, files = yaml.safe_load(yaml.safe_dump(FIGURES)), place.files()
    said = "KVM_GET_DIRTY_LOG is slower"
    assert not_listed(data, files, said) == ["dirty: guest_stall"]
    data["worse"].append({"metric": "guest_.*", "of": ["dirty"], "why": "by chance"})
    assert not_listed(data, files, said) == ["dirty: guest_stall"]
    assert not_listed(data, files, "`guest_stall`") == ["dirty: get_dirty_log_time"]
    assert not_listed(data, files, f"{said}, `guest_stall`") == []
