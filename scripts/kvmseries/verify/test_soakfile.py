"""The file of a soak: adding up, parts of another source, and a file that is whole or as it was."""

import json
import multiprocessing
import typing

import pytest
import yaml

from kvmseries.base.errors import Fail
from kvmseries.conftest import below, committed
from kvmseries.verify import soakfile

SOURCE = {"arm64": "a1", "x86_64": "b1"}
NAMES = ["one", "other"]
KINDS = typing.get_type_hints(soakfile.Part)


def part(**others):
    """A part that went well."""
    plain = {str: "x", list: [], dict: {}, float: 0.0}
    return {
        **{key: plain[typing.get_origin(kind) or kind] for key, kind in KINDS.items()},
        "arch": "arm64",
        "source": "a1",
        "configuration": "one",
        "outcome": "ok",
        "seconds": 360.0,
        **others,
    }


def test_parts_of_one_source_add_up(tmp_path):
    path = tmp_path / "new/soak.json"
    added = [
        part(counts={"vms": 2, "stops": 1}),
        part(configuration="other", seconds=720.5, counts={"vms": 5}),
        part(outcome="failed", reports=["BUG: x"], known=["BUG: y"]),
        part(source="a0", seconds=9999.0, outcome="failed"),
        part(arch="x86_64", source="b1"),
        part(arch="x86_64", source="a1"),
    ]
    for number, one in enumerate(added, 1):
        assert len(soakfile.append(path, "s", SOURCE, NAMES, one)) == number
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["schema"], data["series"], data["source"], data["parts"]) == (2, "s", SOURCE, added)
    configurations = data["sum"].pop("configurations")
    assert data["sum"] == {
        "hours": 0.5,
        "parts": 4,
        "failed": 1,
        "reports": 1,
        "known_reports": 1,
        "counts": {"stops": 1, "vms": 7},
        "parts_of_another_source": 2,
    }
    assert list(configurations) == NAMES
    assert configurations["other"] == {
        "hours": 0.2,
        "parts": 1,
        "failed": 0,
        "reports": 0,
        "known_reports": 0,
        "counts": {"vms": 5},
    }
    assert soakfile.load(path, "s") == added
    assert below(path.parent) == ["soak.json"]


def test_another_source_takes_the_sum(tmp_path):
    path = tmp_path / "soak.json"
    soakfile.append(path, "s", SOURCE, NAMES, part())
    soakfile.append(path, "s", {"arm64": "a2", "x86_64": "b1"}, NAMES, part(source="a2", seconds=36.0))
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["source"]["arm64"] == "a2" and len(found["parts"]) == 2
    assert (found["sum"]["hours"], found["sum"]["parts_of_another_source"]) == (0.01, 1)


FILE = {"schema": 2, "series": "s", "source": SOURCE, "sum": {}, "parts": [part()]}
WHOLE = json.dumps(FILE)


def without(entry, key):
    return {name: value for name, value in entry.items() if name != key}


def with_part(**others):
    return json.dumps({**FILE, "parts": [part(), part(**others)]})


