import json
import os

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below
from kvmseries.data import results

RUN = {
    "series": "v5.10",
    "kernel": "base",
    "arch": "arm64",
    "accel": "tcg",
    "clock": "wall",
    "model": "",
    "cpu": "max",
    "config": "normal",
    "params": [],
    "test": "dirty_log_perf_test",
    "args": "-i 2",
    "vcpus": 2,
    "iteration": 1,
    "metric": "dirty_memory_time",
    "unit": "s",
    "samples": [0.5, 1],
}
# What a loaded run says more, where its rounds were not judged.
READ = {**RUN, "repeats": None, "earlier": []}
MADE = {
    "ids": {"kernels": {"base": "0123456789abcdef", "series": None}, "guest": "0" * 16, "qemu": None},
    "command": "scripts/series bench v5.10",
    "seconds": 7,
}


def without(key):
    return {name: value for name, value in RUN.items() if name != key}


def store(path, data):
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
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


def test_schema_1_knew_no_virtual_clock(tmp_path):
    path = store(tmp_path / "x.json", {"schema": 1, "host": {}, "runs": [without("model")]})
    assert results.load(path) == {
        "schema": 4,
        "host": {},
        "runs": [READ],
        "made": {"ids": {}, "rounds": 2, "seconds": 0, "command": ""},
    }


def test_schema_2_knew_not_what_it_was_made_of(tmp_path):
    path = store(tmp_path / "x.json", {"schema": 2, "host": {"command": "scripts/series bench"}, "runs": [RUN]})
    assert results.load(path)["made"] == {"ids": {}, "rounds": 2, "seconds": 0, "command": "scripts/series bench"}


VIRTUAL = {**RUN, "clock": "virtual", "model": "nominal"}


@pytest.mark.parametrize("schema", [2, 3])
@pytest.mark.parametrize("samples, repeats", [([1, 1.01], True), ([1, 2], False), ([1], None)])
def test_before_schema_4_the_samples_say_whether_they_repeat(tmp_path, schema, samples, repeats):
    path = store(
        tmp_path / "x.json",
        {"schema": schema, "host": {}, "made": {**MADE, "rounds": 2}, "runs": [{**VIRTUAL, "samples": samples}]},
    )
    data = results.load(path)
    assert data["schema"] == 4
    assert [(run["repeats"], run["earlier"]) for run in data["runs"]] == [(repeats, [])]


def test_what_does_not_repeat_and_what_was_measured_again_is_kept(tmp_path):
    run = {**VIRTUAL, "repeats": False, "earlier": [[1, 2], [3, 4]]}
    results.save(tmp_path / "x.json", {}, [run], MADE)
    assert results.load(tmp_path / "x.json")["runs"] == [run]


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"repeats": 1}, "'repeats' is 1"),
        ({"repeats": "no"}, "'repeats' is 'no'"),
        ({"earlier": None}, "'earlier' is None"),
        ({"earlier": [[]]}, "has no samples"),
        ({"earlier": [1]}, "has no samples"),
        ({"earlier": [["1"]]}, "sample '1' is"),
    ],
)
def test_what_rounds_say_of_themselves_is_checked(change, reason):
    with pytest.raises(Fail, match=f"here.*{reason}"):
        results.check_run({**READ, **change}, "here")


def test_schema_4_says_whether_rounds_repeat(tmp_path):
    path = store(tmp_path / "x.json", {"schema": 4, "host": {}, "made": {**MADE, "rounds": 2}, "runs": [RUN]})
    with pytest.raises(Fail, match="run 0 has no 'earlier'"):
        results.load(path)


