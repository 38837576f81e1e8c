"""From results files to medians, spreads and ratios, without mixing what must not be mixed.

A Group is everything that runs must share to stand in one table: series, arch, accel, clock, cpu,
kernel parameters, test, its arguments without -v, and the host that they were taken on.  The
kernel configuration decides what a run is used for: mmu_lock counts come from the "lockstat"
kernels, everything else from the others (LOCK_STAT brings lockdep, whose times mean nothing).

Virtual time has a model.  Medians and tables are made of the runs with the nominal one; those with
a parameter halved or doubled are kept apart, by the name of that variant, for sensitivity bands.

Samples are interleaved pairwise: sample i of base and sample i of series of one file were taken
one after the other.  So a sample is always known by (file, i), also when files are joined.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Union

from .shape import Host, Results, Run

EMULATED = "emulated wall-clock, not evidence"
VIRTUAL = "virtual time (modelled)"
WALL = "wall clock"
# Of live migrations: base and series take turns in one boot.
IN_TURN = "wall clock of an emulated host: only ratios of QEMUs that took turns mean something"
MIGRATION = "migration"
NOMINAL = "nominal"
UPTO = "upto:"
BASE = "base"
SERIES = "series"
LOCK = "mmu_lock_"
WRITES, READS = "mmu_lock_write_acquisitions", "mmu_lock_read_acquisitions"
CONTENDED = "mmu_lock_contentions"
CONTENDED_WRITES, CONTENDED_READS = "mmu_lock_write_contentions", "mmu_lock_read_contentions"
LOCK_METRICS = (WRITES, READS, CONTENDED, CONTENDED_WRITES, CONTENDED_READS)
DIRTY, POPULATE = "dirty_memory_time", "populate_memory_time"
MAIN_TIMES = (DIRTY, POPULATE)
OTHER_TIMES = (
    "enable_dirty_log_time",
    "get_dirty_log_time",
    "clear_dirty_log_time",
    "collect_rings_time",
    "reset_rings_time",
    "disable_dirty_log_time",
)
# Of the test's -l and -H: distributions, not to be summed over iterations.
LATENCIES = tuple(
    f"{what}_{part}"
    for what in (
        "populate_latency",
        "dirty_latency",
        "get_while_writing",
        "clear_while_writing",
        "collect_while_writing",
        "reset_while_writing",
    )
    for part in ("p50", "p99", "max")
)
PHASES = ("setup", "populate", "enable", "dirty", "get", "clear", "disable", "exit")
# Those of access_tracking_stress_test, between populate and exit.
AGING_PHASES = ("age", "access", "fault", "discard", "check")
PER_FAULT = "instructions_per_fault"
COUNTERS = (
    PER_FAULT,
    "faults_permission",
    "faults_translation",
    "faults_access",
    "faults_other",
    "tlbi_local",
    "tlbi_broadcast",
    "atomics",
    "foreign_atomics",
)

# Which sample: the number of its file, and of the sample in it.
Sample = tuple[int, int]
# Where kernels are compared: a number of vCPUs, or (of migrations) that and the way to track dirty pages.
Place = Union[int, tuple[int, str]]


@dataclass(frozen=True)
class Group:
    """What the runs of one table have in common; `cohort` numbers the hosts, from 0."""

    cohort: int
    series: str
    arch: str
    accel: str
    clock: str
    cpu: str
    variant: str  # configurations beside normal and lockstat, such as "64k"
    params: str
    test: str
    args: str  # without -v N

    @property
    def emulated(self) -> bool:
        """True if times of this group are the wall clock of an emulator: no evidence."""
        return self.clock_name == EMULATED

    @property
    def title(self) -> str:
        """One line: "dirty_log_perf_test, v5.10, arm64, cortex-a72"."""
        return ", ".join(part for part in (self.test, self.series, self.arch, self.cpu) if part)

    @property
    def clock_name(self) -> str:
        """The clock, with the words that its times must carry."""
        name = clock_name(self.accel, self.clock)
        return IN_TURN if name == EMULATED and self.test == MIGRATION else name

    def facts(self) -> list[tuple[str, str]]:
        """(name, text) of everything that distinguishes this group, for people."""
        rows = [
            ("Test", self.test),
            ("Arguments", self.args or "none"),
            ("Series", self.series),
            ("Architecture", self.arch),
            ("CPU", self.cpu),
            ("Accelerator", self.accel),
            ("Clock", self.clock_name),
        ]
        if self.variant:
            rows.append(("Configuration", self.variant))
        if self.params:
            rows.append(("Kernel parameters", self.params))
        return rows


@dataclass(frozen=True)
class Value:
    """The samples of one number, in its metric's unit: {(file, i): number}, never empty.

    iterations: those that were summed, () if the number is for the whole test.  repeats: False where rounds of the
    virtual clock do not agree: then the median says little, and low to high is what there is.
    """

    samples: dict[Sample, float]
    iterations: tuple[int, ...] = ()
    repeats: bool = True

    @property
    def median(self) -> float:
        return statistics.median(self.samples.values())

    @property
    def low(self) -> float:
        return min(self.samples.values())

    @property
    def high(self) -> float:
        return max(self.samples.values())


@dataclass(frozen=True)
class Ratio:
    """median / median, and the least and greatest ratio of paired samples (None: no pairs); repeats: as of a Value, of
    both."""

    median: float
    low: float | None
    high: float | None
    repeats: bool = True


def clock_name(accel: str, clock: str) -> str:
    """What every output calls the clock of runs with these keys."""
    if clock == "virtual":
        return VIRTUAL
    return EMULATED if accel == "tcg" else WALL


def add(values: Iterable[Value | None]) -> Value | None:
    """The sum of Values, sample by sample; None if one is None or no sample is in all."""
    found = []
    for value in values:
        if value is None:
            return None
        found.append(value)
    if not found:
        return None
    common = [key for key in found[0].samples if all(key in value.samples for value in found)]
    if not common:
        return None
    return Value(
        {key: sum(value.samples[key] for value in found) for key in common},
        found[0].iterations,
        all(value.repeats for value in found),
    )


def ratio(value: Value | None, base: Value | None) -> Ratio | None:
    """value / base (Values or None) as a Ratio, or None where it would mean nothing."""
    if value is None or base is None or value.iterations != base.iterations or base.median <= 0:
        return None
    pairs = [value.samples[key] / base.samples[key] for key in value.samples if base.samples.get(key, 0) > 0]
    return Ratio(
        value.median / base.median, min(pairs, default=None), max(pairs, default=None), value.repeats and base.repeats
    )


class Summary:
    """The runs of one Group.  host: that of the first file; unused: runs that no table shows;
    variants: names of the models other than the nominal one, in the order of the files; alone: the
    Summary of the same runs without aging, None where aging.summarise() found none; unsteady: runs whose
    rounds do not repeat; retries: (kernel, vCPUs) -> how often its rounds were measured again; old: kernels that are not of
    today's source (state.py)."""

    def __init__(self, group: Group, host: Host) -> None:
        self.group = group
        self.host = host
        self.unused = 0
        self.variants: list[str] = []
        self.alone: Summary | None = None
        self.old: set[str] = set()
        self.unsteady: list[Run] = []
        self.retries: dict[tuple[str, int], int] = {}
        self._kernels: dict[str, bool] = {}
        self._vcpus: set[int] = set()
        # (kernel, vcpus, metric, iteration) that do not repeat
        self._differing: set[tuple[str, int, str, int | None]] = set()
        # (kernel, vcpus, metric, model) -> {iteration: {(file, i): number}}
        self._cells: dict[tuple[str, int, str, str], dict[int | None, dict[Sample, float]]] = {}

    def add_run(self, run: Run, file: int) -> None:
        """Take in one run of results file number `file`."""
        lockstat = "lockstat" in _config_parts(run["config"])
        if run["metric"].startswith(LOCK) != lockstat:
            self.unused += 1
            return
        model = run["model"] or NOMINAL
        if model == NOMINAL:
            self._kernels[run["kernel"]] = True
            self._vcpus.add(run["vcpus"])
        elif model not in self.variants:
            self.variants.append(model)
        iterations = self._cells.setdefault((run["kernel"], run["vcpus"], run["metric"], model), {})
        samples = iterations.setdefault(run["iteration"], {})
        if run.get("repeats") is False:
            self.unsteady.append(run)
            self._differing.add((run["kernel"], run["vcpus"], run["metric"], run["iteration"]))
        if run.get("earlier"):
            place = run["kernel"], run["vcpus"]
            self.retries[place] = max(self.retries.get(place, 0), len(run["earlier"]))
        first = sum(1 for key in samples if key[0] == file)
        for number, sample in enumerate(run["samples"], first):
            if abs(sample) < 1e300:  # not NaN, not infinite
                samples[file, number] = sample

    @property
    def kernels(self) -> list[str]:
        """The kernels: base, then upto:NAME in the order of the files, then series, then those of
        other series, such as v7.3:base."""
        order = {BASE: 0, SERIES: 2}
        return sorted(self._kernels, key=lambda kernel: order.get(kernel, 3 if foreign(kernel) else 1))

    @property
    def vcpus(self) -> list[int]:
        """The vCPU counts, ascending."""
        return sorted(self._vcpus)

    @property
    def places(self) -> Sequence[Place]:
        """Where kernels are compared: the vCPU counts."""
        return self.vcpus

    @property
    def compared(self) -> str | None:
        """The kernel that the ratio is about: series, else the last upto:NAME; None if neither."""
        others = [kernel for kernel in self.kernels if kernel != BASE and not foreign(kernel)]
        return others[-1] if others and BASE in self._kernels else None

    def at(self, kernel: str, vcpus: int, metric: str, iteration: int | None, model: str = NOMINAL) -> Value | None:
        """The metric in one iteration, else for the whole test; None if missing."""
        iterations = self._cells.get((kernel, vcpus, metric, model), {})
        for number in (iteration, None):
            if iterations.get(number):
                return self._value((kernel, vcpus, metric), iterations[number], number)
        return None

    def _value(self, place: tuple[str, int, str], samples: dict[Sample, float], number: int | None) -> Value:
        return Value(samples, () if number is None else (number,), (*place, number) not in self._differing)

    def iterations(self, metric: str) -> list[int]:
        """The iterations that `metric` has, ascending; [] if it is only of the whole test."""
        return sorted(
            {
                number
                for cell, iterations in self._cells.items()
                if cell[2] == metric
                for number in iterations
                if number is not None
            }
        )

    def last_iteration(self, metrics: Iterable[str]) -> int | None:
        """The number of the last iteration that one of `metrics` has, or None."""
        return max((number for metric in metrics for number in self.iterations(metric)), default=None)

    def last(self, kernel: str, vcpus: int, metric: str, metrics: Iterable[str]) -> Value | None:
        """The metric in the last iteration of all of `metrics`; None if it is missing there."""
        value = self.at(kernel, vcpus, metric, self.last_iteration(metrics))
        return value if value and value.iterations else None

    def value(self, kernel: str, vcpus: int, metric: str) -> Value | None:
        """The metric for the whole test, else the sum over its iterations; None if missing."""
        iterations = self._cells.get((kernel, vcpus, metric, NOMINAL), {})
        place = kernel, vcpus, metric
        if iterations.get(None):
            return self._value(place, iterations[None], None)
        numbers = tuple(sorted(number for number in iterations if number is not None))
        total = add(self._value(place, iterations[number], number) for number in numbers)
        return total and Value(total.samples, numbers, total.repeats)

    def contended(self, kernel: str, vcpus: int, phase: str | None = None) -> Value | None:
        """All contentions of the lock: the metric, else the sum of write and read ones."""
        return self.value(kernel, vcpus, in_phase(CONTENDED, phase)) or add(
            self.value(kernel, vcpus, in_phase(metric, phase)) for metric in (CONTENDED_WRITES, CONTENDED_READS)
        )

    def has(self, metric: str) -> bool:
        """True if any kernel has `metric` at any vCPU count."""
        return any(self.values(metric))

    def values(self, metric: str) -> list[Value]:
        """All Values of `metric`, over kernels and vCPU counts."""
        found = (self.value(kernel, vcpus, metric) for kernel in self.kernels for vcpus in self.vcpus)
        return [value for value in found if value is not None]

    def phases(self) -> list[str]:
        """The phases that have any lock count, in the order of the test; last, unknown ones."""
        return self._phases(LOCK_METRICS)

    def counted_phases(self) -> list[str]:
        """The same of the virtual-time instrument's counters."""
        return self._phases(COUNTERS)

    def _phases(self, metrics: Collection[str]) -> list[str]:
        found = dict.fromkeys(
            metric.split(".", 1)[1]
            for _, _, metric, model in self._cells
            if model == NOMINAL and metric.split(".", 1)[0] in metrics and "." in metric
        )
        order = PHASES[:-1] + AGING_PHASES + PHASES[-1:]
        return sorted(found, key=lambda phase: order.index(phase) if phase in order else len(order))

    def sample_note(self, metrics: Iterable[str]) -> str:
        """How many samples stand behind `metrics`: "5 samples", "3 to 5 samples", ""."""
        counts = {len(value.samples) for metric in metrics for value in self.values(metric)}
        if not counts:
            return ""
        few, many = min(counts), max(counts)
        if few != many:
            return f"{few} to {many} samples"
        return f"{many} sample" + ("s" if many > 1 else "")


