import json
import os
import re

import jsonschema
import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, committed
from kvmseries.data import results, shape
from kvmseries.report.conftest import make_run

RUN = make_run(args="-i 2", vcpus=2, iteration=1, samples=[0.5, 1])
# What a loaded run says more, where its rounds were not judged.
READ = {**RUN, "repeats": None, "earlier": []}
MADE = {
    "ids": {"kernels": {"base": "0123456789abcdef", "series": None}, "guest": "0" * 16, "qemu": None},
    "command": "scripts/series bench v5.10",
    "seconds": 7,
}


def without(key):
    return {name: value for name, value in READ.items() if name != key}


def whole(**changes):
    """A results file, with `changes`."""
    return {"schema": 4, "host": {}, "made": {**MADE, "rounds": 2}, "runs": [], **changes}


def store(path, data):
    text = data if isinstance(data, (str, bytes)) else json.dumps(data)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_what_is_saved_is_loaded(tmp_path):
    path = tmp_path / "new/results.json"
    results.save(path, {"cpu": "x"}, [RUN, {**RUN, "iteration": None}], MADE)
    assert results.load(path) == {
        "schema": 4,
        "host": {"cpu": "x"},
        "made": {**MADE, "rounds": 2},
        "runs": [READ, {**READ, "iteration": None}],
    }
    assert below(tmp_path / "new") == ["results.json"]


def test_every_run_is_a_line(tmp_path):
    """So that a run that changes is a line that changes."""
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    runs = [{**READ, "iteration": number, "params": ["a\nb"]} for number in (1, 2, 3)]
    host = {"cpu": "x", "tools": {"gcc": None}, "runs": [1]}
    results.save(before, host, runs, MADE)
    results.save(after, host, [runs[0], {**runs[1], "samples": [7, 8]}, runs[2]], MADE)
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    assert [json.loads(line.rstrip(",")) for line in old if "dirty_log_perf_test" in line] == runs
    assert sum(one != other for one, other in zip(old, new, strict=True)) == 1
    assert results.load(before)["host"] == host
    assert before.read_bytes().endswith(b"}\n")


def test_results_without_runs_are_loaded(tmp_path):
    results.save(tmp_path / "x.json", {}, [], MADE)
    assert results.load(tmp_path / "x.json") == {"schema": 4, "host": {}, "made": {**MADE, "rounds": 0}, "runs": []}


VIRTUAL = {**RUN, "clock": "virtual", "model": "nominal"}


def test_what_does_not_repeat_and_what_was_measured_again_is_kept(tmp_path):
    run = {**VIRTUAL, "repeats": False, "earlier": [[1, 2], [3, 4]]}
    results.save(tmp_path / "x.json", {}, [run], MADE)
    assert results.load(tmp_path / "x.json")["runs"] == [run]


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"repeats": 1}, "repeats: 1 is not of type 'boolean', 'null'"),
        ({"repeats": "no"}, "repeats: 'no' is not"),
        ({"earlier": None}, "earlier: None is not of type 'array'"),
        ({"earlier": [[]]}, "earlier[0]: [] should be non-empty"),
        ({"earlier": [1]}, "earlier[0]: 1 is not of type 'array'"),
        ({"earlier": [["1"]]}, "earlier[0][0]: '1' is not of type 'number'"),
    ],
)
def test_what_rounds_say_of_themselves_is_checked(change, reason):
    with pytest.raises(Fail, match=re.escape(f"here: {reason}")):
        results.check({**READ, **change}, "here", "run")


@pytest.mark.parametrize("path", committed("v*.json") + committed("qemu*.json"), ids=lambda path: path.name)
def test_every_committed_file_is_readable(path):
    data = results.load(path)
    assert data["runs"] and all(set(run) == set(shape.Run.__annotations__) for run in data["runs"])
    # As host_info() names them.
    assert not [tool for tool in data["host"].get("tools", ()) if "/" in tool]


def test_rounds_are_those_of_the_nominal_model_s_times():
    virtual = {**RUN, "clock": "virtual", "model": "nominal", "samples": [1, 2, 3]}
    assert (
        results.rounds(
            [virtual, {**virtual, "model": "line*2", "samples": [1]}, {**virtual, "unit": "1", "samples": [1]}]
        )
        == 3
    )
    assert results.rounds([virtual, {**virtual, "samples": [1]}]) == 1
    assert results.rounds([{**RUN, "unit": "1", "samples": [1, 2]}]) == 2


