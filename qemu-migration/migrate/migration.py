"""Live migrations measured: QEMU's base and a series take turns at migrating a guest that dirties memory.

Without KVM hardware an emulated machine (L1; arm64, or x86-64 with SVM) is booted with the kernel of series v7.3's
base, and both QEMUs run in it.  With --accel kvm they run on this machine itself.  Counts are the results; times say how
one QEMU compares with the other in the same boot.
"""

from __future__ import annotations

import itertools
import platform
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kvmseries.base import paths, proc, progress
from kvmseries.base.errors import Fail, Usage
from kvmseries.base.numbers import numbers
from kvmseries.base.progress import Note, say
from kvmseries.data import ids, results, shape
from kvmseries.data.shape import Host, Ids, Run, Trace
from kvmseries.kernel import build as kernels, kconfig, toolchain
from kvmseries.source import catalog, trees
from kvmseries.vm import image, machine as machines, run as guest

from . import build, driver

TEST = "migration"
KERNEL = "v7.3"  # series whose base is the kernel of L1
ARCH = "arm64"  # where none is named
# Overlays of L1's kernel.
CONFIGS = {"arm64": (), "x86_64": ("vmm",)}
RINGS = (0, 1024, 4096, 65536)


@dataclass(frozen=True)
class Job:
    """What to run: each of `settings` with each of `points`, `samples` times."""

    series: catalog.Series  # catalog.Series
    points: tuple[catalog.Point, ...]  # of catalog.Point
    settings: tuple[driver.Setting, ...]  # of driver.Setting
    samples: int
    accel: str = "tcg"
    cpus: int = 4  # of L1
    tree: str | None = None  # the user's own
    arch: str = ARCH


def settings(
    rings: Iterable[int], vcpus: Iterable[int], working_sets: Iterable[int], **others: Any
) -> tuple[driver.Setting, ...]:
    """Settings for all combinations; working_sets in MiB."""
    return tuple(
        driver.Setting(ring=ring, vcpus=count, working_set=size * 1024, **others)
        for size, count, ring in itertools.product(working_sets, vcpus, rings)
    )


def rings(text: str) -> tuple[int, ...]:
    """Ring sizes from "bitmap,1024"; 0 is the bitmap."""
    found = numbers("--rings", text.replace("bitmap", "0"), 0, 65536)
    for size in found:
        if size and (size < 1024 or size & (size - 1)):
            raise Usage(f"--rings {size}: KVM takes powers of two from 1024 to 65536")
    return found


def machine(accel: str, cpus: int, arch: str) -> machines.Machine:
    """L1, but for its memory(), which follows from the guests."""
    params: tuple[str, ...] = ()
    if arch == "x86_64" and accel == "tcg":
        # The kernel measures the TSC wrongly on a busy host, and KVM lets a guest's TSC jump if it does not trust the machine's.
        params = (f"tsc_early_khz={driver.ticks()}", "tsc=reliable")
    return machines.Machine(arch, accel=accel, cpus=cpus, params=params)


def memory(size: int) -> int:
    """MiB of L1 for guests of `size` MiB: source and destination are files in a tmpfs, which has half of it."""
    return max(2048, 1024 + 4 * size)


