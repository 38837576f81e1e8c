"""What a benchmark printed, as metrics: "# metric NAME[/ITERATION] VALUE UNIT" lines, and lockphase's counts.

bench.yaml says which metrics a test has.  One that is not known is an error: a figure that is silently dropped or misread is
worse than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base.errors import Fail
from . import benchmarks

# What programs print -> what results files have: a time, or a count.
UNITS = {"s": "s", "pages": "1", "KiB": "1", "count": "1", "x": "1"}
_METRIC = re.compile(r"# metric ([^\s/]+)(?:/(\d+))? (-?\d+(?:\.\d+)?(?:e[-+]?\d+)?) (\S+)$")
_LOCK = re.compile(r'@@ lock phase="([^"]*)" class="([^"]*)" mode=(write|read) (.*)$')
_ITERATIONS = re.compile(r"Test iterations: (\d+)$", re.M)
# Lines that end a phase of a test, as lockphase and the virtual clock see them -> suffix of its counts.
_PHASES = {
    "Populate memory time": "populate",
    "Enabling dirty logging time": "enable",
    "Disabling dirty logging time": "disable",
    "exit": "exit",
    "guest physical test memory offset": "setup",  # 5.10
    "guest physical test memory": "setup",
}  # 7.3
_ITERATION_PHASES = {
    "dirty memory": "dirty",
    "get dirty log": "get",
    "clear dirty log": "clear",
    # access_tracking_stress_test
    "age idle memory": "age",
    "access memory": "access",
    "fault memory in": "fault",
    "discard fresh memory": "discard",
    "check idle memory": "check",
}
NOTHING_HARVESTED = "no harvest of -H fell into the writing"


@dataclass(frozen=True)
class Measure:
    """One figure of one run of a test."""

    metric: str
    iteration: int | None  # int, or None where there is none
    value: float
    unit: str  # "s" or "1"


def metrics(test: str, output: str) -> list[Measure]:
    """What the metric lines of `output` say.  Raises Fail for one that bench.yaml does not have."""
    found: dict[tuple[str, int | None], Measure] = {}
    for line in map(str.strip, output.splitlines()):
        if not line.startswith("# metric"):
            continue
        match = _METRIC.match(line)
        column = benchmarks.metric(test, match[1]) if match else None
        if not match or not column:
            raise Fail(f"{test} printed a metric that bench.yaml does not know: '{line}'")
        if UNITS.get(match[4]) != ("s" if column.timed else "1"):
            raise Fail(f"{test} printed a metric in another unit than bench.yaml has: '{line}'")
        key = match[1], int(match[2]) if match[2] else None
        if key in found:
            raise Fail(f"{test} printed a metric twice: '{line}'; run one guest mode at a time (-m)")
        found[key] = Measure(*key, float(match[3]), UNITS[match[4]])
    return list(found.values())


def parse(test: str, output: str) -> list[Measure]:
    """Measures of one run of `test` (a key of bench.yaml) from its output.  Raises Fail unless all is there."""
    found, entry = metrics(test, output), benchmarks.load()[test]
    names = {measure.metric for measure in found}
    needs = entry.get("needs", {"metrics": [], "hint": ""})
    if not found:
        raise Fail(f"{test} printed no metrics")
    for wanted in needs["metrics"]:
        if not names & set(benchmarks.braces(wanted)):
            raise Fail(f"{test} printed no {wanted}: {needs['hint']}")
    said, numbers = (
        _ITERATIONS.search(output),
        {measure.iteration for measure in found if measure.iteration is not None},
    )
    if said and numbers != set(range(1, int(said[1]) + 1)):
        raise Fail(f"{test} ran {said[1]} iterations but measured {len(numbers)}: {sorted(numbers)}")
    if nothing_harvested(output):
        raise Fail(f"{test}: {NOTHING_HARVESTED}: more memory (-b), or a shorter pause (-H)")
    return found + _lock_counts(test, output)


def nothing_harvested(output: str) -> bool:
    """Whether `output` is of dirty_log_perf_test -H, and in none of its iterations the log or the rings were harvested while
    vCPUs wrote: then it has shown nothing."""
    times = re.findall(r"^# metric (?:get|collect)_while_writing_times\S* (\S+)", output, re.M)
    return bool(times) and not any(map(float, times))


def _lock_counts(test: str, output: str) -> list[Measure]:
    """Measures of the KVM mmu_lock: per phase, and in total from populating to the exit."""
    measures: list[Measure] = []
    totals: dict[str, int] = {}
    for line in map(str.strip, output.splitlines()):
        match = _LOCK.match(line)
        if line.startswith("@@ lock-error"):
            raise Fail(f"{test}: the lock counts are not complete: {line[14:]}")
        if line.startswith("@@") and not match:
            raise Fail(f"{test} printed a line that is not known: '{line}'")
        if not match or "mmu_lock" not in match[2]:
            continue
        suffix, iteration = phase(match[1])
        fields = dict(field.split("=") for field in match[4].split())
        for field in ("acquisitions", "contentions"):
            metric, value = f"mmu_lock_{match[3]}_{field}", int(fields[field])
            measures.append(Measure(f"{metric}.{suffix}", iteration, value, "1"))
            if suffix != "setup":
                totals[metric] = totals.get(metric, 0) + value
    if measures:
        totals["mmu_lock_contentions"] = sum(value for name, value in totals.items() if name.endswith("_contentions"))
    return measures + [Measure(name, None, value, "1") for name, value in totals.items()]


def phase(text: str) -> tuple[str, int | None]:
    """(name, iteration or None) of the phase that ends with the line of output `text`, which is cut
    off where its figures begin."""
    match = re.match(rf"Iteration (\d+) ({'|'.join(_ITERATION_PHASES)}) time$", text)
    if match:
        return _ITERATION_PHASES[match[2]], int(match[1])
    if text not in _PHASES:
        raise Fail(f"counts of a phase that is not known: '{text}'")
    return _PHASES[text], None
