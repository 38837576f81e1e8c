"""From results files to medians, spreads and ratios, without mixing what must not be mixed.

A Group is everything that runs must share to stand in one table: series, arch, accel, clock, cpu, configuration, kernel
parameters, test, its arguments without -v, and the host that they were taken on.  mmu_lock counts come from the "lockstat"
kernels, everything else from the others (LOCK_STAT brings lockdep, whose times mean nothing).  Runs without aging (-a 0)
belong to those of the same arguments with aging.

Medians and tables are made of the runs with the model's nominal parameters; those with one halved or doubled are kept apart,
by the name of that variant, for sensitivity bands.  Of what has iterations the last one is shown.

Samples are interleaved pairwise: sample i of base and sample i of series of one file were taken one after the other.  So a
sample is always known by (file, i), also when files are joined.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import benchmarks, published
from .benchmarks import Column
from .shape import Host, Results, Run, Trace

EMULATED = "emulated wall-clock, not evidence"
VIRTUAL = "virtual time (modelled)"
WALL = "wall clock"
# Of live migrations: base and series take turns in one boot.
IN_TURN = "wall clock of an emulated host: only ratios of QEMUs that took turns mean something"
NOMINAL = "nominal"
UPTO, BASE, SERIES = "upto:", "base", "series"
LOCK = "mmu_lock_"
DIRTY, POPULATE = "dirty_memory_time", "populate_memory_time"
MAIN_TIMES = (DIRTY, POPULATE)
PER_FAULT = "instructions_per_fault"

# Which sample: the number of its file, and of the sample in it.
Sample = tuple[int, int]


@dataclass(frozen=True)
class Group:
    """What the runs of one table have in common; `cohort` numbers the hosts, from 0."""

    cohort: int
    series: str
    arch: str
    accel: str
    clock: str
    cpu: str
    # Configurations beside normal and lockstat, such as "64k"; of a migration the way to track dirty pages.
    variant: str
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
        return ", ".join(part for part in (self.test, self.series, self.arch, self.cpu, self.variant) if part)

    @property
    def clock_name(self) -> str:
        """The clock, with the words that its times must carry."""
        name = clock_name(self.accel, self.clock)
        return IN_TURN if name == EMULATED and self.test == benchmarks.MIGRATION else name


@dataclass(frozen=True)
class Value:
    """The samples of one number, in its metric's unit: {(file, i): number}, never empty.  iteration: None if the number is for
    the whole test.  repeats: False where rounds of the virtual clock do not agree: then low to high is what there is."""

    samples: dict[Sample, float]
    iteration: int | None = None
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


def ratio(value: Value | Ratio | None, base: Value | Ratio | None) -> Ratio | None:
    """value / base as a Ratio, or None where it would mean nothing: of other iterations, to 0, or of a ratio."""
    if not isinstance(value, Value) or not isinstance(base, Value):
        return None
    if value.iteration != base.iteration or base.median <= 0:
        return None
    pairs = [value.samples[key] / base.samples[key] for key in value.samples if base.samples.get(key, 0) > 0]
    return Ratio(
        value.median / base.median, min(pairs, default=None), max(pairs, default=None), value.repeats and base.repeats
    )


class Summary:
    """The runs of one Group.  host: that of the first file; unused: runs that no table shows; variants: names of the models
    other than the nominal one, in the order of the files; alone: the Summary of the same runs without aging; unsteady: runs
    whose rounds do not repeat; retries: (kernel, vCPUs) -> how often its rounds were measured again; traces: of migrations."""

    def __init__(self, group: Group, host: Host) -> None:
        self.group = group
        self.host = host
        self.unused = 0
        self.variants: list[str] = []
        self.alone: Summary | None = None
        self.unsteady: list[Run] = []
        self.retries: dict[tuple[str, int], int] = {}
        self.traces: list[Trace] = []
        self._kernels: dict[str, bool] = {}
        self._vcpus: set[int] = set()
        self._iterations: dict[str, set[int]] = {}
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
        if run["iteration"] is not None:
            self._iterations.setdefault(run["metric"], set()).add(run["iteration"])
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
        found = dict.fromkeys([*self._kernels, *(self.alone.kernels if self.alone else ())])
        return sorted(found, key=lambda kernel: order.get(kernel, 3 if foreign(kernel) else 1))

    @property
    def vcpus(self) -> list[int]:
        """The vCPU counts, ascending."""
        return sorted({*self._vcpus, *(self.alone.vcpus if self.alone else ())})

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
                steady = (kernel, vcpus, metric, number) not in self._differing
                return Value(iterations[number], number, steady)
        return None

    def iterations(self, metric: str) -> list[int]:
        """The iterations that `metric` has, ascending; [] if it is only of the whole test."""
        return sorted(self._iterations.get(metric, ()))

    def last(self, kernel: str, vcpus: int, metric: str) -> Value | None:
        """The metric in the last iteration that it has on any kernel, else for the whole test; None if missing."""
        return self.at(kernel, vcpus, metric, max(self.iterations(metric), default=None))

    def value(self, kernel: str, vcpus: int, column: Column) -> Value | Ratio | None:
        """What a table shows of a Column."""
        sides = {which: self.alone if which in column.alone else self for which in ("sum", "per")}
        if None in sides.values() or (column.alone and _aging_off(self)):
            return None
        parts = [sides["sum"].last(kernel, vcpus, metric) for metric in column.sum or (column.name,)]  # type: ignore[union-attr]
        if None in parts or len({part.iteration for part in parts if part}) > 1:
            return None
        found = _each([part for part in parts if part], sum)
        if not found or not column.per:
            return found and _each([found], lambda numbers: numbers[0] * column.scale)
        by = sides["per"].last(kernel, vcpus, column.per)  # type: ignore[union-attr]
        if "per" in column.alone:
            return ratio(found, by)
        scale = column.scale / (vcpus if column.each else 1)
        positive = by and Value({key: one for key, one in by.samples.items() if one > 0}, by.iteration, by.repeats)
        return _each([found, positive], lambda pair: pair[0] / pair[1] * scale - column.less) if positive else None

    def metrics(self) -> list[str]:
        """All metrics of the nominal model, in the order of the files."""
        return list(dict.fromkeys(metric for _, _, metric, model in self._cells if model == NOMINAL))

    def columns(self) -> list[Column]:
        """The Columns of bench.yaml that a table shows, of those that were measured."""
        known = [*benchmarks.columns(benchmarks.COMMON).values(), *benchmarks.columns(self.group.test).values()]
        return [column for column in known if column.head and self.has(column)]

    def has(self, column: Column) -> bool:
        """Whether any kernel has it at any vCPU count."""
        return any(self.value(kernel, vcpus, column) for kernel in self.kernels for vcpus in self.vcpus)

    def phases(self) -> list[str]:
        """The phases that have any count, in the order of the files."""
        return list(dict.fromkeys(metric.split(".", 1)[1] for metric in self.metrics() if benchmarks.counted(metric)))

    def samples_text(self, columns: Iterable[Column]) -> str:
        """How many samples stand behind `columns`: "5 samples", "3 to 5 samples", "no samples"."""
        cells = itertools.product(self.kernels, self.vcpus, columns)
        counts = [len(value.samples) for value in itertools.starmap(self.value, cells) if isinstance(value, Value)]
        few, many = min(counts, default=0), max(counts, default=0)
        return f"{few} to {many} samples" if few != many else f"{many or 'no'} sample{'s' * (many != 1)}"


def _each(values: Sequence[Value], make: Callable[[list[float]], float]) -> Value | None:
    """make(numbers) sample by sample; None if no sample is in all."""
    common = [key for key in values[0].samples if all(key in value.samples for value in values)]
    if not common:
        return None
    return Value(
        {key: make([value.samples[key] for value in values]) for key in common},
        values[0].iteration,
        all(value.repeats for value in values),
    )


def short(kernel: str) -> str:
    """A kernel's label without "upto:"."""
    return kernel[len(UPTO) :] if kernel.startswith(UPTO) else kernel