@pytest.mark.parametrize(
    "text, line",
    [
        ("", "is cut short, or not JSON"),
        (WHOLE[:-9], "is cut short, or not JSON"),
        ("[" * 99999, "is cut short"),
        ("[]", "is not a file of a soak"),
        ("{}", "is not a file of a soak"),
        (
            WHOLE.replace('"schema": 2', '"schema": 1'),
            "has schema 1, this tool adds to 2: name another file with --json",
        ),
        (WHOLE.replace('"s"', '"t"'), "is not the file of a soak of s"),
        (json.dumps({"schema": 2}), "is not the file of a soak of s"),
        *((json.dumps(without(FILE, key)), f": '{key}' is a required property") for key in ("source", "sum", "parts")),
        (json.dumps({**FILE, "parts": {}}), ": parts: {} is not of type 'array'"),
        (json.dumps({**FILE, "parts": [1]}), ": parts[0]: 1 is not of type 'object'"),
        (
            WHOLE.replace('"when"', '"since"'),
            ": parts[0]: Additional properties are not allowed ('since' was unexpected)",
        ),
        *(
            (json.dumps({**FILE, "parts": [without(part(), key)]}), f": parts[0]: '{key}' is a required property")
            for key in KINDS
        ),
        *((with_part(**{key: True}), f": parts[1].{key}: True is not ") for key in KINDS),
        (with_part(outcome="fine"), ": parts[1].outcome: 'fine' is not one of ['ok', 'failed']"),
        (with_part(reports=[1]), ": parts[1].reports[0]: 1 is not of type 'string'"),
        (with_part(counts={"vms": 0.5}), ": parts[1].counts.vms: 0.5 is not of type 'integer'"),
        (WHOLE.replace("360.0", "-1"), ": parts[0].seconds: -1 is less than the minimum of 0"),
        (WHOLE.replace("360.0", "NaN"), ": parts[0].seconds: nan is not of type 'number'"),
    ],
)
def test_what_is_no_file_of_a_soak_is_refused_and_left_alone(tmp_path, text, line):
    path = tmp_path / "soak.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Fail) as caught:
        soakfile.append(path, "s", SOURCE, NAMES, part())
    assert str(caught.value).startswith(str(path)) and line in str(caught.value)
    assert str(caught.value).endswith(": name another file with --json, or remove it")
    assert path.read_text(encoding="utf-8") == text and below(tmp_path / "out") == ["locks", "locks/soak-soak.json"]


def test_binary_is_refused(tmp_path):
    (tmp_path / "soak.json").write_bytes(b"\xff\xfe")
    with pytest.raises(Fail, match="it is not text"):
        soakfile.load(tmp_path / "soak.json", "s")
    with pytest.raises(Fail, match="cannot read .*: Is a directory"):
        soakfile.load(tmp_path, "s")


def test_a_full_disk_leaves_the_file_as_it_was(small_disk):
    path = small_disk / "soak.json"
    soakfile.append(path, "s", SOURCE, NAMES, part())
    before = path.read_text(encoding="utf-8")
    with pytest.raises(Fail, match="disk full"):
        soakfile.append(path, "s", SOURCE, NAMES, part(complaints=["x" * 2000000]))
    assert path.read_text(encoding="utf-8") == before and below(small_disk) == ["soak.json"]


def test_no_permission(read_only):
    with pytest.raises(Fail, match="no permission to write|Read-only"):
        soakfile.append(read_only / "new/soak.json", "s", SOURCE, NAMES, part())


def test_an_interrupted_write_is_no_loss(tmp_path, monkeypatch):
    path = tmp_path / "soak.json"
    soakfile.append(path, "s", SOURCE, NAMES, part())
    before = path.read_text(encoding="utf-8")

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(soakfile.files.os, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        soakfile.append(path, "s", SOURCE, NAMES, part())
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == before
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "out"))
    assert len(soakfile.append(path, "s", SOURCE, NAMES, part())) == 2
    assert not list(tmp_path.glob(".*"))


def _many(path):
    for _ in range(20):
        soakfile.append(path, "s", SOURCE, NAMES, part())


def test_two_runs_add_to_one_file(tmp_path):
    path = tmp_path / "soak.json"
    runs = [multiprocessing.get_context("fork").Process(target=_many, args=(path,)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(soakfile.load(path, "s")) == 40


def test_a_part_that_lacks_a_key_is_a_bug(tmp_path):
    with pytest.raises(AssertionError):
        soakfile.append(tmp_path / "soak.json", "s", SOURCE, NAMES, {"when": "x"})


def test_keys_are_those_of_the_code():
    form = yaml.safe_load(soakfile.FORMAT.read_text(encoding="utf-8"))
    entry = form["$defs"]["part"]
    assert set(entry["properties"]) == set(entry["required"]) == set(KINDS)
    assert set(form["properties"]) == set(form["required"]) == set(FILE)
    assert form["properties"]["schema"]["const"] == soakfile.SCHEMA


@pytest.mark.parametrize("path", committed("soak-v*.json"), ids=lambda path: path.name)
def test_every_committed_file_is_readable(path):
    assert soakfile.load(path, path.stem[len("soak-") :])