class Runner:
    """Runs commands of the driver on the QEMUs `programs` (label: build.Program), in L1 or here."""

    def __init__(
        self,
        programs: Mapping[str, build.Program],
        accel: str = "tcg",
        cpus: int = 4,
        name: str = "migration",
        arch: str = ARCH,
    ) -> None:
        self.accel, self.name = accel, name
        self.machine = machine(accel, cpus, arch)
        self.tools = driver.build(arch)
        self.folder = paths.out("runs", f"{name}-input")
        self.version = platform.release()
        self.reports: list[str] = []  # what L1's kernel reported, in all runs
        self.kernel: kernels.Kernel | None = None
        paths.remove(self.folder)
        self.folder.mkdir(parents=True)
        if accel == "kvm":
            self.events = {
                label: driver.bundle(program, driver.place(self.folder, label)) for label, program in programs.items()
            }
        else:
            self.kernel = kernels.kernel(catalog.load(KERNEL), 0, arch, CONFIGS[arch])
            self.events = _archive(programs, self.tools, self.folder / "initrd", arch)

    def words(self, label: str, setting: driver.Setting) -> list[str]:
        """The command line of one run."""
        if self.accel == "kvm":
            place, folder, tools = self.folder, "/dev/shm", self.tools
        else:
            place, folder, tools = Path("/q"), "/tmp", Path("/migration")
        words = [str(tools / "driver"), f"qemu={driver.place(place, label)}", f"folder={folder}/{self.name}"]
        return [*words, *([f"guest={tools / 'guest.elf'}"] if self.accel == "kvm" else []), *setting.words()]

    def run(self, commands: Sequence[tuple[str, str, driver.Setting]], note: Note | None = None) -> list[guest.Outcome]:
        """Run `commands`, a list of (name, label, Setting); returns guest.Outcomes in the same order."""
        lines = [(name, setting.seconds, self.words(label, setting)) for name, label, setting in commands]
        if not self.kernel:
            return [self._here(*line, note) for line in lines]
        below = replace(self.machine, memory=memory(max(setting.memory for _, _, setting in commands)))
        result = guest.run(self.kernel, self.folder / "initrd", below, lines, self.name, note)
        self.version = result.version
        if result.splats:
            kept = paths.out("reports", f"{self.name}-{lines[0][0]}-{time.strftime('%Y-%m-%dT%H%M%S')}")
            guest.keep(result.folder, kept)
            for splat in result.splats:
                say(f"L1's kernel reported: {splat} (see {kept}/console.log)")
            self.reports += result.splats
        return result.outcomes

    def _here(self, name: str, seconds: float, line: Sequence[str], note: Note | None) -> guest.Outcome:
        if note:
            note(name)
        status, text = proc.attempt(["timeout", str(seconds), *line], name)
        shutil.rmtree(f"/dev/shm/{self.name}", ignore_errors=True)
        return guest.Outcome(name, status, 0, text)

    def close(self) -> None:
        """Remove what was made for the runs."""
        paths.remove(self.folder)


def _archive(programs: Mapping[str, build.Program], tools: Path, target: Path, arch: str) -> dict[str, list[str]]:
    """Write the initramfs of L1 to `target`: the driver, the guest (`tools`, as driver.build() returns for `arch`) and the QEMUs
    `programs`, each in driver.place("/q", LABEL).  Returns {label: events that it has}."""
    with paths.whole(target.with_suffix(".root")) as root:
        image.begin(root, arch)
        (root / "migration").mkdir()
        for name in driver.NAMES[arch]:
            shutil.copy2(tools / name, root / "migration" / name)
        events = {label: driver.bundle(program, driver.place(root / "q", label)) for label, program in programs.items()}
        image.cpio(root, target)
    paths.remove(target.with_suffix(".root"))
    return events


def found(outcome: guest.Outcome) -> driver.Figures:
    """The driver's figures of a guest.Outcome; Fail if it hung or broke off."""
    if outcome.status == 124:
        raise Fail(f"{outcome.name} hangs; it last printed: {(outcome.output.splitlines() or ['nothing'])[-1]}")
    try:
        values = driver.parse(outcome.output)
    except Fail as error:
        raise Fail(f"{outcome.name}: {error}") from None
    if outcome.status:
        raise Fail(f"{outcome.name} ended with status {outcome.status}")
    return values


@dataclass
class Taken:
    """What has been measured."""

    table: dict[tuple[str, ...], Run] = field(default_factory=dict)  # runs, by shape.key()
    versions: dict[str, str] = field(default_factory=dict)  # of kernels, for results.host_info()
    traces: list[Trace] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)  # lines

    @property
    def runs(self) -> list[Run]:
        """The runs for results.save()."""
        return list(self.table.values())


def groups(job: Job) -> list[list[driver.Setting]]:
    """The settings of each boot: those that differ in the ring alone are compared with each other."""
    return [list(group) for _, group in itertools.groupby(job.settings, lambda one: replace(one, ring=0))]


def plan(job: Job) -> list[progress.Step]:
    """Steps for progress.Steps."""
    steps: list[progress.Step] = [
        (f"qemu-build-{job.arch}-{bool(point.count)}", f"build QEMU {point.label} for {job.arch}", 330)
        for point in job.points
    ]
    steps.append(("migration-l1", "build the kernel of L1 and the guest", 200))
    for group in groups(job):
        vcpus, size = group[0].vcpus, group[0].working_set
        count = len(group) * len(job.points) * job.samples
        what = f"{count} migrations, {vcpus} vCPUs, {size // 1024} MiB"
        steps.append((f"migrations-{vcpus}-{size}", what, 60 * count))
    return steps


