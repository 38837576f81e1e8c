"""Tests of the report on aging; all numbers but the published ones are made up."""

import pytest
from PIL import Image

from kvmseries import report
from kvmseries.data import summary as s
from kvmseries.report import aging, layout, plots
from kvmseries.report.conftest import (
    AGING,
    aging_results,
    aging_runs,
    full_results,
    make_file,
    make_run,
    only,
    virtual_results,
)
from kvmseries.report.page import page_html
from kvmseries.report.test_page import Checker
from kvmseries.report.test_table import printed


@pytest.fixture(name="both")
def both_fixture():
    return [aging_results(), aging_results(alone=True)]


def texts(sheet):
    """{(vcpus, row): {column: text}}"""
    return {
        (vcpus, label): {column.full: cell.text for column, cell in zip(sheet.columns, cells)}
        for vcpus, rows in sheet.blocks
        for label, cells in rows
    }


@pytest.mark.parametrize("order", (1, -1))
def test_runs_without_aging_belong_to_those_with(both, order):
    summary = only(both[::order])
    assert summary.group.args == AGING
    assert summary.alone.group.args == AGING + " -a 0"


def test_runs_of_other_arguments_do_not_belong(both):
    other = aging_results(alone=True, args=AGING.replace("2M", "4M"))
    found = aging.summarise([both[0], other])
    assert [one.alone for one in found] == [None, None]
    # Words of the arguments in another order, and other numbers of threads that age, do.
    assert only([both[0], aging_results(args="-a 0 " + AGING)]).alone
    assert only([aging_results(args=AGING + " -a 2"), both[1]]).alone


def test_other_kernels_configurations_and_tests_do_not_belong(both):
    for keys in ({"arch": "x86_64"}, {"cpu": "other"}, {"series": "v7.3"}, {"clock": "wall"}):
        assert len(aging.summarise([both[0], aging_results(alone=True, **keys)])) == 2, keys
    test = [make_run(args=args) for args in ("-b 4M", "-b 4M -a 0")]
    assert [one.alone for one in aging.summarise([make_file(*test)])] == [None, None]


def test_every_figure_is_of_the_last_iteration(both):
    rows = texts(aging.sheet(only(both)))
    assert rows[16, "base"] == {
        "pass, vCPUs idle (us)": "120.0",
        "pass, vCPUs faulting (us)": "3,000.0",
        "p99 (us)": "3,300.0",
        "max (us)": "3,600.0",
        "faulting/idle": "25.0",
        "vCPU time, aging (us)": "6,800.0",
        "vCPU time, no aging (us)": "6,700.0",
        "aging/no aging": "1.01",
        "insns per fault, aging": "2,700",
        "insns per fault, no aging": "2,650",
        "young pages: idle, running": "256, 246",
        "false idle, flushed": "0 of 176",
    }
    assert rows[16, "series"]["faulting/idle"] == "1.04"
    assert rows[16, "series/base"]["pass, vCPUs faulting (us)"] == "0.043"
    assert rows[16, "series/base"]["vCPU time, aging (us)"] == "0.12"
    # Of ratios there is no further ratio.
    for column in ("faulting/idle", "aging/no aging", "young pages: idle, running", "false idle, flushed"):
        assert rows[16, "series/base"][column] == layout.MISSING


def test_a_pass_over_pages_that_nobody_touches_shows(both):
    for run in both[0]["runs"]:
        if run["metric"].startswith("young"):
            run["samples"] = [0, 0]
    assert texts(aging.sheet(only(both)))[16, "base"]["young pages: idle, running"] == "0, 0"


def test_the_whole_test_does_not_stand_in_for_the_last_iteration(both):
    both[0]["runs"] = [
        run for run in both[0]["runs"] if (run["metric"], run["iteration"]) != ("pass_median.running", 3)
    ]
    rows = texts(aging.sheet(only(both)))
    assert rows[16, "base"]["pass, vCPUs faulting (us)"] == layout.MISSING
    assert rows[16, "base"]["pass, vCPUs idle (us)"] == "120.0"


def test_another_number_of_iterations_without_aging_makes_no_ratio(both):
    both[1]["runs"] = [run for run in both[1]["runs"] if run["iteration"] != 3]
    sheet = aging.sheet(only(both))
    assert texts(sheet)[16, "base"]["aging/no aging"] == layout.MISSING
    assert texts(sheet)[16, "base"]["vCPU time, no aging (us)"] == "46,900.0"
    assert "iteration is 2: another one" in sheet.notes[0]


def test_notes(both):
    (note,) = aging.sheet(only(both)).notes
    assert s.VIRTUAL not in note  # the head of the group says it
    for words in (
        "iteration 3, the last",
        "-S",
        "with aging 2 samples, without 2 samples",
        "No aging: the same test with -a 0",
        "fault_memory_time",
    ):
        assert words in note, words
    assert "not in these results" in aging.sheet(only(both[:1])).notes[0]


