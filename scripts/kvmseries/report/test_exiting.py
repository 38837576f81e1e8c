"""Tests of the report on vm_killed_test; all numbers are made up."""

from kvmseries.data import parse
from kvmseries.data.test_parse import KILLED
from kvmseries.report import compare, exiting, own, page, verdict
from kvmseries.report.conftest import make_file, make_run, merging_results, only
from kvmseries.report.test_aging import texts


def killed(series=1.5, clock="virtual"):
    return make_file(
        *(
            make_run(
                clock=clock,
                test=exiting.TEST,
                args="-b 64",
                kernel=kernel,
                vcpus=1,
                metric="exit_time",
                iteration=None,
                samples=[time * 1e-3] * 3,
            )
            for kernel, time in (("base", 2), ("series", 2 * series))
        )
    )


def test_only_this_test_has_the_table():
    assert own.of(only([killed()])) is exiting
    assert own.of(only([merging_results()])) is not exiting


def test_the_parser_has_the_metric_of_the_table():
    assert tuple(measure.metric for measure in parse.parse(exiting.TEST, KILLED)) == exiting.METRICS


def test_the_table_is_in_us_and_relative_to_base():
    rows = texts(exiting.sheet(only([killed()])))
    assert [rows[1, kernel]["exit of a killed VM (us)"] for kernel in ("base", "series", "series/base")] == [
        "2,000",
        "3,000",
        "1.50",
    ]


def test_verdict_and_highlights():
    assert verdict.of(only([killed()])).head.startswith(
        "1 vCPU: exit of a killed VM 2.00 ms \u2192 3.00 ms, 1.50 times base"
    )
    assert exiting.highlights(only([killed()])) == ["1 vCPU, exit of a killed VM: 2.00 ms on base, 3.00 ms on series"]


def test_times_of_the_wall_clock_are_no_measure():
    assert exiting.measures(only([killed(clock="wall")])) == []


def test_the_page_has_the_table():
    assert "Exit of a killed VM" in page.page_html([killed()], [])


def test_less_is_better():
    (change,) = [entry for entry in compare.compare(killed(1), killed(1.2)).changes if entry.verdict != compare.SAME]
    assert change.verdict == compare.WORSE
