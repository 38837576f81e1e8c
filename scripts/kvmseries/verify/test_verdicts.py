import json
import re
from types import SimpleNamespace

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, write
from kvmseries.verify import verdicts

NAME = "v5.10 arm64 max"
KEY = {"base": "5.10.262 4f", "config": "c", "selftests": "s", "qemu": "QEMU 7.2"}
ENTRY = {"key": {}, "results": {}, "splats": []}
RESULTS = {"alpha_test": "pass", "beta_test": "skip", "gamma_test_-m_2": "fail"}


def machine(entry):
    return json.dumps({"schema": 1, "machines": {"x": entry}})


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
        ("[" * 99999, "is damaged"),
        ("[]", "[] is not of type 'object'"),
        ('{"machines": {}}', "'schema' is a required property"),
        ('{"schema": 1}', "'machines' is a required property"),
        ('{"schema": 2}', "unknown schema 2"),
        ('{"schema": 1, "machines": []}', "machines: [] is not of type 'object'"),
        (machine([]), "machines.x: [] is not of type 'object'"),
        (machine({**ENTRY, "more": 1}), "machines.x: Additional properties are not allowed ('more' was unexpected)"),
        *(
            (
                machine({n: value for n, value in ENTRY.items() if n != key}),
                f"machines.x: '{key}' is a required property",
            )
            for key in ENTRY
        ),
        *((machine({**ENTRY, key: 1}), f"machines.x.{key}: 1 is not of type") for key in ENTRY),
        *((machine({**ENTRY, key: {"a": 1}}), f"machines.x.{key}.a: 1 is not of type") for key in ("key", "results")),
        (machine({**ENTRY, "splats": [1]}), "machines.x.splats[0]: 1 is not of type 'string'"),
    ],
)
def test_a_file_that_is_not_what_it_must_be(file, text, reason):
    write(file, text)
    end = "take the one that `make test-all` leaves in out/$"
    with pytest.raises(Fail, match=rf"base-verdicts.json:? {re.escape(reason)}.*: {end}"):
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


def test_the_key_installs_the_qemu_whose_version_it_has(mini, mirror, monkeypatch):
    def check(machine):
        raise Fail(f"QEMU for {machine.arch}")

    monkeypatch.setattr(verdicts.machines, "check", check)
    with pytest.raises(Fail, match="QEMU for x86_64"):
        verdicts.key(mini, "x86_64")


def test_the_key_follows_what_base_runs(mini, mirror, program, monkeypatch):
    monkeypatch.setattr(verdicts, "_FOLDERS", ("virt",))
    program("qemu-system-aarch64", "echo QEMU 1; echo Copyright")
    first = verdicts.key(mini, "arm64")
    assert set(first) == set(KEY) and first["qemu"] == "QEMU 1" and first == verdicts.key(mini, "arm64")
    monkeypatch.setattr(verdicts, "_FOLDERS", ("Makefile",))
    assert verdicts.key(mini, "arm64") == {**first, "selftests": verdicts.key(mini, "arm64")["selftests"]} != first
    monkeypatch.setattr(verdicts.kconfig, "load", lambda *_: SimpleNamespace(text="other"))
    assert verdicts.key(mini, "arm64")["config"] != first["config"]


def test_keys_are_those_of_the_code():
    entry = json.loads(verdicts.FORMAT.read_text(encoding="utf-8"))["$defs"]["entry"]
    assert set(entry["properties"]) == set(entry["required"]) == set(verdicts.Entry.__annotations__) == set(ENTRY)
