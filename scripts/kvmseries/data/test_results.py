import copy
import json
import re

import jsonschema
import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, committed
from kvmseries.data import parse, results, shape, summary
from kvmseries.report.conftest import make_run

RUN = make_run(args="-i 2", vcpus=2, iteration=1, samples=[0.5, 1])
# What a loaded run says more, where its rounds were not judged.
READ = {**RUN, "repeats": None, "earlier": []}
MADE = {
    "ids": {"kernels": {"base": "0123456789abcdef", "series": None}, "guest": "0" * 16, "qemu": None},
    "command": "scripts/series bench v5.10",
    "seconds": 7,
}
VIRTUAL = {**RUN, "clock": "virtual", "model": "nominal"}
TRACE = {"series": "mini", "kernel": "base", "config": "bitmap", "args": "", "vcpus": 1, "rows": [[0, 1, 2, 3, 4.5]]}
WHOLE = {"schema": 4, "host": {}, "made": {**MADE, "rounds": 2}, "runs": [READ], "traces": [TRACE]}
# What other programs judge a file by.
FORM = jsonschema.Draft202012Validator(yaml.safe_load(results.FORMAT.read_text(encoding="utf-8")))
GONE, A_NUMBER = object(), {"parameters": {"a": 1}, "slice_ns": 1}


def changed(way, value):
    """WHOLE with another value at a place, or without it."""
    data = place = copy.deepcopy(WHOLE)
    for key in way[:-1]:
        place = place[key]
    if value is GONE:
        del place[way[-1]]
    else:
        place[way[-1]] = value
    return data


def store(path, data):
    text = data if isinstance(data, (str, bytes)) else json.dumps(data)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "runs, rounds",
    [([RUN, {**RUN, "iteration": None}], 2), ([{**VIRTUAL, "repeats": False, "earlier": [[1, 2], [3]]}], 2), ([], 0)],
)
def test_what_is_saved_is_loaded_and_is_as_the_schema_says(tmp_path, runs, rounds):
    """Every run is a line: a run that changes is a line that changes."""
    path, host = tmp_path / "new/results.json", {"cpu": "x", "tools": {"gcc": None}, "runs": [1]}
    runs = [{**run, "params": ["a\nb"]} for run in runs]
    results.save(path, host, runs, MADE, [TRACE])
    read = [{"repeats": None, "earlier": [], **run} for run in runs]
    made = {**MADE, "rounds": rounds}
    assert results.load(path) == {**WHOLE, "host": host, "made": made, "runs": read}
    text = path.read_text(encoding="utf-8")
    assert [json.loads(line.rstrip(",")) for line in text.splitlines() if "dirty_log_perf_test" in line] == read
    FORM.validate(json.loads(text))
    assert below(tmp_path / "new") == ["results.json"]


@pytest.mark.parametrize("path", committed("v*.json") + committed("qemu*.json"), ids=lambda path: path.name)
def test_a_committed_file_names_tools_as_host_info_does(path):
    data = results.load(path)
    assert data["runs"] and not [tool for tool in data["host"].get("tools", ()) if "/" in tool]


def test_rounds_are_those_of_the_nominal_model_s_times():
    virtual = {**VIRTUAL, "samples": [1, 2, 3]}
    others = [{**virtual, "model": "line*2", "samples": [1]}, {**virtual, "unit": "1", "samples": [1]}]
    assert results.rounds([virtual, *others]) == 3
    assert results.rounds([virtual, {**virtual, "samples": [1]}]) == 1
    assert results.rounds([{**RUN, "unit": "1", "samples": [1, 2]}]) == 2