@pytest.mark.parametrize(
    "path",
    sorted((paths.ROOT / "Documentation/results").glob("v*.json"))
    + sorted((paths.ROOT / "Documentation/results").glob("qemu*.json")),
    ids=lambda path: path.name,
)
def test_every_committed_file_is_readable(path):
    data = results.load(path)
    assert data["runs"] and all(set(run) == {*results.KEYS, *results.ROUNDS} for run in data["runs"])


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
        ({"rounds": "3"}, "'rounds' of 'made' is '3'"),
        ({"ids": None}, "'ids' of 'made' is None"),
        ({"ids": {"odd": "1"}}, "'ids' has 'odd': '1'"),
        ({"ids": {"kernels": "1"}}, "'ids' has 'kernels': '1'"),
        ({"ids": {"kernels": {"base": 1}}}, "'ids' has 1 in 'kernels'"),
        ({"more": 1}, "'made' needs ids, rounds"),
    ],
)
def test_a_file_that_does_not_say_what_it_is_made_of_is_refused(tmp_path, change, reason):
    path = store(tmp_path / "x.json", {"schema": 3, "host": {}, "runs": [RUN], "made": {**MADE, "rounds": 2, **change}})
    with pytest.raises(Fail, match=reason):
        results.load(path)


def test_the_checked_example_is_right():
    results.check_run(RUN, "here")
    assert set(RUN) == set(results.KEYS)


@pytest.mark.parametrize("key", sorted(RUN))
def test_a_run_without_a_key_is_refused(key):
    with pytest.raises(Fail, match=f"^here has no '{key}'$"):
        results.check_run(without(key), "here")


@pytest.mark.parametrize("key", sorted(RUN))
@pytest.mark.parametrize("value", [{}, True, 1.5])
def test_a_value_of_the_wrong_type_is_refused(key, value):
    with pytest.raises(Fail, match=f"^here: '{key}' is "):
        results.check_run({**RUN, key: value}, "here")


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"more": 1}, "unknown key 'more'"),
        ({"clock": "sun"}, "clock is 'sun'"),
        ({"samples": []}, "has no samples"),
        ({"samples": ["1"]}, "sample '1' is not a number"),
        ({"samples": [1, True]}, "sample True is not"),
        ({"samples": [None]}, "sample None is not"),
        ({"clock": "virtual"}, "clock is 'virtual' and model ''"),
        ({"model": "nominal"}, "clock is 'wall' and model 'nominal'"),
        ({"vcpus": None}, "'vcpus' is None"),
        ({"iteration": "1"}, "'iteration' is '1'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(change, reason):
    with pytest.raises(Fail, match=reason):
        results.check_run({**RUN, **change}, "here")


@pytest.mark.parametrize("run", [None, [], "run", 3])
def test_a_run_that_is_no_object_is_refused(run):
    with pytest.raises(Fail, match="here is not an object"):
        results.check_run(run, "here")


@pytest.mark.parametrize(
    "data, reason",
    [
        ("", "not JSON"),
        ("vCPUs  base  series", "not JSON"),
        ('{"schema": 1,', "not JSON"),
        ("[" * 100000, "not JSON"),
        ("[]", "it has no runs"),
        ("3", "it has no runs"),
        ({"schema": 1, "host": {}}, "it has no runs"),
        ({"schema": 5, "host": {}, "runs": []}, "has schema 5, this tool reads 1 to 4"),
        ({"schema": 3, "host": {}, "runs": []}, "'made' needs ids, rounds, command, seconds"),
        ({"host": {}, "runs": []}, "has schema None"),
        ({"schema": 2, "host": [], "runs": []}, "'host' or 'runs' is of the wrong type"),
        ({"schema": 2, "host": {}, "runs": {}}, "'host' or 'runs' is of the wrong type"),
        ({"schema": 2, "host": {}, "runs": [without("model")]}, "run 0 has no 'model'"),
        (
            {"schema": 1, "host": {}, "runs": [{**without("model"), "clock": "virtual"}]},
            "run 0: clock is 'virtual' and model ''",
        ),
        ({"schema": 1, "host": {}, "runs": [RUN, without("unit")]}, "run 1 has no 'unit'"),
    ],
)
def test_a_file_that_is_no_results_file_is_refused(tmp_path, data, reason):
    path = store(tmp_path / "x.json", data)
    with pytest.raises(Fail, match=reason) as caught:
        results.load(path)
    assert str(path) in str(caught.value)


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(Fail, match="not JSON"):
        results.load(tmp_path / "x")


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
    with pytest.raises(Fail, match="run 0 has no 'unit'"):
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