def run(job: Job, built: Mapping[str, build.Program] | None = None) -> Taken:
    """Run `job`; returns what was measured and complaints about it.  built: {label: Program} instead of building them."""
    taken = Taken()
    todo = plan(job)
    steps = progress.Steps(todo if built is None else todo[len(job.points) :])
    if built is None:
        made = {}
        for point in job.points:
            with steps.step(f"qemu-build-{job.arch}-{bool(point.count)}") as note:
                made[point.label] = build.program(point.series, point.count, job.arch, job.tree, note)
        built = made
    with steps.step("migration-l1"):
        runner = Runner(built, job.accel, job.cpus, f"bench-{job.series.name}-migration", job.arch)
    for group in groups(job):
        with steps.step(f"migrations-{group[0].vcpus}-{group[0].working_set}") as note:
            commands = [
                (f"{setting.tracking}-{point.label.replace(':', '-')}-{round_}", point.label, setting)
                for setting in group
                for round_ in range(job.samples)
                for point in catalog.in_turn(job.points, round_)
            ]
            outcomes = runner.run(commands, note)
        for (_, label, setting), outcome in zip(commands, outcomes):
            _take(taken, job, runner, label, setting, outcome)
        taken.versions[f"L1 {job.arch} {kconfig.name(CONFIGS[job.arch])}"] = runner.version
    runner.close()
    return taken


def _take(taken: Taken, job: Job, runner: Runner, label: str, setting: driver.Setting, outcome: guest.Outcome) -> None:
    """Add what one migration printed to `taken`."""
    values = found(outcome)
    where = f"{label}, {setting.tracking}, {setting.vcpus} vCPUs, {setting.working_set} KiB"
    taken.complaints += [f"{where}: {line}" for line in driver.complaints(values)]
    if not values["steady"]:
        say(f"{where}: the guest's speed was not steady before the migration")
    run_: Run = {
        "series": job.series.name,
        "kernel": label,
        "arch": job.arch,
        "accel": job.accel,
        "clock": "wall",
        "model": "",
        "cpu": "host" if job.accel == "kvm" else "max",
        "config": setting.tracking,
        "params": [],
        "test": TEST,
        "args": arguments(setting),
        "vcpus": setting.vcpus,
        "iteration": None,
        "metric": "",
        "unit": "",
        "samples": [],
    }
    for metric, unit, value in driver.metrics(values, setting, runner.events[label]):
        one: Run = {**run_, "metric": metric, "unit": unit, "samples": []}
        taken.table.setdefault(shape.key(one), one)["samples"].append(value)
    rows = driver.samples(outcome.output)
    if rows:
        series, config, args = run_["series"], run_["config"], run_["args"]
        taken.traces.append(
            {"series": series, "kernel": label, "config": config, "args": args, "vcpus": setting.vcpus, "rows": rows}
        )


def arguments(setting: driver.Setting) -> str:
    """The settings that a table keeps apart, as text."""
    return (
        f"working-set={setting.working_set // 1024} rate={setting.rate} bandwidth={setting.bandwidth / 1e6:g} "
        f"downtime={setting.downtime} limit={setting.limit}"
    )


def host(job: Job, versions: Mapping[str, str]) -> Host:
    """Description of this machine for the results of `job`."""
    return results.host_info([machines.binary(job.arch), f"{toolchain.prefix(job.arch)}gcc"], versions)


def state(job: Job) -> list[str]:
    """What tells before and after a run whether its sources have changed meanwhile; needs no tree."""
    return [
        *(ids.files(folder) for _, folder in driver.sources(job.arch)),
        *(point.series.diffs_id(point.count) for point in job.points),
    ]


def made_of(job: Job) -> Ids:
    """The ids of all that `job` measures, for results.save(): of QEMU's sources and, emulated, of L1."""
    found: Ids = {
        "kernels": {
            point.label: ids.source(
                trees.worktree(point.series, point.count, job.tree).path, job.arch, point.series.project
            )
            for point in job.points
        },
        "tests": {name: ids.files(folder) for name, folder in driver.sources(job.arch)},
    }
    if job.accel != "kvm":
        host_series = catalog.load(KERNEL)
        found["kernels"]["L1"] = ids.source(trees.worktree(host_series, 0).path, job.arch)
        found["instrument"] = ids.instrument()
    return found