@pytest.mark.parametrize(
    "words, line",
    [
        (["bench", "v5.10", "--json", "/home/tess/x.json"], "scripts/series bench v5.10 --json x.json"),
        (["bench", "--json=/home/tess/x.json", "--vcpus=1,2"], "scripts/series bench --json=x.json --vcpus=1,2"),
        (["bench", "--json", str(paths.ROOT / "model/x.json")], "scripts/series bench --json model/x.json"),
        (["bench", "--tree", "/home/tess/linux", "--case", "stall"], "scripts/series bench --tree TREE --case stall"),
        (["bench", "--test-args=-b 2M"], "scripts/series bench '--test-args=-b 2M'"),
    ],
)
def test_a_command_has_nobody_s_paths(words, line):
    assert results.command(words) == line


def test_the_documentation_has_each_key_and_an_example():
    text = (paths.ROOT / "Documentation/results.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```json\n(.*?)^```", text, re.M | re.S)
    FORM.validate(json.loads(example))
    phases = [*parse._PHASES.values(), *parse._ITERATION_PHASES.values()]
    names = [*shape.Run.__annotations__, *summary.MAIN_TIMES, *phases]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_keys_are_those_of_the_code():
    parts = FORM.schema["$defs"]
    made, run, trace = parts["made"], parts["run"], parts["trace"]
    assert set(run["required"]) == set(shape.KEYS) and set(run["properties"]) == set(shape.Run.__annotations__)
    assert set(made["properties"]) == set(shape.Made.__annotations__) == set(made["required"])
    assert set(made["properties"]["ids"]["properties"]) == set(shape.Ids.__annotations__)
    assert set(trace["properties"]) == set(trace["required"]) == set(shape.Trace.__annotations__)


REQUIRED = [
    *(((), key) for key in ("host", "made")),
    *((("runs", 0), key) for key in shape.Run.__annotations__),
    *((("made",), key) for key in shape.Made.__annotations__),
    *((("traces", 0), key) for key in shape.Trace.__annotations__),
]


@pytest.mark.parametrize(
    "way, value, reason",
    [
        *(((*place, key), GONE, f"'{key}' is a required property") for place, key in REQUIRED),
        *((("runs", 0, key), value, f"runs[0].{key}: ") for key in READ for value in ({}, 1.5)),
        *((("runs", 0, key), True, f"runs[0].{key}: ") for key in RUN),
        (("host",), [], "host: [] is not of type 'object'"),
        (("host",), {"kernels": "text"}, "host.kernels: 'text' is not of type 'object'"),
        (("host",), {"tools": None}, "host.tools: None is not of type 'object'"),
        (("host",), {"vtime": {"parameters": {}}}, "host.vtime: 'slice_ns' is a required property"),
        (("host",), {"vtime": A_NUMBER}, "host.vtime.parameters.a: 1 is not of type 'object'"),
        (("runs",), {}, "runs: {} is not of type 'array'"),
        (("traces",), {}, "traces: {} is not"),
        (("runs", 0), [], "runs[0]: [] is not of type 'object'"),
        (("runs", 0), None, "runs[0]: None is not of type 'object'"),
        (("runs", 0, "more"), 1, "runs[0]: Additional properties are not allowed ('more' was unexpected)"),
        (("runs", 0, "repeats"), 1, "runs[0].repeats: 1 is not of type 'boolean', 'null'"),
        (("runs", 0, "earlier"), None, "runs[0].earlier: None is not of type 'array'"),
        (("runs", 0, "earlier"), [[]], "runs[0].earlier[0]: [] should be non-empty"),
        (("runs", 0, "earlier"), [1], "runs[0].earlier[0]: 1 is not of type 'array'"),
        (("runs", 0, "earlier"), [["1"]], "runs[0].earlier[0][0]: '1' is not of type 'number'"),
        (("runs", 0, "clock"), "sun", "clock: 'sun' is not one of ['wall', 'virtual']"),
        (("runs", 0, "clock"), "virtual", "model: '' should be non-empty: a virtual clock has a model"),
        (("runs", 0, "model"), "nominal", "model: '' was expected: only a virtual clock has a model"),
        (("runs", 0, "samples"), [], "samples: [] should be non-empty"),
        (("runs", 0, "samples"), ["1"], "samples[0]: '1' is not of type 'number'"),
        (("runs", 0, "samples"), [1, True], "samples[1]: True is not of type 'number'"),
        (("runs", 0, "samples"), "x" * 1000, f"samples: '{'x' * 99} ... {'x' * 76}' is not of type 'array'"),
        (("runs", 0, "vcpus"), None, "vcpus: None is not"),
        (("runs", 0, "iteration"), "1", "iteration: '1' is not"),
        (("made", "more"), 1, "made: Additional properties are not allowed ('more' was unexpected)"),
        (("made", "rounds"), "3", "made.rounds: '3' is not of type 'integer'"),
        (("made", "ids"), None, "made.ids: None is not of type 'object'"),
        (("made", "ids", "odd"), "1", "made.ids: Additional properties are not allowed ('odd' was unexpected)"),
        (("made", "ids", "kernels"), "1", "made.ids.kernels: '1' is not"),
        (("made", "ids", "kernels", "base"), 1, "made.ids.kernels.base: 1 is not"),
        (("made", "ids", "guest"), "1", "made.ids.guest: '1' does not match"),
        (("traces", 0, "rows"), [[1, 2]], "traces[0].rows[0]: [1, 2] is too short"),
        (("traces", 0, "rows"), [["0", 1, 2, 3, 4]], "traces[0].rows[0][0]: '0' is not"),
        (("traces", 0, "more"), 1, "traces[0]: Additional properties"),
    ],
)
def test_what_is_wrong_is_refused_here_and_by_other_programs(tmp_path, way, value, reason):
    data = changed(way, value)
    path = store(tmp_path / "x.json", data)
    with pytest.raises(Fail, match=f"^{re.escape(str(path))}: .*{re.escape(reason)}") as caught:
        results.load(path)
    assert "\n" not in str(caught.value)
    assert not FORM.is_valid(data)


