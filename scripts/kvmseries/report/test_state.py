import hashlib
import shutil
import subprocess
from io import StringIO

import pytest
from rich.console import Console

from kvmseries import report
from kvmseries.base import paths
from kvmseries.conftest import wanted
from kvmseries.data import ids
from kvmseries.data import results as data_results
from kvmseries.guest import vtime
from kvmseries.report import compare, state
from kvmseries.report.conftest import make_file, make_run

# The real one: the fixture below has its own.
INSTRUMENT = ids.instrument
NOW = {"base": "b" * 16, "series": "5" * 16, "upto:a": None}


@pytest.fixture(autouse=True)
def today(monkeypatch):
    """Today's ids are NOW's; the tests' is 7..., the guest's 8..., the clock's 9..., the model's a..."""
    monkeypatch.setattr(ids, "today", lambda label, series, what: "7" * 16 if what == "tests" else NOW[label])
    monkeypatch.setattr(ids, "guest", lambda: "8" * 16)
    monkeypatch.setattr(ids, "instrument", lambda: "9" * 16)
    monkeypatch.setattr(ids, "model", lambda arch, name: "a" * 16)


def results(kernels, **others):
    return {
        **make_file(*(make_run(kernel=name) for name in kernels)),
        "made": {"ids": {"kernels": kernels, **others}, "rounds": 3, "seconds": 1, "command": ""},
    }


def test_results_of_today_s_patches_need_no_note():
    assert (
        state.notes(
            [
                results(
                    {"base": NOW["base"], "series": NOW["series"]},
                    tests={"v5.10": "7" * 16},
                    guest="8" * 16,
                    instrument="9" * 16,
                    models={"nominal": "a" * 16},
                )
            ]
        )
        == []
    )


def test_an_old_label_and_one_that_is_not_known_are_named():
    found = state.notes([results({"base": NOW["base"], "series": "0" * 16, "upto:a": "1" * 16})])
    assert found == [
        "v5.10 arm64, dirty_log_perf_test: series: old: patches/ make another source today.",
        "v5.10 arm64, dirty_log_perf_test: upto:a: of an unknown state of the source.",
    ]


def test_what_else_has_changed_is_named():
    found = state.notes(
        [results({"base": NOW["base"]}, tests={"v5.10": "0"}, guest="0", instrument="0", models={"line*2": "0"})]
    )
    assert found == [
        "v5.10 arm64, dirty_log_perf_test: measured with another state of: v5.10's tests, the guest, the virtual clock, its model."
    ]


def test_a_test_program_or_a_debug_patch_that_has_changed_is_named(monkeypatch):
    today = {"x-holds.patch": "1" * 16, "hold_test.c": "2" * 16}
    monkeypatch.setattr(ids, "own", today.get)
    assert state.changes(results({}, own=today), "v5.10", "arm64") == []
    assert state.changes(results({}, own={**today, "hold_test.c": "3" * 16, "gone.c": "4" * 16}), "v5.10", "arm64") == [
        "hold_test.c",
        "gone.c",
    ]


def test_another_series_base_runs_the_tests_of_that_base(monkeypatch):
    today = {("series", "v5.10"): "1" * 16, ("base", "v7.3"): "2" * 16, ("series", "v7.3"): "3" * 16}
    monkeypatch.setattr(ids, "today", lambda label, series, what: today[label, series] if what == "tests" else None)
    found = results({}, tests={"v5.10": "1" * 16, "v7.3": "2" * 16})
    assert state.changes(found, "v5.10", "arm64") == []
    assert state.changes(results({}, tests={"v7.3": "3" * 16}), "v5.10", "arm64") == ["v7.3's tests"]


def test_files_without_ids_are_of_an_unknown_state():
    old = make_file(make_run(kernel="base"), make_run(kernel="series"))
    assert state.notes([old, old]) == [
        "v5.10 arm64, dirty_log_perf_test: base, series: of an unknown state of the source."
    ]


def test_a_file_that_is_old_is_told_by_its_test():
    """The other one is of today's source."""
    old = make_file(make_run(kernel="base", test="change_pte_test"))
    assert state.notes([results({"base": NOW["base"]}), old]) == [
        "v5.10 arm64, change_pte_test: base: of an unknown state of the source."
    ]


