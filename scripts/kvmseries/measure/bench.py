"""Benchmarks: base and series take turns in one run, times from one kernel, lock counts from
another (LOCK_STAT brings lockdep, which is no kernel to take a time from)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vtime import vtime

from ..base import paths, progress
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import benchmarks, ids, parse, repeat, results, shape
from ..data.shape import Host, Ids, Run
from ..kernel import build, kconfig, mutants, selftests, toolchain
from ..source import catalog, trees
from ..vm import image, machine as machines, run as guest
from . import counters

# The option of a test that takes the number of vCPUs.
VCPUS = "-v"
# Runs by shape.key().
Table = dict[tuple[str, ...], Run]
# Kernels by label and configuration; initrds by series.
Built = tuple[dict[tuple[str, tuple[str, ...]], build.Kernel], dict[str, Path]]


@dataclass(frozen=True)
class Job:
    """What to run: everything about a benchmark but the kernel."""

    series: catalog.Series
    arch: str
    test: str  # a key of bench.yaml
    line: tuple[str, ...]  # the test's arguments but the number of vCPUs
    vcpus: tuple[int, ...]
    points: tuple[catalog.Point, ...]
    samples: int
    cpu: str
    kernel: str | None  # the user's tree, or None
    configs: tuple[str, ...] = ()  # overlays of the kernels: ("64k",)
    counts: bool = True  # also boot lockstat kernels
    times: bool = True
    accel: str = "tcg"  # "here": no guest
    params: tuple[str, ...] = ()
    clock: str = "wall"
    models: tuple[str, ...] = (vtime.NOMINAL,)  # of the virtual clock; see vtime.py
    extra: str = ""  # --test-args: for the other series' own defaults
    retries: int = 0  # how often rounds that do not repeat are measured again


def settings(test: str) -> dict[str, Any]:
    """The entry of bench.yaml for `test`."""
    known = benchmarks.load()
    if test not in known:
        raise Usage(f"unknown test '{test}': scripts/series bench knows {', '.join(sorted(known))}")
    return known[test]


def case(test: str, name: str) -> dict[str, str]:
    """The case `name` of bench.yaml, for "" an empty one: dict of args (--test-args) and, maybe, cpu, and since: the
    first kernel whose test has what it asks for."""
    known = settings(test).get("cases", {})
    if name and name not in known:
        raise Usage(f"unknown case '{name}': {test} has {', '.join(known) or 'none'}")
    return known[name] if name else {"args": ""}


def defaults(test: str, arch: str, kernel: str) -> dict[str, str | int | None]:
    """The options of `test` for `arch` and selftests of `kernel` ("7.3.4"): of another version they number their guest modes
    otherwise.

    Returns a dict of option to value, None for an option without one, in the order of the command
    line: `args`, then what `since` has for this kernel or an earlier one, the latest last.
    """
    entry = settings(test)
    found = dict(entry["args"].get(arch, {}))
    since = {version(text): args for text, args in entry.get("since", {}).items()}
    for first in sorted(since):
        if first <= version(kernel):
            found.update(since[first].get(arch, {}))
    return found


def version(text: str) -> tuple[int, int]:
    """(major, minor) of a kernel's version, "7.3.4" or "7.3"."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def able(series: catalog.Series, arch: str, test: str, name: str, since: str | None) -> None:
    """Raises Usage if `series` has no `test` on `arch`, as a test of ours may be for some alone, or no case `name` of it, which
    is for linux `since` and later (None: for all)."""
    own = [f"{of} on {on}" for (of, on), programs in selftests.TESTS.items() if test in programs]
    if own and f"{series.name} on {arch}" not in own:
        raise Usage(f"{test} is a test of {' and '.join(own)}, and not of {series.name} on {arch}")
    if since and version(series.kernel) < version(since):
        raise Usage(f"case '{name}' of {test} is for linux {since} and later, and not for {series.kernel}")


def arguments(test: str, arch: str, extra: str, kernel: str) -> list[str]:
    """The test's arguments but the number of vCPUs: the defaults for selftests of `kernel`
    ("5.10.262") with `extra` (text) over them.  An option of `extra` with a minus sign
    behind it, "-g-", takes the default away."""
    try:
        words = shlex.split(extra or "")
    except ValueError as error:
        raise Usage(f"--test-args '{extra}': {error}") from None
    # getopt takes "-v4", too.
    if any(word.startswith(VCPUS) for word in words):
        raise Usage(f"--test-args: the number of vCPUs comes from --vcpus, not from {VCPUS}")
    less = [word[:-1] for word in words if re.fullmatch(r"-\w-", word)]
    words = [word for word in words if not re.fullmatch(r"-\w-", word)]
    line = []
    for option, value in defaults(test, arch, kernel).items():
        if option not in words and option not in less:
            line += [option] if value is None else [option, str(value)]
    return line + words


