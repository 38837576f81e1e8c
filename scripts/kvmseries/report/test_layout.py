"""Tests of how numbers are written; all numbers are made up."""

import pytest

from kvmseries.data import summary as s
from kvmseries.report import layout
from kvmseries.report.conftest import full_results, make_file, make_run


def of(*runs):
    return s.summarise([make_file(*runs)])[0]


def count(metric, number=1, **keys):
    return make_run(config="lockstat", unit="1", metric=metric, samples=[number], **keys)


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "0.00"),
        (1, "1.00"),
        (0.346, "0.35"),
        (0.0995, "0.10"),
        (0.0874, "0.087"),
        (0.0012, "0.0012"),
        (9.99, "9.99"),
        (12.34, "12.3"),
        (99.96, "100"),
        (1234.5, "1,234"),
    ],
)
def test_ratio_text(number, text):
    assert layout.ratio_text(number) == text


@pytest.mark.parametrize(
    "seconds, expected",
    [
        ((0.5,), ("ms", 1000, 0)),
        ((0.5, 0.05), ("ms", 1000, 1)),
        ((0.005,), ("ms", 1000, 2)),
        ((0.0005,), ("us", 10**6, 0)),
        ((2e-6, 3e-5), ("us", 10**6, 2)),
        ((12.0, 150.0), ("s", 1, 1)),
        ((0.0,), ("ms", 1000, 3)),
        ((), ("ms", 1000, 3)),
    ],
)
def test_time_unit(seconds, expected):
    assert layout.time_unit([s.Value({(0, 0): second}) for second in seconds]) == expected


def test_spread_only_where_it_says_something():
    assert layout.value_cell(s.Value({(0, 0): 3, (0, 1): 3})) == layout.Cell("3")
    assert layout.value_cell(s.Value({(0, 0): 3, (0, 1): 5})) == layout.Cell("4", "3\u20135")
    assert layout.value_cell(None) == layout.Cell("\u2014")


def test_missing_is_a_dash_and_zero_is_zero():
    sheet = layout.lock_sheet(of(count(s.WRITES, 0), count(s.WRITES, 4, kernel="series")))
    assert [(label, [cell.text for cell in cells]) for label, cells in sheet.blocks[0][1]] == [
        ("base", ["0", "\u2014", "\u2014", "\u2014"]),
        ("series", ["4", "\u2014", "\u2014", "\u2014"]),
        ("series/base", ["\u2014"] * 4),
    ]


def test_total_contentions_only_where_they_are_not_split():
    def names(*runs):
        return [column.full for column in layout.lock_sheet(of(*runs)).columns]

    taken = ["write acquired", "read acquired"]
    split = ["write contended", "read contended"]
    total, write = count(s.CONTENDED), count(s.CONTENDED_WRITES)
    assert names(total) == taken + ["all contended"]
    assert names(total, write) == taken + split
    assert names(total, write, count(s.CONTENDED, kernel="series")) == taken + ["all contended"] + split


def test_headers_say_sum_and_leave_the_clock_to_the_head_of_the_group():
    summary = of(make_run(iteration=1), make_run(iteration=2))
    (column,) = layout.time_sheet(summary, s.MAIN_TIMES).columns
    assert column.full == "dirty memory time (ms), sum of 2 iterations"
    summary = of(make_run(iteration=1, clock="virtual"), make_run(clock="virtual", vcpus=2))
    (column,) = layout.time_sheet(summary, s.MAIN_TIMES).columns
    assert column.full == "dirty memory time (ms), sum over iterations"


def test_iterations_that_differ_have_no_ratio():
    summary = of(make_run(iteration=1), make_run(iteration=2), make_run(kernel="series", iteration=1))
    label, cells = layout.time_sheet(summary, s.MAIN_TIMES).blocks[0][1][-1]
    assert (label, cells[0].text) == ("series/base", "\u2014")


def test_join_of_different_vcpu_counts():
    summary = of(count(s.WRITES), make_run(vcpus=2), make_run(vcpus=2, kernel="series"))
    joined = layout.join(layout.lock_sheet(summary), layout.time_sheet(summary, s.MAIN_TIMES))
    assert [vcpus for vcpus, _ in joined.blocks] == [1, 2]
    for _, rows in joined.blocks:
        assert all(len(cells) == len(joined.columns) for _, cells in rows)


def test_phase_sheet():
    sheets = layout.phase_sheets(s.summarise([full_results()])[0])
    assert [vcpus for vcpus, _ in sheets] == [1, 2, 4]
    sheet = sheets[-1][1]
    assert [phase for phase, _ in sheet.blocks] == list(s.PHASES) and sheet.block_head == "phase"
    assert [(column.head, column.name) for column in sheet.columns] == [
        (head, name) for head in ("acquisitions", "contentions") for name in ("write", "read")
    ]
    dirty = dict(dict(sheet.blocks)["dirty"])
    assert [cell.text for cell in dirty["base"][:2]] == ["8,192", "0"]
    assert [cell.text for cell in dirty["series"][:2]] == ["0", "8,192"]
    assert [cell.text for cell in dirty["series/base"][:2]] == ["0.00", "\u2014"]
    assert len(sheet.columns) == 4  # it fits a phone


