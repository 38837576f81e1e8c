"""Tests of the tables as text; all numbers are made up."""

import io

import pytest
from rich.console import Console

from kvmseries.conftest import committed
from kvmseries.data import summary as s
from kvmseries.data.results import load
from kvmseries.report import layout, page, table
from kvmseries.report.conftest import aging_results, column, full_results, merging_results, virtual_results
from kvmseries.report.conftest import make_file, make_run


def printed(results, width=80, encoding="utf-8"):
    data = io.BytesIO()
    file = io.TextIOWrapper(data, encoding=encoding)
    table.print_table(results, Console(file=file, width=width))
    file.flush()
    return data.getvalue().decode(encoding)


def rows(*results):
    """The cells of each line of tables that are as wide as they want to be, without spreads in their own words."""
    return [line.split() for line in printed(results, 2000).splitlines()]


@pytest.mark.parametrize("width", (60, 80, 100, 200))
def test_terminal(results, width):
    data = results + [full_results(("base", "upto:fast-path", "series"), (1, 64), clock="virtual")]
    text = printed(data, width)
    assert s.EMULATED in " ".join(text.split())
    tables = [line for line in text.splitlines() if "base" in line.split() or "series/base" in line]
    assert tables and all(len(line.rstrip()) <= width for line in tables)
    for word in ("12,475", "8,192", "series/base", "0.34", "KVM_GET_DIRTY_LOG"):
        assert word in text


def test_terminal_without_unicode(results):
    printed(results, encoding="ascii").encode("ascii")


def test_terminal_does_not_read_markup():
    assert "[red]-x[/]" in printed([make_file(make_run(args="[red]-x[/] -v 1"))])


@pytest.mark.parametrize("results", ([], [make_file()]))
def test_no_runs(results):
    assert table.NOTHING in printed(results)


def test_every_metric_may_be_missing():
    whole = full_results()
    for metric in {run["metric"] for run in whole["runs"]}:
        assert printed([make_file(*(run for run in whole["runs"] if run["metric"] != metric))])
        assert printed([make_file(*(run for run in whole["runs"] if run["metric"] == metric))])


def test_the_verdict_comes_before_the_tables():
    text = " ".join(printed([virtual_results(("base", "series"))], 200).split())
    order = ("16 vCPUs: dirty memory 36.9 ms", "Better: ", "Worse: ", "Growth: relative")
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_columns_are_those_of_bench_yaml():
    text = printed([aging_results(), aging_results(alone=True)], 400)
    row = next(line.split() for line in text.splitlines() if line.split()[:2] == ["16", "base"])
    # us: passes and vCPUs of the last iteration, with aging and without; pages.
    assert row[2:] == ["120", "3,000", "3,300", "3,600", "25.0", "6,800", "6,700", "1.01", "256", "246", "0", "176"]
    heads = (
        "vCPUs idle, us",
        "p99, vCPUs running, us",
        "fault memory in, no aging, us",
        "touched, but idle after a flush",
    )
    for head in heads:
        assert set(head.split()) <= set(text.split()), head
    assert "No aging: -p -S -b 64K -B 2M -i 3 -n 16 -m 2 -k page_idle -a 0." in text and "iteration 3," in text


def test_ratios_are_of_medians_and_there_is_none_to_what_is_missing():
    found = rows(merging_results())
    assert "upto:aging 1.00 2.00 6.00 18,100 3,500 5,600 9,000 3,900".split() in found
    assert "series/base \u2014 1.00 0.14 0.33 0.49 \u2014 0.28 0.47".split() in found


def test_migrations_say_how_many_completed_and_the_most_pages_lost():
    keys = {"test": "migration", "args": "rate=1", "vcpus": 2}
    found = {"completed": [1, 0, 1], "pages_lost": [0, 7, 0], "kicks": [8, 8, 8], "syncs": [2, 2, 4]}
    runs = [make_run(**keys, metric=metric, unit="1", samples=samples) for metric, samples in found.items()]
    assert "2 base 2 of 3 7 2 (2\u20134) 8 2.00 (1.00\u20132.00)".split() in rows(make_file(*runs))


def test_virtual_time_has_tables_of_growth():
    data = [virtual_results(("base", "upto:fast-path", "series"), {"line*2": 1.25})]
    for width in (80, 120):
        text = printed(data, width)
        assert all(len(line.rstrip()) <= width for line in text.splitlines())
        for words in ("-7.5%", "1.20\u20131.25", "36,000", "fitted on it"):
            assert words in text, words
    assert "16 base 36,000 (35,640\u201336,360) 12.0 12.0\u201314.7 19,722 11.2 +7.5%".split() in rows(*data)
    # Nothing was published of the series, and nothing of populating.
    assert "series 3,900 (3,861\u20133,939) 1.30 1.30\u20131.38 \u2014 \u2014 \u2014".split() in rows(*data)
    assert "16 base 14,000 4.67 4.67\u20135.58".split() in rows(*data)


def test_a_table_that_is_too_wide_is_split_at_its_headings():
    def fitted(heads, room):
        columns = [layout.Head(head, f"n{number}") for number, head in enumerate(heads)]
        sheet = layout.Sheet(columns, [(1, [("base", [layout.Cell("x" * room)] * len(heads))])], notes=["a note"])
        parts = table._fitted(sheet, Console(width=75), str)
        assert [part.notes for part in parts] == [[]] * (len(parts) - 1) + [["a note"]]
        return [[column.name for column in part.columns] for part in parts]

    heads = ["acquisitions"] * 2 + ["contentions"] * 2
    assert fitted(heads, 10) == [["n0", "n1", "n2", "n3"]]
    assert fitted(heads, 16) == [["n0", "n1"], ["n2", "n3"]]
    assert fitted(heads, 40) == [["n0"], ["n1"], ["n2"], ["n3"]]


def test_every_output_says_what_does_not_repeat():
    data = make_file({**make_run(clock="virtual", vcpus=2, samples=[0.2, 0.6]), "repeats": False, "earlier": [[1, 2]]})
    for text in (printed([data]), page.page_html([data], [])):
        assert "does not repeat from round to round (base with 2 vCPUs)" in " ".join(text.split())
        assert "600,000*" in text and "2 vCPUs, 1 retry" in " ".join(text.split())


@pytest.mark.parametrize("path", committed("v*.json") + committed("qemu*.json"), ids=lambda path: path.name)
def test_every_committed_file_has_a_table(path):
    data = load(path)
    words = {word for row in rows(data) for word in row[:2]}
    assert {run["kernel"] for run in data["runs"]} <= words


@pytest.mark.parametrize(
    "number, unit, text",
    [(1.5e-6, "us", "1.5"), (0.12345, "us", "123,450"), (8.8e6, "MB", "8.8"), (0.07, "%", "7.0"), (0.5, "x", "0.50")]
    + [(-0.2, "x", "-0.20"), (12, "count", "12"), (12.5, "count", "12.5"), (1234.5, "count", "1,234")],
)
def test_how_numbers_are_written(number, unit, text):
    assert layout.text_of(column("x", unit))(number) == text


@pytest.mark.parametrize(
    "number, text", [(127.4, "127"), (11.26, "11.3"), (1.04, "1.04"), (0.087, "0.087"), (0.0012, "0.0012")]
)
def test_ratio_text(number, text):
    assert layout.ratio_text(number) == text
