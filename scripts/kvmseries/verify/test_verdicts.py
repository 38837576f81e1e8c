import json
from types import SimpleNamespace

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, write
from kvmseries.verify import verdicts

NAME = "v5.10 arm64 max"
KEY = {"base": "5.10.262 4f", "config": "c", "selftests": "s", "qemu": "QEMU 7.2"}
RESULTS = {"alpha_test": "pass", "beta_test": "skip", "gamma_test_-m_2": "fail"}


@pytest.fixture(name="file")
def _file(tmp_path, monkeypatch):
    """The committed file, with one machine."""
    monkeypatch.setattr(paths, "TESTS", tmp_path / "tests")
    verdicts.file().parent.mkdir()
    verdicts.write(verdicts.file(), NAME, KEY, RESULTS, ["WARNING: at x"])
    return verdicts.file()


def test_what_was_written_is_known(file):
    entry, why = verdicts.known(NAME, KEY)
    assert not why and entry["results"] == RESULTS and entry["splats"] == ["WARNING: at x"]
    assert below(file.parent) == ["base-verdicts.json"]


@pytest.mark.parametrize("part", KEY)
def test_another_key_is_not_known_and_says_what_differs(file, part):
    assert verdicts.known(NAME, {**KEY, part: "other"}) == (None, f"another {part}")


def test_another_machine_is_not_known(file):
    assert verdicts.known("v5.10 x86_64 max", KEY) == (None, "it has no such machine")
    file.unlink()
    assert verdicts.known(NAME, KEY) == (None, "it has no such machine")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "is damaged"),
        ('{"schema": 1, "mach', "is damaged"),
        ("[]", "is damaged"),
        ('{"schema": 1}', "is damaged"),
        ('{"schema": 1, "machines": {"x": {"key": {}, "results": []}}}', "is damaged"),
        ('{"schema": 2}', "unknown schema 2"),
    ],
)
def test_a_file_that_is_not_what_it_must_be(file, text, reason):
    write(file, text)
    with pytest.raises(Fail, match=f"base-verdicts.json:? {reason}.*take the one that `make test-all` leaves in out/$"):
        verdicts.known(NAME, KEY)


def test_a_new_file_keeps_the_other_machines(file, tmp_path):
    new = tmp_path / "out.json"
    verdicts.write(new, "second", KEY, {}, [])
    verdicts.write(new, "third", KEY, {}, [])
    assert set(json.loads(new.read_text())["machines"]) == {NAME, "second", "third"}


def test_what_base_does_otherwise_is_said(file):
    entry, _ = verdicts.known(NAME, KEY)
    assert not verdicts.complaints(entry, RESULTS, ["WARNING: at x"], ())
    new = {"alpha_test": "fail", "beta_test": "skip", "delta_test": "pass"}
    assert verdicts.complaints(entry, new, ["BUG: y"], ()) == [
        "alpha_test: fail on base, pass in the file",
        "delta_test: pass on base, not there in the file",
        "gamma_test_-m_2: not run on base, fail in the file",
        "base reports what the file does not have: BUG: y",
    ]
    assert verdicts.complaints(entry, new, [], {"alpha_test", "delta_test", "gamma_test_-m_2"}) == []


def test_a_file_that_cannot_be_written_is_one_line(file, read_only):
    with pytest.raises(Fail, match="^no permission to write"):
        verdicts.write(read_only / "x.json", NAME, KEY, RESULTS, [])


def test_the_key_follows_what_base_runs(mini, mirror, program, monkeypatch):
    monkeypatch.setattr(verdicts, "_FOLDERS", ("virt",))
    program("qemu-system-aarch64", "echo QEMU 1; echo Copyright")
    first = verdicts.key(mini, "arm64")
    assert set(first) == set(KEY) and first["qemu"] == "QEMU 1" and first == verdicts.key(mini, "arm64")
    monkeypatch.setattr(verdicts, "_FOLDERS", ("Makefile",))
    assert verdicts.key(mini, "arm64") == {**first, "selftests": verdicts.key(mini, "arm64")["selftests"]} != first
    monkeypatch.setattr(verdicts.kconfig, "load", lambda *_: SimpleNamespace(text="other"))
    assert verdicts.key(mini, "arm64")["config"] != first["config"]