def test_highlights_take_the_most_vcpus_that_both_have():
    runs = [
        count(s.WRITES, number, kernel=kernel, vcpus=vcpus)
        for kernel, vcpus, number in (("base", 1, 10), ("series", 1, 5), ("base", 2, 99))
    ]
    (line,) = layout.highlights(of(*runs))
    assert line.startswith("1 vCPU, mmu_lock write") and "(\u00d7 0.50)" in line


def test_empty_sheets():
    summary = of(make_run(metric="unknown_metric"))
    for sheet in (
        layout.lock_sheet(summary),
        layout.time_sheet(summary, s.MAIN_TIMES),
        layout.time_sheet(summary, s.OTHER_TIMES),
    ):
        assert not sheet
    assert layout.phase_sheets(summary) == []
    assert layout.highlights(summary) == []


def latency(metric, nanoseconds, **keys):
    return make_run(metric=metric, samples=[ns / 1e9 for ns in nanoseconds], **keys)


def test_latencies_are_those_of_the_last_iteration_and_not_summed():
    sheet = layout.latency_sheet(
        of(
            latency("populate_latency_p50", [1776]),
            latency("dirty_latency_max", [700], iteration=1),
            latency("dirty_latency_max", [720, 1440], iteration=2),
            latency("dirty_latency_max", [540, 540], iteration=2, kernel="series"),
        )
    )
    assert [column.full for column in sheet.columns] == [
        "populate latency, p50 (ns)",
        "dirty latency, iteration 2, max (ns)",
    ]
    rows = dict(sheet.blocks[0][1])
    assert rows["base"] == [layout.Cell("1,776"), layout.Cell("1,080", "720\u20131,440")]
    assert rows["series"] == [layout.Cell("\u2014"), layout.Cell("540")]
    assert rows["series/base"][1].text == "0.50"


def test_without_latencies_there_is_no_sheet_of_them():
    assert not layout.latency_sheet(of(make_run()))


def unsteady(**more):
    """Runs of base, which repeats, and of the series, which does not, of populate with 2 vCPUs."""
    keys = {"metric": "populate_memory_time", "clock": "virtual", "vcpus": 2}
    return [
        {**make_run(**keys, samples=[0.5, 0.5, 0.5]), "repeats": True, "earlier": []},
        {**make_run(**keys, kernel="series", samples=[0.2, 0.6, 0.3]), "repeats": False, "earlier": [], **more},
    ]


def test_what_does_not_repeat_is_shown_as_a_range_with_a_mark():
    summary = of(*unsteady())
    rows = dict(layout.time_sheet(summary, s.MAIN_TIMES).blocks[0][1])
    assert rows["base"][0] == layout.Cell("500")
    assert rows["series"][0] == layout.Cell("200\u2013600*")
    assert rows["series/base"][0] == layout.Cell("0.40\u20131.20*")
    assert layout.repeat_notes(summary) == [
        "* populate memory time does not repeat from round to round (series with 2 vCPUs): the least and the greatest "
        "are shown. No reason is known."
    ]
    assert layout.repeat_notes(of(unsteady()[0])) == []


def test_a_sum_repeats_where_all_its_parts_do():
    runs = [
        {**make_run(iteration=1, clock="virtual", samples=[1, 1]), "repeats": True},
        {**make_run(iteration=2, clock="virtual", samples=[1, 3]), "repeats": False},
    ]
    cell = layout.time_sheet(of(*runs), s.MAIN_TIMES).blocks[0][1][0][1][0]
    assert cell == layout.Cell("2,000\u20134,000*")
    assert not of(runs[0]).unsteady


def test_the_reason_of_bench_yaml_is_told():
    (line,) = layout.repeat_notes(of(unsteady(args="-s anonymous_hugetlb_2mb")[1]))
    assert ". By chance: " in line and "mutexes" in line and line.endswith(").")


def test_what_was_measured_again_is_told():
    runs = unsteady(repeats=True, earlier=[[1, 2], [3, 4]])
    runs[0]["earlier"] = [[5, 6]]
    assert layout.repeat_notes(of(*runs)) == [
        "Measured again, because rounds did not agree: base with 2 vCPUs, 1 retry; series with 2 vCPUs, 2 retries. The "
        "results file keeps the earlier samples."
    ]


def test_old_kernels_are_marked_in_every_row_of_theirs():
    summary = of(*(make_run(kernel=kernel) for kernel in ("base", "upto:a", "series")))
    summary.old = {"upto:a", "series"}
    sheet = layout.marked(layout.time_sheet(summary, s.MAIN_TIMES), summary)
    assert [label for label, _ in sheet.blocks[0][1]] == ["base", "upto:a (old)", "series (old)", "series/base"]
    short = layout.Sheet(sheet.columns, [(1, [("a", []), ("ring-1024: series", []), ("ring-1024: base", [])])])
    assert [label for label, _ in layout.marked(short, summary).blocks[0][1]] == [
        "a (old)",
        "ring-1024: series (old)",
        "ring-1024: base",
    ]
