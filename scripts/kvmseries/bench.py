"""Benchmarks: base and series take turns in one run, times from one kernel, lock counts from
another (LOCK_STAT brings lockdep, which is no kernel to take a time from)."""

import re
import shlex
from dataclasses import dataclass

import yaml

from . import (build, guest, image, kconfig, machine as machines, parse, paths, progress, results,
               selftests, toolchain, trees)
from .errors import Fail, Usage


@dataclass(frozen=True)
class Point:
    """A kernel to measure: "base", "series" or "upto:NAME", and its number of patches."""

    label: str
    count: int


@dataclass(frozen=True)
class Job:
    """What to run: everything about a benchmark but the kernel."""

    series: object           # catalog.Series
    arch: str
    test: str                # a key of bench.yaml
    line: tuple              # the test's arguments but the number of vCPUs
    vcpus: tuple
    points: tuple            # of Point
    samples: int
    configs: tuple           # overlays of the kernels: ("64k",)
    counts: bool             # also boot lockstat kernels
    times: bool
    cpu: str
    accel: str
    params: tuple
    kernel: object           # the user's tree, or None


def settings(test):
    """The entry of bench.yaml for `test`."""
    known = yaml.safe_load((paths.TESTS / "bench.yaml").read_text(encoding="utf-8"))
    if test not in known or test not in parse.PARSERS:
        raise Usage(f"unknown test '{test}': scripts/series bench knows "
                    f"{', '.join(sorted(set(known) & set(parse.PARSERS)))}")
    return known[test]


def points(series, text):
    """Points from "base,series,upto:fast-path"."""
    found = []
    for label in text.split(","):
        if label == "base":
            found.append(Point(label, 0))
        elif label == "series":
            found.append(Point(label, len(series.patches)))
        elif label.startswith("upto:"):
            found.append(Point(label, series.upto(label[len("upto:"):])))
        else:
            raise Usage(f"unknown kernel '{label}': --kernels takes base, series and upto:STEP")
    if len({point.label for point in found}) != len(found):
        raise Usage(f"--kernels {text} names a kernel twice")
    return tuple(found)


def vcpu_counts(text):
    """Counts from "1,2,4"."""
    if not re.fullmatch(r"\d{1,5}(,\d{1,5})*", text, re.A):
        raise Usage(f"--vcpus '{text}' is not a list of numbers such as 1,2,4")
    counts = tuple(int(word) for word in text.split(","))
    for count in counts:
        if not 1 <= count <= 64:
            raise Usage(f"--vcpus {count}: a guest has 1 to 64 vCPUs")
    if len(set(counts)) != len(counts):
        raise Usage(f"--vcpus {text} names a count twice")
    return counts


def arguments(test, arch, extra, alone=False):
    """The test's arguments but the number of vCPUs: the defaults with `extra` (text) over them, or
    `extra` alone."""
    entry = settings(test)
    try:
        words = shlex.split(extra or "")
    except ValueError as error:
        raise Usage(f"--test-args '{extra}': {error}") from None
    # getopt takes "-v4", too.
    if any(word.startswith(entry["vcpus"]) for word in words):
        raise Usage(f"--test-args: the number of vCPUs comes from --vcpus, not from "
                    f"{entry['vcpus']}")
    line = []
    for option, value in ({} if alone else entry["args"].get(arch, {})).items():
        if option not in words:
            line += [option] if value is None else [option, str(value)]
    return line + words


def kernel_params(test, line):
    """Kernel parameters that the arguments `line` need."""
    found = []
    for word, params in settings(test).get("params", {}).items():
        if word in line:
            found += params
    return found


