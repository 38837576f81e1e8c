"""Tests of the report on change_pte_test; all numbers are made up."""

import pytest
from PIL import Image

from kvmseries import report
from kvmseries.data import summary as s
from kvmseries.report import layout, merging, plots
from kvmseries.report.conftest import (
    aging_results,
    full_results,
    make_file,
    MERGING,
    merging_results,
    merging_runs,
    only,
    virtual_results,
)
from kvmseries.report.page import page_html
from kvmseries.report.test_aging import texts
from kvmseries.report.test_page import Checker
from kvmseries.report.test_table import printed

READ, WRITTEN = "exits per merged page read", "exits per merged page written"
WHILE, TOGETHER = "exits per page read while merged", "kernel and vCPUs together (us)"


def without(data, *metrics):
    return make_file(*(run for run in data["runs"] if run["metric"] not in metrics))


def other_samples(data, samples, **keys):
    """`data` with these samples in the runs that have these keys."""
    return make_file(
        *(
            {**run, "samples": samples} if all(run[key] == value for key, value in keys.items()) else run
            for run in data["runs"]
        )
    )


def emulated():
    return make_file(*({**run, "clock": "wall", "model": ""} for run in merging_results()["runs"]))


def test_only_this_test_is_merging():
    assert merging.is_merging(only([merging_results()]))
    assert not merging.is_merging(only([aging_results()]))
    assert not merging.is_merging(only([full_results()]))


def test_every_figure_is_of_the_last_iteration():
    rows = texts(merging.sheet(only([merging_results()])))
    assert rows[8, "upto:aging"] == {
        READ: "1.000",
        WRITTEN: "2.000",
        WHILE: "6.000",
        "ksmd (us)": "3,500",
        "vCPUs read (us)": "5,600",
        "vCPUs write (us)": "9,000",
        TOGETHER: "18,100",
        "ksmd while vCPUs read (us)": "3,900",
    }
    assert rows[8, "series"][READ] == "0.004" and rows[8, "series"][TOGETHER] == "12,920"
    assert [label for vcpus, label in rows if vcpus == 2] == ["base", "upto:aging", "series", "series/base"]


def test_a_ratio_by_zero_is_left_empty():
    row = texts(merging.sheet(only([merging_results()])))[8, "series/base"]
    assert row[READ] == row["vCPUs read (us)"] == layout.MISSING
    assert row[WRITTEN] == "1.00" and row[WHILE] == "0.14" and row["ksmd (us)"] == "0.49"
    assert row[TOGETHER] == "0.33"


def test_noise_below_zero():
    data = other_samples(merging_results(), [-0.000003], metric=merging.READ, kernel="base")
    data = other_samples(data, [-0.0004], metric=merging.READ_EXITS, kernel="base")
    summary = only([data])
    rows = texts(merging.sheet(summary))
    assert rows[2, "base"]["vCPUs read (us)"] == "-3" and rows[2, "base"][TOGETHER] == "10,997"
    assert rows[2, "base"][READ] == "0.000"
    assert rows[2, "series/base"]["vCPUs read (us)"] == rows[2, "series/base"][READ] == layout.MISSING
    # Nothing is drawn below the axis.
    for axes in plots.merging_figure(summary).axes:
        assert all(bar.get_height() >= 0 for bar in axes.patches)


def test_the_sum_is_of_each_sample():
    data = merging_results(("base",), vcpus=(2,))
    for metric, samples in ((merging.KSMD, [1, 2, 9]), (merging.READ, [5, 0, 0]), (merging.WRITE, [1, 1, 1])):
        data = other_samples(data, samples, metric=metric)
    value = merging.together(only([data]), "base", 2)
    assert list(value.samples.values()) == [7, 3, 10] and value.median == 7


def test_the_first_iteration_does_not_stand_in_for_the_last():
    data = merging_results()
    data["runs"] = [run for run in data["runs"] if (run["metric"], run["iteration"]) != (merging.READ, 2)]
    row = texts(merging.sheet(only([data])))[2, "series"]
    assert row["vCPUs read (us)"] == row[TOGETHER] == layout.MISSING
    assert row["ksmd (us)"] == "4,200"


def test_a_spinning_loop_is_no_evidence():
    assert "read_while_merged_vcpu_time" not in merging.METRICS
    assert "12,300" not in report.ascii_table([merging_results()])


def test_notes():
    (note,) = merging.sheet(only([merging_results()])).notes
    assert s.VIRTUAL not in note  # the head of the group says it
    for words in ("2 samples", "iteration 2, the last", "ksmd + vCPUs read + vCPUs write"):
        assert words in note, words


def test_highlights():
    assert merging.highlights(only([merging_results()])) == [
        "8 vCPUs, kernel and vCPUs together, relative to base: 0.46 on upto:aging, 0.33 on series",
        "8 vCPUs, exits per merged page read: 0.000 on base, 1.000 on upto:aging, 0.004 on series",
    ]
    assert merging.highlights(only([merging_results(vcpus=(2,))]))[1].startswith("2 vCPUs, exits")


@pytest.mark.parametrize("kernel", ("base", "series"))
def test_one_kernel_only(kernel, tmp_path):
    data = [merging_results((kernel,))]
    rows = texts(merging.sheet(only(data)))
    assert [label for _, label in rows] == [kernel] * 2
    (line,) = merging.highlights(only(data))
    assert line.startswith("8 vCPUs, exits per merged page read: 0.00") and line.endswith(f" on {kernel}")
    Checker(page_html(data, []))
    assert plots.merging_figure(only(data))
    report.plot_png(data, tmp_path / "a.png")