def short(kernel: str) -> str:
    """A kernel's label without "upto:"."""
    return kernel[len(UPTO) :] if kernel.startswith(UPTO) else kernel


def foreign(kernel: str) -> bool:
    """True for the label of another series' kernel, such as v7.3:base."""
    return kernel not in (BASE, SERIES) and not kernel.startswith(UPTO)


def in_phase(metric: str, phase: str | None) -> str:
    """The metric's name in a phase (None: for the whole test)."""
    return f"{metric}.{phase}" if phase else metric


def _config_parts(config: str) -> list[str]:
    return [part for part in re.split(r"[\s,+]+", config) if part]


def without_vcpus(args: str) -> str:
    """The test's arguments without `-v N`, which is what a table varies."""
    return " ".join(re.sub(r"(^|\s)-v\s*\d+(?=\s|$)", " ", args).split())


def _without_mode(args: str) -> list[str]:
    """The test's arguments without -v and the guest mode: versions of a test number it otherwise
    (-m 2 of 5.10's is -m 3 of 7.3's)."""
    return re.sub(r"(^|\s)-m\s*\d+(?=\s|$)", " ", without_vcpus(args)).split()


def _home_args(results: Iterable[Results]) -> Callable[[Run], str]:
    """args(run): the arguments without -v; for another series' kernel those of the series' own runs
    that differ in nothing but the guest mode, if there are any, so that both share a table."""
    homes: dict[tuple[str, ...], str] = {}
    for result in results:
        for run in result["runs"]:
            if not foreign(run["kernel"]):
                homes.setdefault((run["series"], run["test"], *_without_mode(run["args"])), without_vcpus(run["args"]))

    def args(run: Run) -> str:
        own = without_vcpus(run["args"])
        key = (run["series"], run["test"], *_without_mode(run["args"]))
        return homes.get(key, own) if foreign(run["kernel"]) else own

    return args