def run(job):
    """Run `job`; returns (list of runs for results.save(), dict of kernels to their versions)."""
    line = list(job.line)
    configs = ([(*job.configs, "lockstat")] if job.counts else []) \
        + ([job.configs] if job.times else [])
    steps = progress.Steps(_plan(job, configs))
    kernels = {}
    with steps.step("fetch-apply"):
        trees.base(job.series, job.kernel)
        for point in job.points:
            trees.worktree(job.series, point.count, job.kernel)
    for config in configs:
        for point in job.points:
            with steps.step(f"build-{job.arch}-{kconfig.name(config)}-{bool(point.count)}") as note:
                kernels[point, config] = build.kernel(job.series, point.count, job.arch, config,
                                                      job.kernel, note)
    with steps.step(f"selftests-{job.arch}"):
        tests = selftests.build(job.series, job.arch, job.kernel)
        initrd = image.base(job.arch, tests)
    table, versions = {}, {}
    for config in configs:
        for sample in range(1 if "lockstat" in config else job.samples):
            # Every other round the other way round: what drifts hits both alike.
            for point in job.points[::-1] if sample % 2 else job.points:
                with steps.step(_boot_key(job, config)) as note:
                    result = _boot(job, kernels[point, config], initrd, line, point, config, note)
                versions[f"{point.label} {job.arch} {kconfig.name(config)}"] = result.version
                for outcome, count in zip(result.outcomes, job.vcpus):
                    collect(table, job, point, config, line, count,
                            parse.parse(job.test, outcome.output), (job.accel, "wall"))
    return list(table.values()), versions


def _boot_key(job, config):
    return f"bench-{job.arch}-{kconfig.name(config)}-{job.test}-{sum(job.vcpus)}"


def _plan(job, configs):
    plan = [("fetch-apply", f"base {job.series.kernel} and its patched trees", 60)]
    for config in configs:
        for point in job.points:
            plan.append((f"build-{job.arch}-{kconfig.name(config)}-{bool(point.count)}",
                         f"build {point.label} for {job.arch} ({kconfig.name(config)})",
                         build.seconds(job.arch, kconfig.name(config), point.count)))
    plan.append((f"selftests-{job.arch}", f"build the selftests for {job.arch}", 15))
    for config in configs:
        for sample in range(1 if "lockstat" in config else job.samples):
            for point in job.points[::-1] if sample % 2 else job.points:
                what = "lock counts" if "lockstat" in config else f"times, round {sample + 1}"
                plan.append((_boot_key(job, config), f"{job.test} on {point.label} ({what})",
                             10 + 4 * sum(job.vcpus)))
    return plan


def _boot(job, kernel, initrd, line, point, config, note):
    entry = settings(job.test)
    prefix = ["/tests/lockphase", "--"] if "lockstat" in config else []
    limit = entry["timeout"] * (4 if "lockstat" in config else 1)
    commands = [(f"{job.test}-{count}", limit * (1 + count),
                 [*prefix, f"/tests/{job.test}", entry["vcpus"], str(count), *line])
                for count in job.vcpus]
    machine = machines.Machine(job.arch, job.cpu, job.accel, max(job.vcpus) + 1,
                               entry.get("memory", 3072),
                               (*kernel_params(job.test, line), *job.params))
    name = (f"bench-{job.series.name}-{job.arch}-{point.label.replace(':', '-')}-"
            f"{kconfig.name(config)}")
    result = guest.run(kernel, initrd, machine, commands, name, note)
    if result.splats:
        raise Fail(f"{point.label}: the kernel reported a mistake: {result.splats[0]} "
                   f"(see {result.folder}/console.log)")
    for outcome in result.outcomes:
        if outcome.status:
            last = outcome.output.strip().splitlines()[-1:] or ["nothing"]
            raise Fail(f"{outcome.name} on {point.label} "
                       f"{'ran out of time' if outcome.status == 124 else 'failed'} (status "
                       f"{outcome.status}): {last[0].strip()} (see {result.folder}/job.log)")
    return result


def collect(table, job, point, config, line, count, measures, origin):
    """Add one run's measures to `table`, a dict of runs by everything but their samples.

    origin: (accel, clock).  A lockstat kernel's times and a normal kernel's counts are left out.
    """
    for measure in measures:
        if (measure.unit == "s") == ("lockstat" in config):
            continue
        key = (point.label, config, count, measure.metric, measure.iteration)
        entry = table.setdefault(key, {
            "series": job.series.name, "kernel": point.label, "arch": job.arch,
            "accel": origin[0], "clock": origin[1],
            "cpu": job.cpu if origin[0] == "tcg" else "host", "config": kconfig.name(config),
            "params": list(job.params), "test": job.test, "args": shlex.join(line),
            "vcpus": count, "iteration": measure.iteration, "metric": measure.metric,
            "unit": measure.unit, "samples": []})
        entry["samples"].append(measure.value)


def host(job, versions):
    """Description of this machine for the results of `job`."""
    tools = [machines.binary(job.arch), f"{toolchain.prefix(job.arch)}gcc"]
    return results.host_info(tools, versions)