def test_what_was_not_run_without_aging_has_no_columns_and_no_plot_of_it(both):
    alone = only(both[:1])
    assert not [column.name for column in aging.sheet(alone).columns if "no aging" in column.name]
    assert [len(plots.aging_figure(one).axes) for one in (alone, only(both))] == [1, 2]


def test_runs_without_aging_alone(both):
    summary = only(both[1:])
    rows = texts(aging.sheet(summary))
    assert rows[4, "base"]["vCPU time, no aging (us)"] == "1,600"
    assert rows[4, "base"]["vCPU time, aging (us)"] == layout.MISSING
    assert rows[4, "base"]["pass, vCPUs idle (us)"] == layout.MISSING
    assert plots.aging_figure(summary) is None


def test_vcpus_that_access_memory_instead():
    summary = only(
        [
            aging_results(time="access", args=AGING.replace("-p -S ", "")),
            aging_results(time="access", args=AGING.replace("-p -S ", ""), alone=True),
        ]
    )
    row = texts(aging.sheet(summary))[4, "series"]
    assert row["pass, vCPUs running (us)"] == "34.0"
    assert row["vCPU time, no aging (us)"] == "740.0" and row["insns per fault, aging"] == "2,700"
    assert "access_memory_time" in aging.sheet(summary).notes[0]


def test_curves(both):
    left, right = aging.curves(only(both))
    assert [(label, kernel) for label, kernel, _ in left] == [
        ("faulting: series/base", None),
        ("base: faulting/idle", "base"),
        ("series: faulting/idle", "series"),
    ]
    assert left[0][2] == pytest.approx({1: 8 / 12, 4: 34 / 160, 16: 130 / 3000})
    assert left[1][2] == pytest.approx({1: 1.5, 4: 5, 16: 25})
    assert left[2][2] == pytest.approx({1: 1, 4: 1, 16: 1.04})
    assert [(label, points) for label, _, points in right] == [
        ("base", pytest.approx({1: 72 / 66, 4: 1.125, 16: 68 / 67})),
        ("series", pytest.approx({1: 1, 4: 1, 16: 80 / 81})),
    ]


def test_one_kernel_has_no_curve_by_base():
    left, right = aging.curves(only([aging_results(("base",))]))
    assert [label for label, *_ in left] == ["base: faulting/idle"] and right == []


def test_the_wall_clock_of_an_emulator_has_a_table_but_no_curves(both):
    wall = [make_file(*({**run, "clock": "wall", "model": ""} for run in file["runs"])) for file in both]
    summary = only(wall)
    assert aging.curves(summary) == ([], []) and plots.aging_figure(summary) is None
    assert s.EMULATED in printed(wall, 200) and s.EMULATED in Checker(page_html(wall, [])).text
    assert s.EMULATED in report.ascii_table(wall).replace("\n", " ")


def test_the_figure_has_ours_and_the_published(both):
    figure = plots.aging_figure(only(both), more="what was run")
    left, right = figure.axes
    dashed = {
        tuple(line.get_xdata()): tuple(line.get_ydata())
        for axes in (left, right)
        for line in axes.lines
        if line.get_linestyle() != "-"
    }
    assert set(dashed) == {(8, 32, 64, 112), (64,), (32,)}
    assert dashed[32,] == pytest.approx((0.307 / 1.661,))
    assert dashed[64,] == pytest.approx((0.527 / 15.95,))
    drawn = [list(line.get_ydata()) for line in right.lines if len(line.get_xdata()) == 4]
    assert drawn == [
        pytest.approx([1.078, 1.1927, 1.0968, 1.2019], abs=1e-4),
        pytest.approx([1.0163, 1.0118, 0.9914, 1.047], abs=1e-4),
    ]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    for label in (
        "faulting: series/base",
        "base: faulting/idle",
        "series",
        "published, locked: x86, TDP",
        "published, lockless/locked: x86, shadow MMU",
        "published, lockless/locked: arm64, read lock",
    ):
        assert label in labels, label
    below = figure.get_supxlabel().replace("\n", " ")
    for words in (
        "what was run.",
        "20241105184333.2305744-1-jthoughton@google.com",
        "20241105184333.2305744-1-jthoughton@google.com",
        "MGLRU",
        "1 GiB a vCPU",
        "other machines",
    ):
        assert words in below, words
    assert all(axes.get_xscale() == "log" for axes in figure.axes)
    # Every point is in the panel.
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert all(low <= number <= high for line in axes.lines for number in line.get_ydata())


def test_page(both):
    checker = Checker(page_html(both, ["make run"]))
    for words in (
        "faulting: series/base",
        "published, lockless: x86, TDP",
        "MGLRU",
        "3,000.0",
        "0 of 176",
        "No aging" + AGING + " -a 0",
        "iteration 3, the last",
        "Counters",
        "16 vCPUs, time of an aging pass while vCPUs are faulting, relative to idle ones: 25.0 on base, 1.04 on series",
        "16 vCPUs, time of the vCPUs with aging, relative to none: 1.01 on base",
        s.VIRTUAL,
    ):
        assert words in checker.text, words
    assert len(checker.ids) == len(set(checker.ids))
    assert checker.text.count("access_tracking_stress_test, v5.10 on arm64") == 1
    # Nothing of the dirty log's: no growth, no dirty times.
    for words in ("time with 1 vCPU", "dirty memory", "main table", "Other times", "Growth"):
        assert words not in checker.text, words