def _description(result: Results) -> Host:
    """A file's host; without its kernel where that is what was measured (bench --here)."""
    host = dict(result["host"])
    if result["runs"] and all(run["accel"] == "here" for run in result["runs"]):
        host["kernel"] = None
    return host


def _compatible(one: Host, two: Host) -> bool:
    """True if two host descriptions can be of one machine, software and model of virtual time."""
    for key in ("machine", "cpu", "cpus", "os", "kernel"):
        if one.get(key) != two.get(key):
            return False
    for key in ("tools", "kernels"):
        left, right = one.get(key), two.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            if any(left[name] != right[name] for name in left.keys() & right.keys()):
                return False
    left, right = model(one), model(two)
    return not left or not right or left == right


def model(host: Host) -> dict[str, Any]:
    """What of a host decides virtual time: {"insn": 0.4, ..., "slice_ns": 500}; {} without."""
    vtime = host.get("vtime")
    if not isinstance(vtime, dict):
        return {}
    parameters = vtime.get("parameters")
    found = {
        name: entry.get("ns") if isinstance(entry, dict) else entry
        for name, entry in (parameters if isinstance(parameters, dict) else {}).items()
    }
    return {**found, "slice_ns": vtime["slice_ns"]} if "slice_ns" in vtime else found


def cohorts(results: Iterable[Results]) -> list[int]:
    """The number of its host for each file: files share one if they are of one machine,
    QEMU and set of kernels, so that their samples may be joined."""
    members: list[list[Host]] = []
    numbers = []
    for result in results:
        for number, hosts in enumerate(members):
            if all(_compatible(_description(result), host) for host in hosts):
                hosts.append(_description(result))
                numbers.append(number)
                break
        else:
            numbers.append(len(members))
            members.append([_description(result)])
    return numbers


def summarise(results: Sequence[Results]) -> list[Summary]:
    """A Summary for each Group in `results`, in the order in which they first appear."""
    summaries, args = {}, _home_args(results)
    for file, (result, cohort) in enumerate(zip(results, cohorts(results))):
        for run in result["runs"]:
            variant = [part for part in _config_parts(run["config"]) if part not in ("normal", "lockstat")]
            group = Group(
                cohort,
                run["series"],
                run["arch"],
                run["accel"],
                run["clock"],
                run["cpu"],
                " ".join(variant),
                " ".join(map(str, run["params"])),
                run["test"],
                args(run),
            )
            if group not in summaries:
                summaries[group] = Summary(group, result["host"])
            summaries[group].add_run(run, file)
    return list(summaries.values())