def test_any_figure_may_be_missing():
    full = merging_results()
    metrics = {run["metric"] for run in full["runs"]}
    for metric in metrics:
        for data in (without(full, metric), without(full, *metrics - {metric})):
            Checker(page_html([data], []))
            assert printed([data]) and report.ascii_table([data]) and report.markdown_table([data])
    nothing = [without(full, *merging.METRICS)]
    assert plots.merging_figure(only(nothing)) is None and not merging.sheet(only(nothing))
    assert merging.highlights(only(nothing)) == []
    assert "No exit and no time" in Checker(page_html(nothing, [])).text


def test_the_wall_clock_of_an_emulator_has_a_table_but_no_figure(tmp_path):
    data = [emulated()]
    summary = only(data)
    assert plots.merging_figure(summary) is None
    assert s.EMULATED in printed(data, 200)
    assert s.EMULATED in report.ascii_table(data).replace("\n", " ")
    assert s.EMULATED in Checker(page_html(data, [])).text
    # Nor does it keep the figure of others out of the picture.
    report.plot_png([merging_results(vcpus=(2,))], tmp_path / "a.png")
    report.plot_png([emulated(), merging_results(vcpus=(2,))], tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def heights(axes):
    return [bar.get_height() for bar in axes.patches]


def test_the_figure_has_the_parts_of_the_sum_and_exits():
    left, right = plots.merging_figure(only([merging_results()]), more="what was run").axes
    assert heights(left) == pytest.approx(
        [5, 0, 6, 3.4, 0.9, 4.3, 4.2, 0.003, 4.1, 9, 0, 30, 3.5, 5.6, 9, 4.4, 0.02, 8.5]
    )
    assert heights(right) == pytest.approx([0, 1, 0.002, 0, 1, 0.004])
    assert [text.get_text() for text in left.texts] == ["11", "8.6", "8.3", "39", "18.1", "12.9"]
    assert [text.get_text() for text in right.texts] == ["0", "1", "0.002", "0", "1", "0.004"]
    assert left.get_ylabel() == "time, ms"
    figure = left.get_figure()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ksmd", "vCPUs read", "vCPUs write"]
    assert figure.get_supxlabel() == "what was run"


def test_a_part_that_was_not_measured_shows_above_the_bar():
    data = other_samples(merging_results(vcpus=(2,)), [], metric=merging.READ, kernel="base")
    left, _ = plots.merging_figure(only([data])).axes
    assert [text.get_text() for text in left.texts] == ["\u226511", "8.6", "8.3"]


def test_page():
    checker = Checker(page_html([merging_results()], ["make run"]))
    for words in (
        READ,
        "kernel and vCPUs together",
        "ksmd while vCPUs read",
        "18,100",
        "12,920",
        "6.000",
        "iteration 2, the last",
        "0.33 on series",
        "1.000 on upto:aging",
        "Arguments" + MERGING,
        "Left: the time that ksmd takes",
        "Samples, times2 samples",
    ):
        assert words in checker.text, words
    assert len(checker.ids) == len(set(checker.ids))
    assert any(name.startswith("g1-merging") for name in checker.ids)
    # Nothing of the dirty log's: no growth, no dirty times.
    for words in ("time with 1 vCPU", "dirty memory", "main table", "Other times", "Growth", "aging pass"):
        assert words not in checker.text, words


def test_other_groups_stay_as_they_are():
    for others in ([virtual_results()], [aging_results(), aging_results(alone=True)]):
        alone = page_html(others, [])
        section = alone[alone.index("<section>") : alone.index("</section>")]
        assert section in page_html([*others, merging_results()], [])
        for make in (report.ascii_table, report.markdown_table):
            assert make(others).split("v5.10 arm64, ")[0].strip() in make([*others, merging_results()])


@pytest.mark.parametrize("width", (80, 120, 250))
def test_terminal(width):
    text = printed([merging_results()], width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for words in ("18,100", "6.000", "0.004", "series/base", s.VIRTUAL):
        assert words in text, words
    assert text.count("the last, as") == 1
    printed([merging_results()], width, "ascii").encode("ascii")


def test_ascii_and_markdown():
    text = report.ascii_table([merging_results()])
    text.encode("ascii")
    assert "?" not in text
    assert all(len(line) <= 75 for line in text.splitlines())
    for words in ("| 18,100 |", "0.004 |", "| series/base |"):
        assert words.replace("| ", "", 1) in text, words
    rows = [line for line in report.markdown_table([merging_results()]).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 * 4 and {line.count("|") for line in rows} == {11}
    assert "| 8 | base | 0.000 | 2.000 | 3.500 | 9,000 | 0 | 30,000 | 39,000 | 9,600 |" in rows


def test_png(tmp_path):
    data = [merging_results()]
    report.plot_png(data, tmp_path / "a.png")
    report.plot_png(data, tmp_path / "b.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (1200, 500)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_it_is_in_no_picture_of_others(tmp_path):
    for others in ([full_results()], [aging_results(), aging_results(alone=True)]):
        report.plot_png(others, tmp_path / "a.png")
        report.plot_png([*others, merging_results()], tmp_path / "b.png")
        assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_lock_counts_stand_beside():
    runs = [
        {**run, "config": "lockstat", "metric": s.WRITES, "samples": [4321], "iteration": None, "unit": "1"}
        for run in merging_runs("base")
        if run["metric"] == merging.READ_EXITS
    ]
    data = [make_file(*merging_results()["runs"], *runs)]
    for text in (Checker(page_html(data, [])).text, printed(data, 200), report.ascii_table(data)):
        assert "4,321" in text and "18,100" in text
