"""Tests of the tables as text; all numbers are made up."""

import io

import pytest
from rich.console import Console

from kvmseries import report
from kvmseries.data import summary as s
from kvmseries.report import layout, table
from kvmseries.report.conftest import full_results, make_file, make_run, virtual_results


def printed(results, width=80, encoding="utf-8"):
    data = io.BytesIO()
    file = io.TextIOWrapper(data, encoding=encoding)
    report.print_table(results, Console(file=file, width=width))
    file.flush()
    return data.getvalue().decode(encoding)


@pytest.mark.parametrize("width", (80, 100, 200))
def test_terminal(results, width):
    text = printed(results, width)
    assert s.EMULATED in " ".join(text.split())
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for word in ("12,475", "8,192", "series/base", "0.34", "1,730 (1,678\u20131,834)"):
        assert word in text


def test_terminal_is_one_table_where_there_is_room(results):
    def tables(width):
        """How many tables have lock counts or the main times."""
        text = printed(results, width)
        return text[: text.index("enable")].count(" vCPUs   kernel")

    assert (tables(200), tables(80)) == (1, 2)


def test_terminal_without_unicode(results):
    printed(results, encoding="ascii").encode("ascii")


def test_terminal_does_not_read_markup():
    assert "[red]-x[/]" in printed([make_file(make_run(args="[red]-x[/] -v 1"))])


def test_ascii(results):
    text = report.ascii_table(results + [full_results(("base", "upto:fast-path", "series"), (1, 64), clock="virtual")])
    text.encode("ascii")
    assert all(len(line) <= 75 for line in text.splitlines())
    assert s.EMULATED in " ".join(text.split())
    assert "| #vCPU | kernel      |" in text
    assert text.index("contended") < text.index("Times:")
    boxes = [line for line in text.splitlines() if line.startswith(("+", "|"))]
    assert all(line.endswith(line[0]) for line in boxes)


def test_ascii_splits_what_is_too_wide():
    runs = [
        make_run(kernel=kernel, config="lockstat", metric=metric, unit="1", samples=[12345678901234])
        for metric in s.LOCK_METRICS
        for kernel in ("base", "upto:a-long-milestone-name")
    ]
    text = report.ascii_table([make_file(*runs)])
    assert all(len(line) <= 75 for line in text.splitlines())
    assert text.count("#vCPU") > 1
    assert "acquired" in text and "contended" in text


def test_markdown(results):
    text = report.markdown_table(results)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 * (2 + 3 * 3)
    assert [{line.count("|") for line in table} for table in (rows[:11], rows[11:])] == [{9}, {7}]
    assert text.count(s.EMULATED) == 1
    assert "| 4 | base | 12,475 | 0 |" in text


def test_markdown_escapes():
    text = report.markdown_table([make_file(make_run(kernel="a|b", args="<img>_x_"))])
    assert "a\\|b" in text and "\\<img\\>" in text


@pytest.mark.parametrize("results", ([], [make_file()]))
def test_no_runs(results):
    assert table.NOTHING in printed(results)
    assert report.ascii_table(results) == table.NOTHING + "\n"
    assert report.markdown_table(results) == table.NOTHING + "\n"


def test_every_metric_may_be_missing():
    whole = full_results()
    for metric in {run["metric"] for run in whole["runs"]}:
        left = [make_file(*(run for run in whole["runs"] if run["metric"] != metric))]
        assert printed(left) and report.ascii_table(left) and report.markdown_table(left)
        alone = [make_file(*(run for run in whole["runs"] if run["metric"] == metric))]
        assert printed(alone) and report.ascii_table(alone) and report.markdown_table(alone)


def test_virtual_time_has_tables_of_growth():
    data = [virtual_results(("base", "upto:fast-path", "series"), {"line*2": 1.25})]
    for width in (80, 120):
        text = printed(data, width)
        assert all(len(line.rstrip()) <= width for line in text.splitlines())
        for words in ("-7.5%", "1.20\u20131.25", "36,000", "fitted on it"):
            assert words in text, words
        assert s.VIRTUAL in " ".join(text.split())
    text = report.ascii_table(data)
    assert all(len(line) <= 75 for line in text.splitlines())
    assert "| 16    | base        | 36,000 |   12.0 | 12.0-14.7 |      11.2 |  +7.5% |" in text
    assert "|       | series/base |   0.11 |   0.11 |         - |         - |      - |" in text
    assert "| 16 | base | 36,000 | 12.0 | 12.0\u201314.7 | 11.2 | +7.5% |" in report.markdown_table(data)
    assert s.VIRTUAL in text and s.VIRTUAL in report.markdown_table(data)
    assert s.WALL in report.ascii_table([full_results(accel="kvm")])


def test_what_is_too_wide_keeps_acquisitions_and_contentions_together():
    def sheet(heads, room):
        columns = [layout.Column(head, f"n{number}") for number, head in enumerate(heads)]
        return layout.Sheet(columns, [(1, [("base", [layout.Cell("x" * room)] * len(heads))])], notes=["a note"])

    def fitted(heads, room):
        parts = table._fitted(sheet(heads, room), table.WIDTH, table._ascii_table)
        assert [part.notes for part in parts] == [[]] * (len(parts) - 1) + [["a note"]]
        return [[column.name for column in part.columns] for part in parts]

    heads = ["acquisitions"] * 2 + ["contentions"] * 2
    assert fitted(heads, 10) == [["n0", "n1", "n2", "n3"]]
    assert fitted(heads, 14) == [["n0", "n1"], ["n2", "n3"]]
    assert fitted(heads, 34) == [["n0"], ["n1"], ["n2"], ["n3"]]


@pytest.mark.parametrize(
    "keys, clock", [({"clock": "virtual"}, s.VIRTUAL), ({}, s.EMULATED), ({"accel": "kvm"}, s.WALL)]
)
def test_the_clock_is_told_once(keys, clock):
    data = [full_results(**keys)]
    for text in (printed(data, 200), report.ascii_table(data), report.markdown_table(data)):
        assert " ".join(text.split()).count(clock) == 1


def test_the_verdict_comes_before_the_tables(results):
    data = [virtual_results(("base", "series"))]
    for text in (printed(data, 200), report.ascii_table(data), report.markdown_table(data)):
        text = " ".join(text.replace("\\", "").split())
        assert (
            text.index("16 vCPUs: dirty memory 36.0 us")
            < text.index("Better: ")
            < text.index("Worse: ")
            < text.index("Growth: relative")
        )


def test_every_output_says_what_does_not_repeat(tmp_path):
    data = make_file({**make_run(clock="virtual", vcpus=2, samples=[0.2, 0.6]), "repeats": False, "earlier": [[1, 2]]})
    page = report.write_page([data], tmp_path, []).read_text(encoding="utf-8")
    for text in (printed([data]), report.markdown_table([data]).replace("\\", ""), report.ascii_table([data]), page):
        assert "does not repeat from round to round (base with 2 vCPUs)" in " ".join(text.split())
        assert "600*" in text and "2 vCPUs, 1 retry" in " ".join(text.split())
