from io import StringIO

import pytest
from rich.console import Console

from kvmseries.data import ids
from kvmseries.report import page, state, table
from kvmseries.report.conftest import make_file, make_run

NOW = {"base": "b" * 16, "series": "5" * 16, "upto:a": None}


@pytest.fixture(autouse=True)
def today(monkeypatch):
    """Today's ids are NOW's; the tests' is 7..., the instrument's 9..."""
    monkeypatch.setattr(ids, "today", lambda label, series, what: "7" * 16 if what == "tests" else NOW[label])
    monkeypatch.setattr(ids, "instrument", lambda: "9" * 16)


def results(kernels, **others):
    return {
        **make_file(*(make_run(kernel=name) for name in kernels)),
        "made": {"ids": {"kernels": kernels, **others}, "rounds": 3, "seconds": 1, "command": ""},
    }


def notes(*data):
    return state.notes(data, "v5.10", "arm64", "dirty_log_perf_test")


def test_results_of_today_s_patches_need_no_note():
    kernels = {"base": NOW["base"], "series": NOW["series"]}
    assert notes(results(kernels, tests={"v5.10": "7" * 16}, guest="8" * 16, instrument="9" * 16)) == []


def test_an_old_label_and_one_that_is_not_known_are_named():
    assert notes(results({"base": NOW["base"], "series": "0" * 16, "upto:a": "1" * 16})) == [
        "series: old, patches/ make another source today.",
        "upto:a: of an unknown state of the source.",
    ]


def test_what_else_has_changed_is_named():
    found = notes(results({"base": NOW["base"]}, tests={"v5.10": "0", "programs": "0"}, instrument="0"))
    assert found == ["measured with another state of: the test programs, v5.10's tests, the instrument."]


def test_another_series_base_runs_the_tests_of_that_series(monkeypatch):
    today = {("series", "v5.10"): "1" * 16, ("series", "v7.3"): "2" * 16}
    monkeypatch.setattr(ids, "today", lambda label, series, what: today[label, series] if what == "tests" else None)
    found = results({}, tests={"v5.10": "1" * 16, "v7.3": "2" * 16})
    assert state.changes(found, "v5.10") == []
    assert state.changes(results({}, tests={"v7.3": "3" * 16}), "v5.10") == ["v7.3's tests"]


def test_files_without_ids_are_of_an_unknown_state_and_a_note_is_of_its_test_alone():
    old = make_file(make_run(kernel="base"), make_run(kernel="series"))
    assert notes(old, old) == ["base, series: of an unknown state of the source."]
    assert notes(results({"base": NOW["base"]}), make_file(make_run(test="change_pte_test"))) == []


def test_every_kind_of_report_says_it():
    old = [results({"series": "0" * 16})]
    console = Console(file=StringIO(), width=120)
    table.print_table(old, console)
    for text in (console.file.getvalue(), page.page_html(old, [])):
        assert "series: old, patches/ make another source today" in " ".join(text.split())