def kernel_params(test: str, line: Sequence[str]) -> list[str]:
    """Kernel parameters that the arguments `line` need."""
    return [param for word, params in settings(test).get("params", {}).items() if word in line for param in params]


# Rounds of a virtual clock differ in the length of its slice, ns: a figure that depends on it is wrong.
_SLICES = (500, 400, 625)


@dataclass(frozen=True)
class Round:
    """One boot of each kernel."""

    config: tuple[str, ...]
    model: str
    number: int

    @property
    def counts(self) -> bool:
        """Whether it is for lock counts."""
        return "lockstat" in self.config


def rounds(job: Job) -> list[Round]:
    """The Rounds of `job`, in order."""
    found = [Round((*job.configs, "lockstat"), vtime.NOMINAL, 0)] if job.counts else []
    for model in job.models if job.times else ():
        found += [Round(job.configs, model, number) for number in range(job.samples if model == vtime.NOMINAL else 1)]
    return found


def run(job: Job) -> tuple[list[Run], dict[str, str]]:
    """Run `job`; returns (list of runs for results.save(), dict of kernels to their versions)."""
    steps = progress.Steps(_plan(job))
    kernels, programs = {}, {}
    with steps.step("fetch-apply"):
        for point in job.points:
            trees.base(point.series, _tree(job, point))
            trees.worktree(point.series, point.count, _tree(job, point))
    for config in dict.fromkeys(entry.config for entry in rounds(job)):
        for point in job.points:
            with steps.step(_build_key(job, point, config)) as note:
                kernels[point.label, config] = _kernel(job, point, config, note)
    with steps.step(f"selftests-{job.arch}"):
        for point in job.points:
            if point.series.name not in programs:
                tests = selftests.build(point.series, job.arch, _tree(job, point))
                if (point.series.name != job.series.name or _debug(job)) and job.test not in selftests.programs(tests):
                    raise Fail(
                        f"{point.label}: the selftests of linux {point.series.kernel} have no {job.test} for {job.arch}"
                    )
                programs[point.series.name] = image.base(job.arch, tests)
    table: Table = {}
    versions = {}
    for entry, point in turns(job, rounds(job)):
        with steps.step(_boot_key(job, entry.config)) as note:
            versions[f"{point.label} {job.arch} {kconfig.name(entry.config)}"] = _measure(
                job, (kernels, programs), point, entry, job.vcpus, table, note
            )
    runs = list(table.values())
    if job.clock == "virtual":
        _retry(job, (kernels, programs), runs)
    return repeat.mark(runs), versions


def _kernel(job: Job, point: catalog.Point, config: tuple[str, ...], note: progress.Note) -> build.Kernel:
    """The kernel of `point`, with the patch of bench.yaml's `debug` on top if the test has one."""
    names = _debug(job)
    if names:
        return mutants.kernel(point.series, names, job.arch, config, point.count, _tree(job, point), note)
    return build.kernel(point.series, point.count, job.arch, config, _tree(job, point), note)


def _debug(job: Job) -> tuple[str, ...]:
    """Names of patches of patches/instruments that the test measures with."""
    name = settings(job.test).get("debug")
    return (name,) if name else ()


def turns(job: Job, entries: Iterable[Round]) -> list[tuple[Round, catalog.Point]]:
    """(Round, Point) in the order in which they run."""
    return [(entry, point) for entry in entries for point in catalog.in_turn(job.points, entry.number)]


def _measure(
    job: Job, built: Built, point: catalog.Point, entry: Round, vcpus: Sequence[int], table: Table, note: progress.Note
) -> str:
    """Boot once for the counts `vcpus` and add what was measured to `table`; returns the kernel's version.

    built: ({(label, configs): build.Kernel}, {series: initrd}).
    """
    kernels, programs = built
    result, counted = _boot(
        job, kernels[point.label, entry.config], programs[point.series.name], point, entry, vcpus, note
    )
    for outcome, count in zip(result.outcomes, vcpus):
        measures = parse.parse(job.test, outcome.output)
        if counted is not None and not entry.number and entry.model == job.models[0]:
            if not counted.get(outcome.name):
                raise Fail(f"the virtual clock saw no phase of {outcome.name} (see {result.folder})")
            measures += counters.measures(counted[outcome.name])
        collect(table, job, point, entry.config, list(job.line), count, measures, entry.model)
    return result.version


