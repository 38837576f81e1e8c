"""What a benchmark printed, as metrics.  A line that is not known is an error: a figure that is
silently dropped or misread is worse than none.

parse(test, output) returns a list of Measure.
"""

import re
from dataclasses import dataclass

from .errors import Fail


@dataclass(frozen=True)
class Measure:
    """One figure of one run of a test."""

    metric: str
    iteration: object    # int, or None where there is none
    value: float
    unit: str            # "s" or "1"


_TIME = r"(-?\d+)\.(\d+)s"
# dirty_log_perf_test: pattern -> metric.  The times are seconds with nine digits of fraction.
_ITERATION = {"dirty memory": "dirty_memory_time", "get dirty log": "get_dirty_log_time",
              "clear dirty log": "clear_dirty_log_time"}
_ONCE = {"Populate memory": "populate_memory_time",
         "Enabling dirty logging": "enable_dirty_log_time",
         "Disabling dirty logging": "disable_dirty_log_time"}
# -l, -H: what a distribution is of -> metric; the unit of its count.
_LATENCY = {"Populate memory latency": "populate_latency", "dirty memory latency": "dirty_latency",
            "get dirty log while writing": "get_while_writing",
            "clear dirty log while writing": "clear_while_writing"}
_HIST = re.compile(rf"(?:Iteration (\d+) )?({'|'.join(_LATENCY)}): "
                   r"p50 (\d+) ns, p99 (\d+) ns, max (\d+) ns, (\d+) (writes|times)$")
_FOUND = re.compile(r"Iteration (\d+) dirty pages found: (\d+) while writing, (\d+) after, "
                    r"all of (\d+) written$")
# Lines that carry no figure of their own: what was run, sums of the lines above, and -V, the same
# by vCPU.
_PLAIN = re.compile(r"(Test iterations: \d+|Testing guest mode: .*|"
                    r"guest physical test memory offset: 0x[0-9a-f]+|"
                    r"guest physical test memory: \[0x[0-9a-f]+, 0x[0-9a-f]+\)|"
                    r"Random seed: 0x[0-9a-f]+|"
                    r"(Get|Clear) dirty log over \d+ iterations took .*|"
                    r"Manual dirty log protect: (on, initially all set|on|off)|"
                    r"vCPU \d+ iteration \d+ latency: p50 .*|"
                    r"In-kernel GICv3: (on|off)|The host has no GICv3 to offer|)$")
# Phases of the lock counts -> suffix of their metrics.
_PHASES = {"Populate memory time": "populate", "Enabling dirty logging time": "enable",
           "Disabling dirty logging time": "disable", "exit": "exit",
           "guest physical test memory offset": "setup",    # 5.10
           "guest physical test memory": "setup"}           # 7.3
_ITERATION_PHASES = {"dirty memory": "dirty", "get dirty log": "get", "clear dirty log": "clear",
                     # access_tracking_stress_test
                     "age idle memory": "age", "access memory": "access", "fault memory in": "fault",
                     "discard fresh memory": "discard", "check idle memory": "check"}
_LOCK = re.compile(r'@@ lock phase="([^"]*)" class="([^"]*)" mode=(write|read) (.*)$')


def _seconds(whole, fraction):
    return float(f"{whole}.{fraction}")


def _dirty_log_perf_test(output):
    measures, counts, iterations = [], [], None
    for line in output.splitlines():
        line = line.strip()
        match = re.match(r"Test iterations: (\d+)$", line)
        if match:
            iterations = int(match[1])
        match = re.match(rf"Iteration (\d+) ({'|'.join(_ITERATION)}) time: {_TIME}$", line)
        if match:
            measures.append(Measure(_ITERATION[match[2]], int(match[1]),
                                    _seconds(match[3], match[4]), "s"))
            continue
        match = re.match(rf"({'|'.join(_ONCE)}) time: {_TIME}$", line)
        if match:
            measures.append(Measure(_ONCE[match[1]], None, _seconds(match[2], match[3]), "s"))
            continue
        more = _distribution(line)
        if more:
            measures += more
            continue
        match = _LOCK.match(line)
        if match:
            counts.append(match.groups())
            continue
        if line.startswith("@@ lock-error"):
            raise Fail(f"dirty_log_perf_test: the lock counts are not complete: {line[14:]}")
        if not _PLAIN.match(line):
            raise Fail(f"dirty_log_perf_test printed a line that is not known: '{line}'")
    if "populate_memory_time" not in {measure.metric for measure in measures}:
        raise Fail("dirty_log_perf_test printed no figures")
    dirtied = sum(measure.metric == "dirty_memory_time" for measure in measures)
    if iterations is None or dirtied != iterations:
        raise Fail(f"dirty_log_perf_test ran {iterations} iterations but timed {dirtied}: one guest "
                   "mode at a time (-m), please")
    return measures + _lock_counts(counts)


def _distribution(line):
    """Measures of a line of -l or -H; [] for another line."""
    match = _HIST.match(line)
    if match:
        iteration, metric = match[1] and int(match[1]), _LATENCY[match[2]]
        found = [Measure(f"{metric}_{match[7]}", iteration, int(match[6]), "1")]
        # Of nothing, as where writes were over before the first harvest, 0 ns is no figure.
        if int(match[6]):
            found += [Measure(f"{metric}_{part}", iteration, int(value) / 1e9, "s")
                      for part, value in zip(("p50", "p99", "max"), match.groups()[2:5])]
        return found
    match = _FOUND.match(line)
    return [Measure(f"pages_{what}", int(match[1]), int(value), "1") for what, value in
            zip(("found_while_writing", "found_after", "written"), match.groups()[1:])] \
        if match else []


