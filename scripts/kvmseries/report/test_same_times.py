"""States of the virtual clock's source that count as one (scripts/vtime/same.yaml) gave the same times."""

import hashlib
import shutil
import subprocess

import pytest

from kvmseries.base import paths
from kvmseries.conftest import wanted
from kvmseries.data import ids, results
from kvmseries.guest import vtime
from kvmseries.report import compare

CLOCK = paths.ROOT / "Documentation" / "results" / "clock"


def _evidence(entry):
    """(name, results of the older state, of the newer) of each pair of files."""
    older, newer = (CLOCK / entry[key] for key in ("like", "source"))
    names = sorted(path.name for path in older.glob("*.json"))
    assert names == sorted(path.name for path in newer.glob("*.json"))
    return [(name, results.load(older / name), results.load(newer / name)) for name in names]


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
    assert {entry["source"]: entry["code"] for entry in ids.same()}.get(ids.instrument(), code) == code
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