def _retry(job: Job, built: Built, runs: list[Run]) -> None:
    """Measure the rounds of what should repeat and does not again, `job.retries` times at most: all rounds of such a
    kernel with such a number of vCPUs.  `runs` get the new samples, and keep the old ones as `earlier`."""
    for attempt in range(job.retries):
        again: dict[str, set[int]] = {}
        for run in repeat.failed(runs):
            again.setdefault(run["kernel"], set()).add(run["vcpus"])
        if not again:
            return
        boots = [
            (entry, point)
            for entry, point in turns(job, rounds(job))
            if point.label in again and entry.model == vtime.NOMINAL and not entry.counts
        ]
        retry = f"again (retry {attempt + 1} of {job.retries}, round"
        steps = progress.Steps(
            [_boot_step(job, entry, f"{point.label} {retry} {entry.number + 1})") for entry, point in boots]
        )
        table: Table = {}
        for entry, point in boots:
            with steps.step(_boot_key(job, entry.config)) as note:
                _measure(job, built, point, entry, sorted(again[point.label]), table, note)
        repeat.replace(runs, list(table.values()))


def _tree(job: Job, point: catalog.Point) -> str | None:
    """The user's own tree, which stands for the base of `job`'s series alone."""
    return job.kernel if point.series.name == job.series.name else None


def _boot_key(job: Job, config: tuple[str, ...]) -> str:
    return f"bench-{job.arch}-{kconfig.name(config)}-{job.clock}-{job.test}-{sum(job.vcpus)}"


def _build_key(job: Job, point: catalog.Point, config: tuple[str, ...]) -> str:
    return f"build-{job.arch}-{kconfig.name(config)}-{point.series.name}-{bool(point.count)}"


def _plan(job: Job) -> list[progress.Step]:
    plan: list[progress.Step] = [("fetch-apply", f"base {job.series.kernel} and its patched trees", 60)]
    for config in dict.fromkeys(entry.config for entry in rounds(job)):
        for point in job.points:
            plan.append(
                (
                    _build_key(job, point, config),
                    f"build {point.label} for {job.arch} ({kconfig.name(config)})",
                    build.seconds(job.arch, kconfig.name(config), point.count),
                )
            )
    plan.append((f"selftests-{job.arch}", f"build the selftests for {job.arch}", 15))
    for entry, point in turns(job, rounds(job)):
        title = "lock counts" if entry.counts else f"times, round {entry.number + 1}"
        if entry.model != vtime.NOMINAL:
            title = f"times, {entry.model}"
        plan.append(_boot_step(job, entry, f"{point.label} ({title})"))
    return plan


def _boot_step(job: Job, entry: Round, what_: str) -> progress.Step:
    return _boot_key(job, entry.config), f"{job.test} on {what_}", _seconds(job)


def _seconds(job: Job) -> float:
    """Estimate for a boot.  In virtual time contended CPUs cost more than their share."""
    if job.clock == "virtual":
        return 3 + sum(0.4 * count + 0.012 * count**2 for count in job.vcpus)
    return 10 + 4 * sum(job.vcpus)


# A real-time thread that spins keeps kernel threads from its CPU until the scheduler's fair server lets them run: by
# default after 0.95 s, for 50 ms. An ioctl that waits for an SRCU grace period, as turning the dirty log on does, waits
# for one of them. So the server gives them 1 ms after 19 ms, for tests that turn the log on while vCPUs spin. Not for
# others, and not sooner: each time that it lets a thread run, it takes the CPU from what is measured.
# Set on the CPU itself: 6.12's gets its accounts wrong, and warns, if the server is not at work.
_FAIR_SERVER = """for cpu in /sys/kernel/debug/sched/fair_server/cpu*; do
	taskset -c ${cpu##*cpu} sh -c 'echo 1000000 > $0/runtime && echo 20000000 > $0/period' $cpu || exit 125
done
exec "$@"
"""
# The first kernel that has it: d741f297bcea ("sched/fair: Fair server interface").
_HAS_FAIR_SERVER = (6, 12)


def scheduling(arch: str, test: str, kernel: str) -> list[str]:
    """Words before a test's command in virtual time, on linux `kernel` ("7.3.4"): spread, which makes its threads
    real-time ones that keep off each other's CPUs, unless bench.yaml wants it fair there."""
    if arch in settings(test).get("fair", ()):
        return []
    server = settings(test).get("server") and version(kernel) >= _HAS_FAIR_SERVER
    return [*(["sh", "-c", _FAIR_SERVER, "fair-server"] if server else []), "/tests/spread"]


