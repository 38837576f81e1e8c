"""bench --here: the tests on the machine itself, booted with the kernel under test."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base import proc, progress
from ..base.errors import Fail, Usage
from ..data import ids, parse, results
from ..data.shape import Host, Ids, Run
from ..kernel import selftests, toolchain
from ..source import trees
from . import bench

# How releases of the tool's own kernels end.
OWN = r"-(base|series|upto-(\d+))$"


def label(release: str) -> str:
    """The label of the kernel with this release, as the tool's own kernels carry it at their end: "5.10.262-upto-3" is
    "upto:3"."""
    match = re.search(OWN, release)
    if not match:
        raise Usage(
            f"--here: linux {release} does not say which kernel of the series it is: add base, series or upto:MILESTONE"
        )
    return f"upto:{match[2]}" if match[2] else match[1]


def run(job: bench.Job) -> tuple[list[Run], dict[str, str]]:
    """Run `job`'s test on this machine; its one point says which kernel it was booted with.  Returns (runs, versions) as
    bench.run() does: times, or lock counts alone if the kernel has /proc/lock_stat.

    Results of several boots are put together by giving their files to `series report`.
    """
    if platform.machine() != toolchain.machine(job.arch):
        raise Usage(f"--here: this machine is {platform.machine()}, --arch {job.arch} is not")
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        raise Fail("--here: cannot open /dev/kvm: is KVM in this kernel, and are you root?")
    line = list(job.line)
    folder = selftests.build(job.series, job.arch, job.kernel)
    counting = os.path.exists("/proc/lock_stat")
    (point,) = job.points
    times = [(sample, count) for sample in range(job.samples) for count in job.vcpus]
    steps = progress.Steps(
        [(f"here-{job.test}", f"{job.test} -v {count}, round {sample + 1}", 5 * count) for sample, count in times]
    )
    table: bench.Table = {}
    for _, count in times:
        with steps.step(f"here-{job.test}"):
            output = _once(job, folder, counting, count, line)
        measures = parse.parse(job.test, output)
        bench.collect(table, job, point, ("lockstat",) if counting else (), line, count, measures)
    return list(table.values()), {f"{point.label} {job.arch} here": platform.release()}


def _once(job: bench.Job, folder: Path, counting: bool, count: int, line: Sequence[str]) -> str:
    prefix = [str(folder / "lockphase"), "--"] if counting else []
    # The tests print line by line only on a terminal; lockphase needs lines.
    command = shlex.join([*prefix, str(folder / job.test), bench.VCPUS, str(count), *line])
    proc.need("script")
    status, output = proc.attempt(["script", "-q", "-e", "-c", command, "/dev/null"], job.test)
    if status:
        raise Fail(f"{job.test} failed here (status {status}): {proc.reason(output)}")
    return output.replace("\r", "")


state = bench.state


def host(_job: bench.Job, versions: Mapping[str, str]) -> Host:
    """Description of this machine for the results of a job."""
    return results.host_info(["gcc"], versions)


def made_of(job: bench.Job) -> Ids:
    """The ids for results.save(): which source the kernel that runs is of cannot be known."""
    tree = trees.worktree(job.series, len(job.series.patches), job.kernel)
    tests: dict[str, str | None] = {job.series.name: ids.source(tree.path, ids.TESTS), "programs": ids.programs()}
    return {"kernels": {point.label: None for point in job.points}, "tests": tests, "instrument": ids.instrument()}