@pytest.mark.parametrize(
    "key, value, reason",
    [
        ("samples", [1, float("nan")], "samples[1]: nan is not"),
        ("samples", [float("-inf")], "samples[0]: -inf is not"),
        ("vcpus", 2.0, "vcpus: 2.0 is not"),
    ],
)
def test_a_number_is_finite_and_an_integer_has_no_fraction(key, value, reason):
    with pytest.raises(Fail, match=re.escape(f"here: runs[0].{reason}")):
        results.check(changed(("runs", 0, key), value), "here")


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
        ({**WHOLE, "schema": 5}, "has schema 5, this tool reads 4"),
        ({**WHOLE, "schema": 3}, "has schema 3, this tool reads 4"),
        ({"host": {}, "runs": []}, "has schema None"),
        (json.dumps({**WHOLE, "traces": [float("nan")]}), r"traces\[0\]: nan is not of type 'object'"),
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


def test_a_bad_run_is_not_saved_and_the_old_file_stays(tmp_path):
    path = tmp_path / "kept/results.json"
    results.save(path, {}, [RUN], MADE)
    old = path.read_bytes()
    with pytest.raises(Fail, match=r"kept/results.json: runs\[0\]: 'model' is a required property"):
        results.save(path, {}, [{"series": "x"}], MADE)
    assert path.read_bytes() == old
    assert below(tmp_path / "kept") == ["results.json"]


def test_the_host_says_which_tools_it_had_and_not_where(program, tmp_path):
    program("some-tool", "echo some-tool 1.2\necho more\n")
    host = results.host_info([str(tmp_path / "bin/some-tool"), "no-such-tool"], {"base": "5.10"})
    assert host["tools"] == {"some-tool": "some-tool 1.2", "no-such-tool": None}
    assert host["kernels"] == {"base": "5.10"}
    assert host["cpus"] > 0 and host["memory"] > 1 << 20 and host["cpu"]