def foreign(kernel: str) -> bool:
    """True for the label of another series' kernel, such as v7.3:base."""
    return kernel not in (BASE, SERIES) and not kernel.startswith(UPTO)


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
        left, right = one.get(key, {}), two.get(key, {})
        if any(left[name] != right[name] for name in left.keys() & right.keys()):
            return False
    return same_model(one, two)


def _model(host: Host) -> dict[str, Any]:
    """What of a host decides virtual time: {"insn": 0.4, ..., "slice_ns": 500}; {} without."""
    vtime = host.get("vtime")
    if not vtime:
        return {}
    return {**{name: entry["ns"] for name, entry in vtime["parameters"].items()}, "slice_ns": vtime["slice_ns"]}


def same_model(one: Host, two: Host) -> bool:
    """False if two hosts have models of virtual time, and these differ."""
    models = [_model(host) for host in (one, two)]
    return models[0] == models[1] or not all(models)


def cohorts(results: Iterable[Results]) -> list[int]:
    """The number of its host for each file: files share one if they are of one machine,
    QEMU and set of kernels, so that their samples may be joined."""
    members: list[list[Host]] = []
    numbers = []
    for result in results:
        host = _description(result)
        number = next((n for n, hosts in enumerate(members) if all(_compatible(host, one) for one in hosts)), None)
        if number is None:
            number = len(members)
            members.append([])
        members[number].append(host)
        numbers.append(number)
    return numbers


def _aging_off(summary: Summary) -> bool:
    return published.options(summary.group.args).get("-a") == "0"


def summarise(results: Sequence[Results]) -> list[Summary]:
    """A Summary for each Group in `results`, in the order in which they first appear; those without aging are `.alone` of
    those that they belong to, and stand for themselves only where there are none."""
    found: dict[Group, Summary] = {}
    args = _home_args(results)
    for file, (result, cohort) in enumerate(zip(results, cohorts(results))):
        for run in result["runs"]:
            variant = " ".join(part for part in _config_parts(run["config"]) if part not in ("normal", "lockstat"))
            keys = (run["series"], run["arch"], run["accel"], run["clock"], run["cpu"], variant)
            group = Group(cohort, *keys, " ".join(map(str, run["params"])), run["test"], args(run))
            if group not in found:
                found[group] = Summary(group, result["host"])
            found[group].add_run(run, file)
        for trace in result.get("traces", ()):
            for group, summary in found.items():
                if (group.series, group.variant, group.args) == (trace["series"], trace["config"], trace["args"]):
                    summary.traces.append(trace)
    alone = {_aged(group): summary for group, summary in found.items() if _aging_off(summary)}
    for group, summary in found.items():
        if not _aging_off(summary):
            summary.alone = alone.get(_aged(group))
    taken = {id(summary.alone) for summary in found.values()}
    return [summary for summary in found.values() if id(summary) not in taken]


def _aged(group: Group) -> tuple[Group, frozenset[tuple[str, str | None]]]:
    """A Group without -a, and with its options in any order."""
    options = published.options(group.args)
    options.pop("-a", None)
    return replace(group, args=""), frozenset(options.items())