@pytest.mark.parametrize(
    "words, line",
    [
        (["bench", "v5.10", "--json", "/home/tess/x.json"], "scripts/series bench v5.10 --json x.json"),
        (["bench", "--json=/home/tess/x.json", "--vcpus=1,2"], "scripts/series bench --json=x.json --vcpus=1,2"),
        (
            ["bench", "--json", str(paths.ROOT / "Documentation/x.json")],
            "scripts/series bench --json Documentation/x.json",
        ),
        (["bench", "--tree", "/home/tess/linux", "--case", "stall"], "scripts/series bench --tree TREE --case stall"),
        (["bench", "--test-args=-b 2M"], "scripts/series bench '--test-args=-b 2M'"),
    ],
)
def test_a_command_has_nobody_s_paths(words, line):
    assert results.command(words) == line


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"rounds": "3"}, "made.rounds: '3' is not of type 'integer'"),
        ({"ids": None}, "made.ids: None is not of type 'object'"),
        ({"ids": {"odd": "1"}}, "made.ids: Additional properties are not allowed ('odd' was unexpected)"),
        ({"ids": {"kernels": "1"}}, "made.ids.kernels: '1' is not"),
        ({"ids": {"kernels": {"base": 1}}}, "made.ids.kernels.base: 1 is not"),
        ({"ids": {"guest": "1"}}, "made.ids.guest: '1' does not match"),
        ({"more": 1}, "made: Additional properties are not allowed ('more' was unexpected)"),
    ],
)
def test_a_file_that_does_not_say_what_it_is_made_of_is_refused(tmp_path, change, reason):
    path = store(tmp_path / "x.json", whole(made={**MADE, "rounds": 2, **change}))
    with pytest.raises(Fail, match=re.escape(f"{path}: {reason}")):
        results.load(path)


def test_the_checked_example_is_right():
    results.check(RUN, "here", "run")
    assert set(RUN) == set(shape.KEYS)


@pytest.mark.parametrize("key", sorted(READ))
def test_a_run_without_a_key_is_refused(tmp_path, key):
    path = store(tmp_path / "x.json", whole(runs=[without(key)]))
    with pytest.raises(Fail, match=rf"runs\[0\]: '{key}' is a required property$"):
        results.load(path)