def test_every_kind_of_report_says_it(tmp_path):
    old = [results({"series": "0" * 16})]
    console = Console(file=StringIO(), width=120)
    report.print_table(old, console)
    page = report.write_page(old, tmp_path, []).read_text(encoding="utf-8")
    for text in (console.file.getvalue(), report.markdown_table(old), report.ascii_table(old), page):
        assert "series: old: patches/ make another source today" in " ".join(text.split())


# States of the virtual clock that count as one

CLOCK = paths.ROOT / "Documentation" / "results" / "clock"


def _evidence(entry):
    """(name, results of the older state, of the newer) of each pair of files."""
    older, newer = (CLOCK / entry[key] for key in ("like", "source"))
    names = sorted(path.name for path in older.glob("*.json"))
    assert names == sorted(path.name for path in newer.glob("*.json"))
    return [(name, data_results.load(older / name), data_results.load(newer / name)) for name in names]


def _measured():
    """The entries that change more than comments."""
    code = {entry["source"]: entry["code"] for entry in ids.same()}
    return [entry for entry in ids.same() if entry["code"] != code.get(entry["like"])]


def _code(folder):
    """The id of the C source in `folder` without comments and white space."""
    wanted("gcc")
    texts = []
    for path in sorted(folder.glob("*.[ch]")):
        words = ["gcc", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c", path]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        texts.append(f"{path.name} {' '.join(text.split())}")
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _differing(before, after):
    """How many times both have, and those that `scripts/series compare` says differ."""
    changes = [change for change in compare.compare(before, after).changes if change.unit == "s"]
    return len(changes), [change for change in changes if change.verdict != compare.SAME]


@pytest.mark.parametrize("entry", _measured(), ids=lambda entry: entry["source"])
def test_states_of_the_clock_that_count_as_one_gave_the_same_times(entry):
    found = _evidence(entry)
    assert {run["arch"] for _name, before, _after in found for run in before["runs"]} == {"arm64", "x86_64"}
    for _name, before, after in found:
        old, new = before["made"]["ids"], after["made"]["ids"]
        assert (old["instrument"], new["instrument"]) == (entry["like"], entry["source"])
        for what in ("kernels", "tests", "guest", "configs", "models"):
            assert old[what] == new[what]
        count, differing = _differing(before, after)
        assert count and not differing


def test_negative_control_another_time_is_not_the_same():
    _name, before, after = _evidence(_measured()[-1])[0]
    for run in after["runs"]:
        if run["metric"] == "dirty_memory_time" and run["vcpus"] == 16 and run["kernel"] == "series":
            run["samples"] = [value * 1.06 for value in run["samples"]]
    assert {change.key["metric"] for change in _differing(before, after)[1]} == {"dirty_memory_time"}


def test_today_s_code_is_what_the_file_says(tmp_path):
    code = _code(vtime.SOURCE)
    # A state that is not in the file has times of its own.
    assert {entry["source"]: entry["code"] for entry in ids.same()}.get(INSTRUMENT(), code) == code
    # Other comments are the same code, another number is not.
    shutil.copytree(vtime.SOURCE, tmp_path / "vtime")
    with open(tmp_path / "vtime/clock.c", "a", encoding="utf-8") as file:
        file.write("\n/* A comment. */\n")
    assert _code(tmp_path / "vtime") == code
    text = (tmp_path / "vtime/costs.c").read_text(encoding="utf-8")
    (tmp_path / "vtime/costs.c").write_text(text.replace("slice = 500000", "slice = 500001"), encoding="utf-8")
    assert _code(tmp_path / "vtime") != code


def test_the_states_follow_each_other(monkeypatch):
    monkeypatch.setattr(
        ids, "same", lambda: [{"source": "c" * 16, "like": "b" * 16}, {"source": "b" * 16, "like": "a" * 16}]
    )
    assert [ids.same_times(name * 16) for name in "abcd"] == ["a" * 16, "a" * 16, "a" * 16, "d" * 16]