def _lock_counts(rows):
    """Measures of the KVM mmu_lock: per phase, and in total from populating to the exit."""
    rows = [row for row in rows if "mmu_lock" in row[1]]
    if not rows:
        return []
    measures, totals = [], {}
    for name, _, mode, figures in rows:
        suffix, iteration = phase(name)
        fields = dict(field.split("=") for field in figures.split())
        for field in ("acquisitions", "contentions"):
            value = int(fields[field])
            metric = f"mmu_lock_{mode}_{field}"
            measures.append(Measure(f"{metric}.{suffix}", iteration, value, "1"))
            if suffix != "setup":
                totals[metric] = totals.get(metric, 0) + value
    totals["mmu_lock_contentions"] = sum(value for name, value in totals.items()
                                         if name.endswith("_contentions"))
    return measures + [Measure(name, None, value, "1") for name, value in totals.items()]


def phase(text):
    """(name, iteration or None) of the phase that ends with the line of output `text`, which is cut
    off where its figures begin."""
    match = re.match(rf"Iteration (\d+) ({'|'.join(_ITERATION_PHASES)}) time$", text)
    if match:
        return _ITERATION_PHASES[match[2]], int(match[1])
    if text not in _PHASES:
        raise Fail(f"counts of a phase that is not known: '{text}'")
    return _PHASES[text], None


# access_tracking_stress_test: lines of one iteration, and of all of them.
_AGING = {"age idle memory": "age_idle_time", "access memory": "access_memory_time",
          "fault memory in": "fault_memory_time", "discard fresh memory": "discard_memory_time",
          "check idle memory": "check_idle_time"}
_AGING_PLAIN = re.compile(r"(Test iterations: \d+|Testing guest mode: .*|"
                          r"\d+ vCPUs, \d+ pages of .*|Random seed: 0x[0-9a-f]+|"
                          r"guest physical test memory: \[0x[0-9a-f]+, 0x[0-9a-f]+\)|"
                          r"Memory cgroup v\d, .*|Verified by the host: \d+ pages|"
                          r"vCPU time over all iterations, .*|"
                          r"Iteration \d+ aging was over after \d+ s, vCPUs went on without|)$")


def _access_tracking_stress_test(output):
    measures, counts, iterations = [], [], None
    for line in output.splitlines():
        line = line.strip()
        match = re.match(r"Test iterations: (\d+)$", line)
        if match:
            iterations = int(match[1])
        match = re.match(r"Iteration (\d+) (.*)$", line) or re.match(r"(All) (.*)$", line)
        iteration = int(match[1]) if match and match[1] != "All" else None
        found = _aging_figures(match[2], iteration) if match else None
        if found is not None:
            measures += found
            continue
        match = re.match(rf"Populate memory time: {_TIME}$", line)
        if match:
            measures.append(Measure("populate_memory_time", None, _seconds(match[1], match[2]), "s"))
            continue
        match = re.match(r"Pages swapped out: (\d+), in: (\d+)$", line)
        if match:
            measures += [Measure("swapped_out", None, int(match[1]), "1"),
                         Measure("swapped_in", None, int(match[2]), "1")]
            continue
        match = _LOCK.match(line)
        if match:
            counts.append(match.groups())
            continue
        if line.startswith("@@ lock-error"):
            raise Fail(f"access_tracking_stress_test: the lock counts are not complete: {line[14:]}")
        if not _AGING_PLAIN.match(line):
            raise Fail(f"access_tracking_stress_test printed a line that is not known: '{line}'")
    timed = sum(measure.metric in ("access_memory_time", "fault_memory_time") for measure in measures)
    if not timed:
        raise Fail("access_tracking_stress_test printed no figures")
    if timed != iterations:
        raise Fail(f"access_tracking_stress_test ran {iterations} iterations but timed {timed}")
    return measures + _lock_counts(counts)


def _aging_figures(text, iteration):
    """Measures of what stands behind "Iteration 1" or "All", None if it is not known."""
    match = re.match(rf"({'|'.join(_AGING)}) time: {_TIME}$", text)
    if match:
        return [Measure(_AGING[match[1]], iteration, _seconds(match[2], match[3]), "s")]
    match = re.match(rf"vCPU time, mean {_TIME}, slowest {_TIME}$", text)
    if match:
        return [Measure("vcpu_time_mean", iteration, _seconds(match[1], match[2]), "s")]
    match = re.match(r"aging passes, vCPUs (idle|running): (\d+)(.*)$", text)
    if match:
        found = [Measure(f"passes.{match[1]}", iteration, int(match[2]), "1")]
        for name, whole, fraction in re.findall(rf", (median|p99|max) {_TIME}", match[3]):
            found.append(Measure(f"pass_{name}.{match[1]}", iteration, _seconds(whole, fraction), "s"))
        return found
    match = re.match(r"found after aging, vCPUs (idle|running): (\d+) young, (\d+) idle, "
                     r"(\d+) not tracked, (\d+) swapped out$", text)
    if match:
        return [Measure(f"{name}.{match[1]}", iteration, int(value), "1") for name, value in
                zip(("young", "idle", "untracked", "swapped"), match.groups()[1:])]
    match = re.match(r"false idle (without|after) flush: (\d+) of (\d+) pages touched; (\d+) young, "
                     r"(\d+) idle, (\d+) young but not touched$", text)
    if match:
        return [Measure(f"{name}.{match[1]}", iteration, int(value), "1") for name, value in
                zip(("false_idle", "touched", "young", "idle", "false_young"), match.groups()[1:])]
    return None


PARSERS = {"dirty_log_perf_test": _dirty_log_perf_test,
           "access_tracking_stress_test": _access_tracking_stress_test}


def parse(test, output):
    """Measures of one run of `test` (a key of PARSERS) from its output."""
    return PARSERS[test](output)
