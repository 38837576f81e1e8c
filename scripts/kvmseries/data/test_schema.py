"""All schemas are valid; Documentation/results.schema.yaml, by which results.py and other programs judge a file."""

import copy
import functools
import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import committed
from kvmseries.data import parse, results, schema as forms, shape, summary
from kvmseries.data.test_results import MADE, READ, RUN, store

COMMITTED = [path for path in committed() if "runs" in json.loads(path.read_text(encoding="utf-8"))]
TRACE = {
    "series": "qemu-10.0",
    "kernel": "base",
    "config": "bitmap",
    "args": "",
    "vcpus": 1,
    "rows": [[0, 1, 2, 3, 4.5]],
}
UNFINISHED = {"key": "0", "parts": [["normal", "nominal", 0, "base"]], "left": 1, "complaints": []}
WHOLE = {
    "schema": 4,
    "host": {},
    "made": {**MADE, "rounds": 2, "unfinished": UNFINISHED},
    "runs": [READ],
    "traces": [TRACE],
}
SCHEMAS = [
    path
    for folder in ("Documentation", "tools-testing-selftests-kvm", "scripts/vtime")
    for path in sorted((paths.ROOT / folder).glob("*.schema.*"))
]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_every_schema_is_one(path):
    jsonschema.Draft202012Validator.check_schema(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", committed("soak-qemu-*.json"), ids=lambda path: path.name)
def test_every_committed_soak_of_qemu_has_its_form(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    form = paths.ROOT / "Documentation/soak-qemu.schema.yaml"
    assert not forms.wrong(data, form)
    # What does not belong there is seen.
    assert "host" in forms.wrong({**data, "host": []}, form)


def test_what_validates_is_loaded_when_it_is_needed():
    """It takes a quarter of a second."""
    modules = ["kvmseries.cli", "kvmseries.data.published", "kvmseries.figures.texts", "kvmseries.verify.soak"]
    code = f"import sys, {', '.join(modules)}; print('jsonschema' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


@functools.lru_cache(maxsize=None)
def schema():
    """The validator that other programs have."""
    text = yaml.safe_load(results.FORMAT.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(text)
    return jsonschema.Draft202012Validator(text)


def refused(data, tmp_path):
    """(whether the schema refuses `data`, whether results.load() does)."""
    try:
        results.load(store(tmp_path / "x.json", data))
        loaded = True
    except Fail:
        loaded = False
    return not schema().is_valid(data), not loaded


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_every_committed_file_is_as_the_schema_says(path):
    assert [error.message for error in schema().iter_errors(json.loads(path.read_text(encoding="utf-8")))] == []


def test_each_committed_file_is_of_the_version_that_is_read():
    versions = {json.loads(path.read_text(encoding="utf-8"))["schema"] for path in COMMITTED}
    assert len(COMMITTED) > 20 and versions == {4}


def test_a_whole_file_is_taken(tmp_path):
    assert refused(WHOLE, tmp_path) == (False, False)


def test_what_bench_writes_is_as_the_schema_says(tmp_path):
    results.save(tmp_path / "x.json", {"cpu": "x"}, [RUN], {**MADE, "unfinished": UNFINISHED}, [TRACE])
    schema().validate(json.loads((tmp_path / "x.json").read_text(encoding="utf-8")))


def test_the_documentation_has_each_key_and_an_example():
    text = (paths.ROOT / "Documentation/results.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```json\n(.*?)^```", text, re.M | re.S)
    schema().validate(json.loads(example))
    names = [
        *shape.Run.__annotations__,
        *summary.MAIN_TIMES,
        *parse._PHASES.values(),
        *parse._ITERATION_PHASES.values(),
    ]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_keys_are_those_of_the_code():
    made, run = schema().schema["$defs"]["made"], schema().schema["$defs"]["run"]
    assert {*run["required"], "model"} == set(shape.KEYS) and set(run["properties"]) == set(shape.Run.__annotations__)
    assert set(made["properties"]) == set(shape.Made.__annotations__) == {*made["required"], "unfinished"}
    assert set(made["properties"]["ids"]["properties"]) == set(shape.Ids.__annotations__)
    rest = made["properties"]["unfinished"]
    assert set(rest["properties"]) == set(rest["required"]) == set(shape.Unfinished.__annotations__)
    trace = schema().schema["$defs"]["trace"]
    assert set(trace["properties"]) == set(trace["required"]) == set(shape.Trace.__annotations__)
    assert schema().schema["properties"]["schema"]["const"] == results.SCHEMA


GONE = object()


@pytest.mark.parametrize(
    "way, value",
    [
        (("schema",), 5),
        (("schema",), "4"),
        (("schema",), GONE),
        (("host",), []),
        (("host",), GONE),
        (("runs",), {}),
        (("runs",), GONE),
        (("made",), GONE),
        (("traces",), {}),
        (("runs", 0), []),
        (("runs", 0, "more"), 1),
        *((("runs", 0, key), GONE) for key in shape.Run.__annotations__),
        *((("made", key), GONE) for key in shape.Made.__annotations__ if key != "unfinished"),
        (("made", "more"), 1),
        (("made", "rounds"), "2"),
        (("made", "ids", "odd"), "1"),
        (("made", "ids", "kernels"), "1"),
        (("made", "ids", "kernels", "base"), 1),
        (("made", "ids", "guest"), 1),
        (("made", "unfinished"), []),
        (("made", "unfinished", "more"), 1),
        *((("made", "unfinished", key), GONE) for key in shape.Unfinished.__annotations__),
        (("made", "unfinished", "left"), "1"),
        *((("traces", 0, key), GONE) for key in shape.Trace.__annotations__),
        (("traces", 0, "rows"), [[1, 2]]),
        (("traces", 0, "rows"), [["0", 1, 2, 3, 4]]),
        (("traces", 0, "more"), 1),
    ],
    ids=lambda value: (
        ".".join(map(str, value)) if isinstance(value, tuple) else "gone" if value is GONE else repr(value)
    ),
)
def test_negative_control_what_one_refuses_the_other_does(tmp_path, way, value):
    data = copy.deepcopy(WHOLE)
    place = data
    for key in way[:-1]:
        place = place[key]
    if value is GONE:
        del place[way[-1]]
    else:
        place[way[-1]] = value
    assert refused(data, tmp_path) == (True, True)
