"""Tests of the report on dirty_hold_test; all numbers are made up."""

import pytest

from kvmseries.data import parse
from kvmseries.data.test_parse import HOLDS
from kvmseries.report import compare, holding, own, verdict
from kvmseries.report.conftest import make_file, make_run, merging_results, only
from kvmseries.report.test_aging import texts

# us on base; the series takes a tenth of it, but for what is WORSE.
TIMES = {
    "clear_busy_hold": 427,
    "clear_busy_write": 430,
    "clear_busy_time": 429,
    "clear_idle_hold": 428,
    "clear_idle_time": 429,
    "discard_hold": 26603,
    "discard_time": 27000,
}
WORSE = {"clear_busy_time": 2}


def holds(*left_out):
    return make_file(
        *(
            make_run(
                clock="virtual",
                test=holding.TEST,
                args="-b 64",
                kernel=kernel,
                vcpus=8,
                metric=metric,
                iteration=None,
                samples=[us * 1e-6 * (1 if kernel == "base" else WORSE.get(metric, 0.1))] * 3,
            )
            for kernel in ("base", "series")
            for metric, us in TIMES.items()
            if metric not in left_out
        )
    )


def test_only_this_test_has_the_table():
    assert own.of(only([holds()])) is holding
    assert own.of(only([merging_results()])) is not holding


def test_every_time_of_the_parser_has_a_column():
    assert (
        {measure.metric for measure in parse.parse(holding.TEST, HOLDS) if measure.unit == "s"}
        == set(holding.METRICS)
        == set(TIMES)
    )


def test_the_table_is_in_us_and_relative_to_base():
    rows = texts(holding.sheet(only([holds()])))
    assert rows[8, "base"]["clear, vCPUs write: longest hold (us)"] == "427"
    assert rows[8, "series"]["clear, vCPUs write: longest hold (us)"] == "42.7"
    assert rows[8, "series/base"]["discard: longest hold (us)"] == "0.10"
    assert len(rows[8, "base"]) == len(TIMES)
    assert len(texts(holding.sheet(only([holds("discard_hold")])))[8, "base"]) == len(TIMES) - 1


def test_verdict_and_highlights():
    found = verdict.of(only([holds()]))
    assert found.head.startswith("8 vCPUs: longest hold (clear, vCPUs write) 427 us \u2192 42.7 us, 0.10 of base")
    assert found.worse == ["time (clear, vCPUs write) 2.00 times base (8 vCPUs: 429 us \u2192 858 us)"]
    assert holding.highlights(only([holds()])) == [
        "8 vCPUs, longest hold (clear, vCPUs write): 427 us on base, 42.7 us on series",
        "8 vCPUs, longest write (clear, vCPUs write): 430 us on base, 43.0 us on series",
    ]


@pytest.mark.parametrize("metric", holding.METRICS)
def test_less_is_better(metric):
    before, after = (
        make_file(make_run(clock="virtual", test=holding.TEST, metric=metric, iteration=None, samples=[number] * 3))
        for number in (1e-4, 1.2e-4)
    )
    assert compare.compare(before, after).changes[0].verdict == compare.WORSE