def test_populating_memory_makes_no_main_table(both):
    both[0]["runs"] += [
        make_run(test=aging.TEST, args=AGING, clock="virtual", vcpus=vcpus, metric="populate_memory_time")
        for vcpus in (1, 4)
    ]
    for text in (
        Checker(page_html(both, [])).text.split("Raw runs")[0],
        printed(both, 200),
        report.ascii_table(both),
        report.markdown_table(both),
    ):
        assert "populate memory" not in text


def test_lock_counts_stand_beside(both):
    runs = [
        make_run(
            test=aging.TEST,
            args=AGING,
            clock="virtual",
            config="lockstat",
            kernel=kernel,
            unit="1",
            vcpus=16,
            metric=metric,
            samples=[number],
        )
        for kernel in ("base", "series")
        for metric, number in (
            (s.WRITES, 4321),
            (f"{s.READS}.exit", 0),
            (f"{s.WRITES}.age", 256 if kernel == "base" else 0),
        )
    ]
    both[0]["runs"] += runs
    text = Checker(page_html(both, [])).text
    assert "4,321" in text and "By phase" in text and "contentions by phase" not in text
    assert only(both).phases() == ["age", "exit"]
    assert "4,321" in printed(both, 200) and "4,321" in report.ascii_table(both)


def test_other_groups_stay_as_they_are(both):
    other = virtual_results()
    alone = page_html([other], [])
    section = alone[alone.index("<section>") : alone.index("</section>")]
    assert section in page_html([other, *both], [])
    for make in (report.ascii_table, report.markdown_table):
        assert make([other]).split("v5.10 arm64, ")[0].strip() in make([other, *both])


@pytest.mark.parametrize("width", (80, 120, 250))
def test_terminal(both, width):
    text = printed(both, width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for words in ("3,000.0", "25.0", "2,650", "0 of 176", s.VIRTUAL):
        assert words in text, words
    printed(both, width, "ascii").encode("ascii")


def test_ascii_and_markdown(both):
    text = report.ascii_table(both)
    text.encode("ascii")
    assert "?" not in text
    assert all(len(line) <= 75 for line in text.splitlines())
    for words in ("25.0 |", "3,600.0 |", "2,650 |", "256, 246 |", "0 of 176 |", "| series/base |"):
        assert words in text, words
    rows = [line for line in report.markdown_table(both).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3 * 3 and {line.count("|") for line in rows} == {15}
    assert (
        "| 16 | base | 120.0 | 3,000.0 | 3,300.0 | 3,600.0 | 25.0 | 6,800.0 | 6,700.0 | 1.01 "
        "| 2,700 | 2,650 | 256, 246 | 0 of 176 |" in rows
    )


def test_png(both, tmp_path):
    report.plot_png(both, tmp_path / "a.png")
    report.plot_png(both, tmp_path / "b.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (1200, 672)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_aging_is_not_in_the_readme_picture(both, tmp_path):
    report.plot_png([full_results()], tmp_path / "a.png")
    report.plot_png([full_results(), *both], tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_any_figure_may_be_missing(both):
    metrics = {run["metric"] for file in both for run in file["runs"]}
    for metric in metrics:
        for keep in (True, False):
            left = [make_file(*(run for run in file["runs"] if (run["metric"] == metric) == keep)) for file in both]
            Checker(page_html(left, []))
            assert printed(left) and report.ascii_table(left) and report.markdown_table(left)


def test_zeros_and_one_kernel(tmp_path):
    runs = [{**run, "samples": [0]} for run in aging_runs("series")]
    data = [make_file(*runs)]
    Checker(page_html(data, []))
    assert texts(aging.sheet(only(data)))[4, "series"]["faulting/idle"] == layout.MISSING
    report.plot_png(data, tmp_path / "a.png")


def test_kernels_and_vcpus_of_one_side_alone(both):
    both[1] = aging_results(("base",), alone=True, vcpus=(4,))
    rows = texts(aging.sheet(only(both)))
    assert rows[4, "base"]["aging/no aging"] == "1.12"
    assert rows[4, "series"]["aging/no aging"] == rows[16, "base"]["aging/no aging"] == layout.MISSING
    both = [aging_results(("series",), vcpus=(1,)), aging_results(("base",), alone=True, vcpus=(4,))]
    rows = texts(aging.sheet(only(both)))
    assert rows[4, "base"]["vCPU time, no aging (us)"] == "1,600.0"
    assert rows[1, "series"]["pass, vCPUs idle (us)"] == "8.0"
