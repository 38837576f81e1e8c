"""Tests of growth, bands and errors; all numbers of ours are made up."""

import pytest

from kvmseries.data import published, summary as s
from kvmseries.report import layout, scaling
from kvmseries.report.conftest import GROWTH, HUGETLB, make_file, make_run, only, virtual_results

THP = "-b 4M -i 2 -m 2 -s anonymous_thp"


def curves(*results, metric=s.DIRTY):
    return {curve.kernel: curve for curve in scaling.curves(only(*results), metric)}


def test_growth_is_by_the_curves_own_vcpu():
    found = curves(virtual_results(("base", "upto:fast-path", "series")))
    assert list(found) == ["base", "upto:fast-path", "series"]
    for kernel, curve in found.items():
        assert curve.growth == pytest.approx(GROWTH[kernel])
        assert curve.band == {}


def test_errors_are_against_the_published_growth():
    found = curves(virtual_results(("base", "upto:fast-path", "series")))
    base = found["base"]
    assert base.column.id == "zhang2022-base"
    assert base.error(16) == pytest.approx(12.0 / (10.340 / 0.926) - 1)
    assert base.error(1) is None and base.error(64) is None
    assert base.worst == (pytest.approx(2.5 / (2.503 / 0.926) - 1), 4)
    assert found["upto:fast-path"].column.id == "zhang2022-fast-path"
    assert found["series"].column is None and found["series"].worst is None
    assert scaling.errors(found.values()) == [
        "base against Zhang 2022, base (fitted on it): worst error -7.5% at 4 vCPUs.",
        "fast-path against Zhang 2022, fast path (predicted): worst error -11.0% at 16 vCPUs.",
    ]


def test_the_arguments_choose_the_published_columns():
    def ids(args, metric=s.DIRTY, kernels=("upto:fast-path", "upto:parallel", "v7.3:base")):
        found = curves(virtual_results(kernels, args=args), metric=metric)
        return [curve.column and curve.column.id for curve in found.values()]

    assert ids(HUGETLB) == ["zhang2022-fast-path", None, None]
    assert ids(HUGETLB.replace(" -G", "")) == ["zhang2022-fast-path-vgic", None, None]
    assert ids(THP) == ["upton2022-base", "upton2022-series", "upton2022-series"]
    assert ids(THP, s.POPULATE) == ["upton2022-base-populate"] + ["upton2022-series-populate"] * 2
    assert ids("-s anonymous") == [None] * 3


def test_the_band_is_over_all_variants_and_the_nominal_model_at_the_points_that_variants_have():
    found = curves(virtual_results(("base",), {"line*2": 1.5, "line*0.5": 0.5, "insn*2": 0.9}))
    assert found["base"].growth[16] == pytest.approx(12.0)
    assert found["base"].band[16] == pytest.approx((6.5, 17.5)) and found["base"].band[1] == (1, 1)
    data = virtual_results(("base",))
    data["runs"] += virtual_results(("base",), {"line*2": 1.5}, vcpus=(1, 4))["runs"]
    band = curves(data)["base"].band
    assert band[4] == pytest.approx((2.5, 3.25)) and sorted(band) == [1, 4]


def test_without_one_vcpu_there_is_no_growth():
    curve = curves(virtual_results(("base",), vcpus=(2, 4)))["base"]
    assert curve.growth == {} and curve.worst is None
    sheet = scaling.sheet(only(virtual_results(("base",), vcpus=(2, 4))), s.DIRTY)
    texts = [cell.text for cell in sheet.blocks[0][1][0][1]]
    assert texts == ["3,600", layout.MISSING, "2,268", "1.28", layout.MISSING]
    assert "no point in common" in sheet.notes[-1]


def test_emulated_wall_clock_has_no_curves_and_real_hardware_has():
    runs = [make_run(vcpus=vcpus, samples=[vcpus]) for vcpus in (1, 2)]
    assert scaling.curves(only(make_file(*runs)), s.DIRTY) == []
    real = make_file(*({**run, "accel": "here"} for run in runs))
    assert scaling.curves(only(real), s.DIRTY)[0].growth == {1: 1, 2: 2}


@pytest.mark.parametrize(
    "iterations, chosen, compared", [((1, 2), 2, True), ((1, 2, 3), 2, True), ((1,), 1, False), ((None,), None, False)]
)
def test_the_iteration_is_the_published_one_or_the_last(iterations, chosen, compared):
    keys = {"clock": "virtual", "args": HUGETLB}
    data = make_file(*(make_run(**keys, iteration=one, samples=[one or 9.0]) for one in iterations))
    iteration, columns = scaling.chosen(only(data), s.DIRTY)
    assert (iteration, bool(columns)) == (chosen, compared)
    assert curves(data)["base"].values[1].median == (chosen or 9.0)


@pytest.mark.parametrize(
    "args, pages",
    [
        ("-b 4M", 1024),
        ("-b 2G", 524288),
        ("-b1m", 256),
        ("-b 4096", 1),
        ("-b 16k", 4),
        ("-b 1T", 2**28),
        ("-b 0", None),
        ("-b x", None),
        ("", None),
        ("-b", None),
        ("-b ²", None),
    ],
)
def test_pages(args, pages):
    assert published.pages(args) == pages