@pytest.mark.parametrize("key", sorted(RUN))
@pytest.mark.parametrize("value", [{}, True, 1.5])
def test_a_value_of_the_wrong_type_is_refused(key, value):
    """By any program that reads the schema."""
    form = {"$ref": "#/$defs/run", **yaml.safe_load(results.FORMAT.read_text(encoding="utf-8"))}
    assert not jsonschema.Draft202012Validator({"$ref": form["$ref"], "$defs": form["$defs"]}).is_valid(
        {**READ, key: value}
    )
    with pytest.raises(Fail, match=f"^here: {key}: .* is not "):
        results.check({**RUN, key: value}, "here", "run")


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"more": 1}, "Additional properties are not allowed ('more' was unexpected)"),
        ({"clock": "sun"}, "clock: 'sun' is not one of ['wall', 'virtual']"),
        ({"samples": []}, "samples: [] should be non-empty"),
        ({"samples": ["1"]}, "samples[0]: '1' is not of type 'number'"),
        ({"samples": [1, True]}, "samples[1]: True is not of type 'number'"),
        ({"samples": [None]}, "samples[0]: None is not"),
        ({"samples": [1, float("nan")]}, "samples[1]: nan is not"),
        ({"samples": [float("-inf")]}, "samples[0]: -inf is not"),
        ({"clock": "virtual"}, "model: '' should be non-empty: a virtual clock has a model"),
        ({"model": "nominal"}, "model: '' was expected: only a virtual clock has a model"),
        ({"vcpus": None}, "vcpus: None is not"),
        ({"vcpus": 2.0}, "vcpus: 2.0 is not"),
        ({"iteration": "1"}, "iteration: '1' is not"),
        ({"samples": "x" * 1000}, f"samples: '{'x' * 99} ... {'x' * 76}' is not of type 'array'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(change, reason):
    with pytest.raises(Fail, match=f"^{re.escape(f'here: {reason}')}"):
        results.check({**RUN, **change}, "here", "run")


@pytest.mark.parametrize("run", [None, [], "run", 3])
def test_a_run_that_is_no_object_is_refused(run):
    with pytest.raises(Fail, match="^here: .* is not of type 'object'$"):
        results.check(run, "here", "run")


@pytest.mark.parametrize(
    "data, reason",
    [
        ("", "not JSON"),
        ("vCPUs  base  series", "not JSON"),
        ('{"schema": 1,', "not JSON"),
        ("[" * 100000, "not JSON"),
        (b"\x7fELF\xff\xfe", "not JSON"),
        ("[]", "it has no runs"),
        ("3", "it has no runs"),
        ({"schema": 1, "host": {}}, "it has no runs"),
        (whole(schema=5), "has schema 5, this tool reads 4"),
        (whole(schema=3), "has schema 3, this tool reads 4"),
        ({"host": {}, "runs": []}, "has schema None"),
        ({"schema": 4, "host": {}, "runs": []}, "'made' is a required property"),
        (whole(host=[]), r"host: \[\] is not of type 'object'"),
        (whole(runs={}), "runs: {} is not of type 'array'"),
        (whole(runs=[{**without("model"), "clock": "virtual"}]), r"runs\[0\]: 'model' is a required property"),
        (whole(runs=[READ, without("unit")]), r"runs\[1\]: 'unit' is a required property"),
        (json.dumps(whole(traces=[float("nan")])), r"traces\[0\]: nan is not of type 'object'"),
    ],
)
def test_a_file_that_is_no_results_file_is_refused(tmp_path, data, reason):
    path = store(tmp_path / "x.json", data)
    with pytest.raises(Fail, match=reason) as caught:
        results.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name, reason", [(".", "Is a directory"), ("none", "No such file")])
def test_a_file_that_cannot_be_opened_is_named(tmp_path, name, reason):
    with pytest.raises(Fail, match=f"cannot read {tmp_path / name}: {reason}"):
        results.load(tmp_path / name)


def test_a_file_without_permission_is_named(tmp_path):
    path = store(tmp_path / "x.json", {"schema": 1, "host": {}, "runs": []})
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(Fail, match="cannot read .*x.json: Permission denied"):
            results.load(path)
    finally:
        if root:
            os.seteuid(0)


def test_a_bad_run_is_not_saved_and_the_old_file_stays(tmp_path):
    path = tmp_path / "kept/results.json"
    results.save(path, {}, [RUN], MADE)
    old = path.read_bytes()
    with pytest.raises(Fail, match=r"kept/results.json: runs\[0\]: 'unit' is a required property"):
        results.save(path, {}, [without("unit")], MADE)
    assert path.read_bytes() == old
    assert below(tmp_path / "kept") == ["results.json"]


def test_a_save_that_breaks_off_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "kept/results.json"
    results.save(path, {}, [RUN], MADE)
    old = path.read_bytes()

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(KeyboardInterrupt):
        results.save(path, {"new": 1}, [RUN, RUN], MADE)
    assert path.read_bytes() == old
    assert below(tmp_path / "kept") == ["results.json"]


def test_a_full_disk_leaves_no_half_file(small_disk):
    path = small_disk / "results.json"
    results.save(path, {}, [RUN], MADE)
    old = path.read_bytes()
    with pytest.raises(Fail, match="^disk full: .*results.json"):
        results.save(path, {"much": "x" * (2 << 20)}, [RUN], MADE)
    assert path.read_bytes() == old
    assert below(small_disk) == ["results.json"]


def test_the_host_says_which_tools_it_had_and_not_where(program, tmp_path):
    program("some-tool", "echo some-tool 1.2\necho more\n")
    host = results.host_info([str(tmp_path / "bin/some-tool"), "no-such-tool"], {"base": "5.10"})
    assert host["tools"] == {"some-tool": "some-tool 1.2", "no-such-tool": None}
    assert host["kernels"] == {"base": "5.10"}
    assert host["cpus"] > 0 and host["memory"] > 1 << 20 and host["cpu"]
