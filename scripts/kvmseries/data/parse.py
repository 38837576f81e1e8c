"""What a benchmark printed, as metrics.  A line that is not known is an error: a figure that is
silently dropped or misread is worse than none.

parse(test, output) returns a list of Measure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Callable, Optional

from ..base import tap
from ..base.errors import Fail


@dataclass(frozen=True)
class Measure:
    """One figure of one run of a test."""

    metric: str
    iteration: int | None  # int, or None where there is none
    value: float
    unit: str  # "s" or "1"


# Reads a line: its Measures, None if it has none.
Figures = Callable[[str], Optional[list[Measure]]]
_TIME = r"(-?\d+)\.(\d+)s"
# dirty_log_perf_test: pattern -> metric.  The times are seconds with nine digits of fraction.
_ITERATION = {
    "dirty memory": "dirty_memory_time",
    "get dirty log": "get_dirty_log_time",
    "clear dirty log": "clear_dirty_log_time",
    "collect dirty rings": "collect_rings_time",
    "reset dirty rings": "reset_rings_time",
}
_ONCE = {
    "Populate memory": "populate_memory_time",
    "Enabling dirty logging": "enable_dirty_log_time",
    "Disabling dirty logging": "disable_dirty_log_time",
}
# -l, -H: what a distribution is of -> metric; the unit of its count.
_LATENCY = {
    "Populate memory latency": "populate_latency",
    "dirty memory latency": "dirty_latency",
    "get dirty log while writing": "get_while_writing",
    "clear dirty log while writing": "clear_while_writing",
    "collect dirty rings while writing": "collect_while_writing",
    "reset dirty rings while writing": "reset_while_writing",
}
_HIST = re.compile(
    rf"(?:Iteration (\d+) )?({'|'.join(_LATENCY)}): "
    r"p50 (\d+) ns, p99 (\d+) ns, max (\d+) ns, (\d+) (writes|times)$"
)
_FOUND = re.compile(
    r"Iteration (\d+) dirty pages found: (\d+) while writing, (\d+) after, "
    r"all of (\d+) written$"
)
_FULL = re.compile(r"Iteration (\d+) dirty rings full: (\d+) times$")
# Lines that carry no figure of their own: what was run, sums of the lines above, and -V, the same
# by vCPU.
_PLAIN = re.compile(
    r"(Test iterations: \d+|Testing guest mode: .*|"
    r"guest physical test memory offset: 0x[0-9a-f]+|"
    r"guest physical test memory: \[0x[0-9a-f]+, 0x[0-9a-f]+\)|"
    r"Random seed: 0x[0-9a-f]+|"
    r"(Get|Clear) dirty log over \d+ iterations took .*|"
    r"Manual dirty log protect: (on, initially all set|on|off)|"
    r"Dirty ring: \d+ entries|Eager split chunk: \d+ bytes|"
    r"vCPU \d+ iteration \d+ latency: p50 .*|"
    r"In-kernel GICv3: (on|off)|The host has no GICv3 to offer|)$"
)
# Phases of the lock counts -> suffix of their metrics.
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
_LOCK = re.compile(r'@@ lock phase="([^"]*)" class="([^"]*)" mode=(write|read) (.*)$')


def _seconds(whole: str, fraction: str) -> float:
    return float(f"{whole}.{fraction}")


def _read(test: str, output: str, figures: Figures, plain: re.Pattern[str]) -> tuple[list[Measure], int | None]:
    """(measures, number of iterations that it said or None) of what `test` printed.

    figures(line): Measures of a line, None if it has none; plain: matches what may be passed over.
    """
    measures, counts, iterations = [], [], None
    for line in map(str.strip, output.splitlines()):
        match = re.match(r"Test iterations: (\d+)$", line)
        if match:
            iterations = int(match[1])
        found, lock = figures(line), _LOCK.match(line)
        if found is not None:
            measures += found
        elif lock:
            counts.append(lock.groups())
        elif line.startswith("@@ lock-error"):
            raise Fail(f"{test}: the lock counts are not complete: {line[14:]}")
        # Results of the test itself are in its exit status, too.
        elif not plain.match(line) and not tap.line(line):
            raise Fail(f"{test} printed a line that is not known: '{line}'")
    return measures + _lock_counts(counts), iterations


def _dirty_log_perf_test(output: str) -> list[Measure]:
    measures, iterations = _read("dirty_log_perf_test", output, _dirty_log_figures, _PLAIN)
    if "populate_memory_time" not in {measure.metric for measure in measures}:
        raise Fail("dirty_log_perf_test printed no figures")
    dirtied = sum(measure.metric == "dirty_memory_time" for measure in measures)
    if iterations is None or dirtied != iterations:
        raise Fail(
            f"dirty_log_perf_test ran {iterations} iterations but timed {dirtied}: one guest "
            "mode at a time (-m), please"
        )
    if nothing_harvested(output):
        raise Fail(f"dirty_log_perf_test: {NOTHING_HARVESTED}: more memory (-b), or a shorter pause (-H)")
    return measures


NOTHING_HARVESTED = "no harvest of -H fell into the writing"


def nothing_harvested(output: str) -> bool:
    """Whether `output` is of dirty_log_perf_test -H, and in none of its iterations the log or the rings were harvested while
    vCPUs wrote: then it has shown nothing."""
    times = [
        measure.value
        for line in output.splitlines()
        for measure in _distribution(line.strip()) or ()
        if measure.metric in ("get_while_writing_times", "collect_while_writing_times")
    ]
    return bool(times) and not any(times)


def _dirty_log_figures(line: str) -> list[Measure] | None:
    """Measures of a line, None if it has none."""
    match = re.match(rf"Iteration (\d+) ({'|'.join(_ITERATION)}) time: {_TIME}$", line)
    if match:
        return [Measure(_ITERATION[match[2]], int(match[1]), _seconds(match[3], match[4]), "s")]
    match = re.match(rf"({'|'.join(_ONCE)}) time: {_TIME}$", line)
    if match:
        return [Measure(_ONCE[match[1]], None, _seconds(match[2], match[3]), "s")]
    return _distribution(line)


def _distribution(line: str) -> list[Measure] | None:
    """Measures of a line of -l or -H; None for another line."""
    match = _HIST.match(line)
    if match:
        iteration, metric = int(match[1]) if match[1] else None, _LATENCY[match[2]]
        found = [Measure(f"{metric}_{match[7]}", iteration, int(match[6]), "1")]
        # Of nothing, as where writes were over before the first harvest, 0 ns is no figure.
        if int(match[6]):
            found += [
                Measure(f"{metric}_{part}", iteration, int(value) / 1e9, "s")
                for part, value in zip(("p50", "p99", "max"), match.groups()[2:5])
            ]
        return found
    match = _FULL.match(line)
    if match:
        return [Measure("rings_full", int(match[1]), int(match[2]), "1")]
    match = _FOUND.match(line)
    return (
        [
            Measure(f"pages_{what}", int(match[1]), int(value), "1")
            for what, value in zip(("found_while_writing", "found_after", "written"), match.groups()[1:])
        ]
        if match
        else None
    )


def _lock_counts(rows: Iterable[Sequence[str]]) -> list[Measure]:
    """Measures of the KVM mmu_lock: per phase, and in total from populating to the exit."""
    rows = [row for row in rows if "mmu_lock" in row[1]]
    if not rows:
        return []
    measures: list[Measure] = []
    totals: dict[str, int] = {}
    for name, _, mode, figures in rows:
        suffix, iteration = phase(name)
        fields = dict(field.split("=") for field in figures.split())
        for field in ("acquisitions", "contentions"):
            value = int(fields[field])
            metric = f"mmu_lock_{mode}_{field}"
            measures.append(Measure(f"{metric}.{suffix}", iteration, value, "1"))
            if suffix != "setup":
                totals[metric] = totals.get(metric, 0) + value
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


# access_tracking_stress_test: lines of one iteration, and of all of them.
_AGING = {
    "age idle memory": "age_idle_time",
    "access memory": "access_memory_time",
    "fault memory in": "fault_memory_time",
    "discard fresh memory": "discard_memory_time",
    "check idle memory": "check_idle_time",
}
_AGING_PLAIN = re.compile(
    r"(Test iterations: \d+|Testing guest mode: .*|"
    r"\d+ vCPUs, \d+ pages of .*|Random seed: 0x[0-9a-f]+|"
    r"guest physical test memory: \[0x[0-9a-f]+, 0x[0-9a-f]+\)|"
    r"Memory cgroup v\d, .*|Verified by the host: \d+ pages|"
    r"vCPU time over all iterations, .*|"
    r"Iteration \d+ aging was over after \d+ s, vCPUs went on without|)$"
)


def _access_tracking_stress_test(output: str) -> list[Measure]:
    measures, iterations = _read("access_tracking_stress_test", output, _aging_line, _AGING_PLAIN)
    timed = sum(measure.metric in ("access_memory_time", "fault_memory_time") for measure in measures)
    if not timed:
        raise Fail("access_tracking_stress_test printed no figures")
    if timed != iterations:
        raise Fail(f"access_tracking_stress_test ran {iterations} iterations but timed {timed}")
    return measures


def _aging_line(line: str) -> list[Measure] | None:
    """Measures of a line, None if it has none."""
    match = re.match(r"(?:Iteration (\d+)|All) (.*)$", line)
    if match:
        return _aging_figures(match[2], int(match[1]) if match[1] else None)
    match = re.match(rf"Populate memory time: {_TIME}$", line)
    if match:
        return [Measure("populate_memory_time", None, _seconds(match[1], match[2]), "s")]
    match = re.match(r"Pages swapped out: (\d+), in: (\d+)$", line)
    return (
        [Measure("swapped_out", None, int(match[1]), "1"), Measure("swapped_in", None, int(match[2]), "1")]
        if match
        else None
    )


def _aging_figures(text: str, iteration: int | None) -> list[Measure] | None:
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
    match = re.match(r"found young by a pass, vCPUs (idle|running): (\d+\.\d) of \d+ pages$", text)
    if match:
        return [Measure(f"young.{match[1]}", iteration, float(match[2]), "1")]
    match = re.match(r"dirty log: (\d+) harvests, (\d+) pages$", text)
    if match:
        return [
            Measure(name, iteration, int(value), "1") for name, value in zip(("harvests", "harvested"), match.groups())
        ]
    match = re.match(
        r"found after aging, vCPUs (idle|running): (\d+) young, (\d+) idle, "
        r"(\d+) not tracked, (\d+) swapped out$",
        text,
    )
    if match:
        return [
            Measure(f"{name}.{match[1]}", iteration, int(value), "1")
            for name, value in zip(("young", "idle", "untracked", "swapped"), match.groups()[1:])
        ]
    match = re.match(
        r"false idle (without|after) flush: (\d+) of (\d+) pages touched; (\d+) young, "
        r"(\d+) idle, (\d+) young but not touched$",
        text,
    )
    if match:
        return [
            Measure(f"{name}.{match[1]}", iteration, int(value), "1")
            for name, value in zip(("false_idle", "touched", "young", "idle", "false_young"), match.groups()[1:])
        ]
    return None


# change_pte_test: lines of the count, and of the storm.
_MERGED = re.compile(
    r"Iteration (\d+): (\d+) of \d+ pages merged( while read)? in (\d+\.\d+) s, "
    r"(\d+\.\d+) ms of ksmd(?:, (\d+) remote TLB flushes)?$"
)
_PASSES = {
    "read merged pages": "read_merged",
    "write to merged pages": "write_merged",
    "read while merged": "read_while_merged",
}
_PASS = re.compile(
    rf"Iteration (\d+): ({'|'.join(_PASSES)}): (-?\d+) exits \((-?\d+\.\d+) a page\), "
    r"(-?\d+\.\d+) ms of vCPUs(?:, (-?\d+) faults by KVM's count)?$"
)
_STORM = re.compile(r"(Host|KVM):((?: \S+ \d+)*)$")
_CHANGE_PTE_PLAIN = re.compile(
    r"(\d+ vCPUs, \d+ pages of \S+, in groups of \d+, seed \d+|"
    r"Helper \S+ is off: .*|Storm: .*|All: .* faults a merged page .*|)$"
)


def _change_pte_test(output: str) -> list[Measure]:
    measures, _ = _read("change_pte_test", output, _change_pte_line, _CHANGE_PTE_PLAIN)
    if not measures:
        raise Fail("change_pte_test printed no figures")
    return measures


def _change_pte_line(line: str) -> list[Measure] | None:
    """Measures of a line, None if it has none."""
    match = _MERGED.match(line)
    if match:
        iteration, suffix = int(match[1]), "_while_read" if match[3] else ""
        found = [
            Measure(f"pages_merged{suffix}", iteration, int(match[2]), "1"),
            Measure(f"merge_time{suffix}", iteration, float(match[4]), "s"),
            Measure(f"merge_ksmd_time{suffix}", iteration, float(match[5]) / 1e3, "s"),
        ]
        return found + [Measure(f"merge_tlb_flushes{suffix}", iteration, int(match[6]), "1")] if match[6] else found
    match = _PASS.match(line)
    if match:
        iteration, metric = int(match[1]), _PASSES[match[2]]
        found = [
            Measure(f"{metric}_exits", iteration, int(match[3]), "1"),
            Measure(f"{metric}_exits_per_page", iteration, float(match[4]), "1"),
            Measure(f"{metric}_vcpu_time", iteration, float(match[5]) / 1e3, "s"),
        ]
        return found + [Measure(f"{metric}_faults", iteration, int(match[6]), "1")] if match[6] else found
    match = _STORM.match(line)
    if match:
        words = match[2].split()
        return [
            Measure(f"storm_{match[1].lower()}_{name}", None, int(value), "1")
            for name, value in zip(words[::2], words[1::2])
        ]
    return None


# memslot_unmap_perf_test: the large memslot, what is done to the mapped one, and writes meanwhile.
_SPARSE = re.compile(
    r"Iteration (\d+) sparse (create|caches off|caches on|log on|get dirty log|log off|discard|munmap|"
    rf"delete): {_TIME}$"
)
_WHILE = {"host only": "host", "vCPUs idle": "idle", "vCPUs writing": "writing"}
_UNMAP = re.compile(rf"Iteration (\d+) (discard|delete|log on), ({'|'.join(_WHILE)}): {_TIME}$")
_WRITES = re.compile(
    r"Iteration (\d+) (nothing|discard|delete|log on) write latency: "
    r"p50 (\d+) ns, p99 (\d+) ns, max (\d+) ns, (\d+) writes$"
)
_OUT = re.compile(r"Iteration (\d+) (nothing|discard|delete|log on): (\d+) of \d+ vCPUs ran out of memory to write to$")
_UNMAP_PLAIN = re.compile(r"(Test iterations: \d+|\d+ vCPUs, \d+ MiB of \S+ mapped, memslot of .*|)$")


def _memslot_unmap_perf_test(output: str) -> list[Measure]:
    measures, iterations = _read("memslot_unmap_perf_test", output, _unmap_line, _UNMAP_PLAIN)
    timed = {measure.iteration for measure in measures if measure.unit == "s"}
    if not timed:
        raise Fail("memslot_unmap_perf_test printed no figures")
    if len(timed) != iterations:
        raise Fail(f"memslot_unmap_perf_test ran {iterations} iterations but timed {len(timed)}")
    return measures


def _unmap_line(line: str) -> list[Measure] | None:
    """Measures of a line, None if it has none."""
    match = _SPARSE.match(line)
    if match:
        return [Measure(f"sparse_{match[2].replace(' ', '_')}_time", int(match[1]), _seconds(match[3], match[4]), "s")]
    match = _UNMAP.match(line)
    if match:
        return [
            Measure(
                f"{match[2].replace(' ', '_')}_time.{_WHILE[match[3]]}",
                int(match[1]),
                _seconds(match[4], match[5]),
                "s",
            )
        ]
    match = _WRITES.match(line)
    if match:
        iteration, during = int(match[1]), match[2].replace(" ", "_")
        return [
            Measure(f"write_{part}.{during}", iteration, int(value) / 1e9, "s")
            for part, value in zip(("p50", "p99", "max"), match.groups()[2:5])
        ] + [Measure(f"writes.{during}", iteration, int(match[6]), "1")]
    match = _OUT.match(line)
    return [Measure(f"vcpus_out.{match[2].replace(' ', '_')}", int(match[1]), int(match[3]), "1")] if match else None


# dirty_hold_test: "X: N ns", "X: longest hold N ns" where the kernel measures holds, "X: longest write N ns of WRITES".
_HOLD = re.compile(r"(clear idle|clear busy|discard): (?:(longest hold|longest write) )?(\d+) ns(?: of (\d+))?$")
_HOLD_METRIC = {None: "time", "longest hold": "hold", "longest write": "write"}
_SEED_PLAIN = re.compile(r"(Random seed: 0x[0-9a-f]+|)$")


def _dirty_hold_test(output: str) -> list[Measure]:
    measures, _ = _read("dirty_hold_test", output, _hold_line, _SEED_PLAIN)
    found = {measure.metric for measure in measures}
    missing = {
        f"{what}_{part}" for what in ("clear_idle", "clear_busy", "discard") for part in ("time", "hold")
    } - found
    if missing:
        raise Fail(
            f"dirty_hold_test printed no {', '.join(sorted(missing))}: the kernel has to have "
            "patches/instruments/<series>/hold-times.patch"
        )
    return measures


def _hold_line(line: str) -> list[Measure] | None:
    """Measures of a line, None if it has none."""
    match = _HOLD.match(line)
    if not match:
        return None
    what = match[1].replace(" ", "_")
    found = [Measure(f"{what}_{_HOLD_METRIC[match[2]]}", None, int(match[3]) / 1e9, "s")]
    return found + ([Measure(f"{what}_writes", None, int(match[4]), "1")] if match[4] else [])


# vm_killed_test: "N VMs of N MiB killed: exit takes N us each; tables of N KiB left".  It fails if tables are left.
# 5.10 does not count them.
_KILLED = re.compile(r"\d+ VMs of \d+ MiB killed: exit takes (\d+) us each(?:; tables of -?\d+ KiB left)?$")


def _vm_killed_test(output: str) -> list[Measure]:
    measures, _ = _read("vm_killed_test", output, _killed_line, _SEED_PLAIN)
    if "exit_time" not in {measure.metric for measure in measures}:
        raise Fail("vm_killed_test did not print how long exit takes")
    return measures


def _killed_line(line: str) -> list[Measure] | None:
    """Measures of a line, None if it has none."""
    match = _KILLED.match(line)
    return [Measure("exit_time", None, int(match[1]) / 1e6, "s")] if match else None


PARSERS = {
    "dirty_log_perf_test": _dirty_log_perf_test,
    "access_tracking_stress_test": _access_tracking_stress_test,
    "change_pte_test": _change_pte_test,
    "memslot_unmap_perf_test": _memslot_unmap_perf_test,
    "dirty_hold_test": _dirty_hold_test,
    "vm_killed_test": _vm_killed_test,
}


def parse(test: str, output: str) -> list[Measure]:
    """Measures of one run of `test` (a key of PARSERS) from its output."""
    return PARSERS[test](output)