def _boot(
    job: Job,
    kernel: build.Kernel,
    initrd: Path,
    point: catalog.Point,
    entry: Round,
    vcpus: Sequence[int],
    note: progress.Note,
) -> tuple[guest.Result, dict[str, list[counters.Counted]] | None]:
    """(guest.Result, counters by command or None) of runs with each of the counts `vcpus`, on a machine for all of the
    job's"""
    setting = settings(job.test)
    line = list(job.line)
    if point.series.name != job.series.name:
        line = arguments(job.test, job.arch, job.extra, point.series.kernel)
    prefix = scheduling(job.arch, job.test, kernel.tree.version) if job.clock == "virtual" else []
    prefix += ["/tests/lockphase", "--"] if entry.counts else []
    limit = setting["timeout"] * (4 if entry.counts else 1)
    prefix += [f"/tests/{job.test}", VCPUS]
    commands = [(f"{job.test}-{count}", limit * (1 + count), [*prefix, str(count), *line]) for count in vcpus]
    machine = machines.Machine(
        job.arch,
        job.cpu,
        job.accel,
        max(job.vcpus) + 2,
        setting.get("memory", 3072),
        (*kernel_params(job.test, line), *job.params),
    )
    if job.clock == "virtual":
        machine = replace(machine, clock="virtual", model=entry.model, slice_ns=_SLICES[entry.number % len(_SLICES)])
    name = f"bench-{job.series.name}-{job.arch}-{point.label.replace(':', '-')}-{kconfig.name(entry.config)}"
    # The folder of that name is this run's until its counters are read.
    with paths.locked(name, say):
        result = guest.run(kernel, initrd, machine, commands, name, note)
        if result.splats:
            raise Fail(
                f"{point.label}: the kernel reported a mistake: {result.splats[0]} (see {result.folder}/console.log)"
            )
        for outcome in result.outcomes:
            if outcome.status:
                last = outcome.output.strip().splitlines()[-1:] or ["nothing"]
                raise Fail(
                    f"{outcome.name} on {point.label} "
                    f"{'ran out of time' if outcome.status == 124 else 'failed'} (status "
                    f"{outcome.status}): {last[0].strip()} (see {result.folder}/job.log)"
                )
        if job.clock != "virtual":
            return result, None
        return result, counters.by_test(counters.load(result.folder))


def collect(
    table: Table,
    job: Job,
    point: catalog.Point,
    config: Iterable[str],
    line: Sequence[str],
    count: int,
    measures: Iterable[parse.Measure],
    model: str = "",
) -> None:
    """Add one run's measures to `table`, a dict of runs by shape.key().

    Only its lock counts are taken of a lockstat kernel, all else of the others.
    """
    for measure in measures:
        if measure.metric.startswith("mmu_lock_") != ("lockstat" in config):
            continue
        found: Run = {
            "series": job.series.name,
            "kernel": point.label,
            "arch": job.arch,
            "accel": job.accel,
            "clock": job.clock,
            "model": model if job.clock == "virtual" else "",
            "cpu": job.cpu if job.accel == "tcg" else "host",
            "config": kconfig.name(config),
            "params": list(job.params),
            "test": job.test,
            "args": shlex.join(line),
            "vcpus": count,
            "iteration": measure.iteration,
            "metric": measure.metric,
            "unit": measure.unit,
            "samples": [],
        }
        table.setdefault(shape.key(found), found)["samples"].append(measure.value)


def host(job: Job, versions: Mapping[str, str]) -> Host:
    """Description of this machine for the results of `job`."""
    virtual = job.clock == "virtual"
    tools = [vtime.qemu(job.arch).program if virtual else machines.binary(job.arch), f"{toolchain.prefix(job.arch)}gcc"]
    found = results.host_info(tools, versions)
    if virtual:
        found["vtime"] = {**vtime.description(job.arch), "slice_ns": _SLICES[0]}
    return found


def state(job: Job) -> list[str]:
    """What tells before and after a run whether its sources have changed meanwhile; needs no tree."""
    return [ids.programs(), ids.instrument(), *(point.series.diffs_id(point.count) for point in job.points)]


def made_of(job: Job) -> Ids:
    """The ids of all that `job` measures, for results.save().  Its trees are made."""
    trees_of = {point.label: trees.worktree(point.series, point.count, _tree(job, point)) for point in job.points}
    suites = {
        point.series.name: trees.worktree(point.series, len(point.series.patches), _tree(job, point))
        for point in job.points
    }
    return {
        "kernels": {label: ids.source(tree.path, job.arch) for label, tree in trees_of.items()},
        "tests": {
            **{name: ids.source(tree.path, ids.TESTS) for name, tree in suites.items()},
            "programs": ids.programs(),
        },
        "instrument": ids.instrument(),
    }
