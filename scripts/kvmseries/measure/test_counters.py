"""What the virtual clock counted."""

import json
import re

import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from kvmseries.data import parse
from kvmseries.data.parse import Measure
from kvmseries.data.test_parse import CLEARED, NEWER, OUTPUT
from kvmseries.measure import counters
from vtime import vtime

ENTRY = {**{name: number for number, name in enumerate(counters.COUNTS, 5)}, "faults_handled": 4}
ENTRY["instructions_per_fault"] = 2.5
GOOD = {"line": "a", "accesses": 100, "inversions": 10, "turns": 100, "strays": 2, "forced": 0}
HEALTH = {"end": True, "late": 0, "polls": 1, "reads": 1}


def _lines(*entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def test_counters_are_all_phases_of_a_run_in_good_health(tmp_path):
    phases = [GOOD, {**GOOD, "line": "b"}]
    write(tmp_path / "counters.json", _lines(*phases, HEALTH))
    assert counters.load(tmp_path) == phases


@pytest.mark.parametrize(
    "text, reason",
    [
        (None, "the virtual clock left no counters in "),
        ('{"line": "a', "left no counters in "),
        ("", "the virtual clock broke off"),
        ('{"line": "a"}\n', "the virtual clock broke off"),
        (_lines(GOOD, {**GOOD, "inversions": 11}, HEALTH), "ends with 'a' 11 of 100 accesses .* use fewer vCPUs"),
        (_lines(GOOD, {**GOOD, "strays": 3}, HEALTH), "ends with 'a' CPUs went on without their turn, 3 of 100 times"),
        (_lines({**GOOD, "forced": 1}, HEALTH), "stood still in the phase that ends with 'a'"),
        (_lines(GOOD, {**HEALTH, "late": 2}), "a CPU ran without a clock 2 times"),
        (_lines(GOOD, {**HEALTH, "polls": 0}), "by other calls"),
        (_lines(GOOD, {**HEALTH, "reads": 0}), "by other calls"),
    ],
)
def test_counters_that_must_not_be_used(tmp_path, text, reason):
    if text is not None:
        write(tmp_path / "counters.json", text)
    with pytest.raises(Fail, match=reason):
        counters.load(tmp_path)


def test_counters_belong_to_the_command_that_ran():
    lines = [
        "guest physical test memory offset: 0x1",
        "@@ begin x-1",
        "Populate memory time: 1s",
        "@@ end x-1 rc=0 seconds=1",
        "Populate memory time: 2s",
        "@@ begin x-2",
        "@@ end x-2 rc=1 seconds=1",
    ]
    found = counters.by_test([{"line": line, "n": n} for n, line in enumerate(lines)])
    assert found == {"x-1": [{"line": lines[2], "n": 2}, {"line": "exit", "n": 3}], "x-2": [{"line": "exit", "n": 6}]}


@pytest.mark.parametrize(
    "line, phase, iteration",
    [("Iteration 3 dirty memory time: 0.1s", "dirty", 3), ("Populate memory time: 1s", "populate", None)],
)
def test_measures_are_counters_by_phase(line, phase, iteration):
    found = counters.measures([{**ENTRY, "line": line}])
    assert found[-1] == Measure(f"instructions_per_fault.{phase}", iteration, 2.5, "1")
    assert {(measure.iteration, measure.unit) for measure in found} == {(iteration, "1")}
    assert {measure.metric.removesuffix(f".{phase}"): measure.value for measure in found[:-1]} == {
        **{f"faults_{kind}": number for number, kind in enumerate(("permission", "translation", "access", "other"), 5)},
        **{"tlbi_local": 9, "tlbi_broadcast": 10, "atomics": 11, "foreign_atomics": 12},
    }


@pytest.mark.parametrize("output", [OUTPUT, CLEARED, NEWER], ids=["5.10", "cleared", "7.3"])
def test_the_instrument_ends_its_phases_where_the_lock_counts_end_theirs(output):
    source = (vtime.SOURCE / "phases.c").read_text(encoding="utf-8")
    ends = re.findall(r'"([^"]+)"', re.search(r" ends\[\] = \{(.*?)\}", source, re.S)[1])
    found = [parse.phase(line.split(":")[0])[0] for line in output.splitlines() if any(end in line for end in ends)]
    assert found[:5] == ["setup", "populate", "enable", "dirty", "get"] and found[-1] == "disable"


@pytest.mark.parametrize(
    "line", ["exit", "Iteration 1 get dirty log time: 1s", "guest physical test memory offset: 0xff"]
)
def test_phases_in_which_no_vcpu_faults_are_left_out(line):
    assert not counters.measures([{**ENTRY, "line": line}])


def test_without_faults_there_are_no_instructions_per_fault():
    found = counters.measures([{**ENTRY, "line": "Populate memory time: 1s", "faults_handled": 0}])
    assert len(found) == 8 and not [m for m in found if m.metric.startswith("instructions")]
