"""A kernel of a series in a guest, with the selftests of the series: what commands print there, what they measure, and what
the kernel reports.

    Lab("v7.3", "base", arch="x86_64").run(["/tests/dirty_log_test"], 120, "log").good()
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Union

from kvmseries.base import paths, progress
from kvmseries.base.errors import Fail
from kvmseries.data import parse
from kvmseries.kernel import build, mutants as mutant_kernels, selftests
from kvmseries.measure import bench, counters
from kvmseries.source import catalog, trees
from kvmseries.verify import mutants, soak
from kvmseries.vm import image, machine as machines, run as guest
from tests import extra
from vtime import vtime

# ns, of the virtual clock: as the instrument's own default.
SLICE = 500
# Where the instrument hold-times counts how often mmu_lock is taken.
LOCKS = "/sys/kernel/debug/mmu_lock_counts"
# Kernel parameters of the ways in which x86-64 maps memory.  By default SPTEs are direct and found by rmaps; so are shadow
# page tables, with npt=0.
MMUS: dict[str, tuple[str, ...]] = {"default": (), "tdp_mmu": ("kvm.tdp_mmu=1",), "shadow": ("kvm_amd.npt=0",)}
Words = Sequence[object]
# One command, or several by name.
Commands = Union[Words, Mapping[str, Words]]


@dataclass(frozen=True)
class Ran:
    """What became of commands in one boot."""

    outcomes: dict[str, guest.Outcome]  # status and output, by name of the command
    splats: list[str]  # what the kernel reported
    folder: Path
    programs: dict[str, str]  # the test that a command runs
    virtual: bool

    def one(self, name: str | None = None) -> guest.Outcome:
        """The Outcome of the command `name`, or of the only one."""
        if name is None:
            (name,) = self.outcomes
        return self.outcomes[name]

    @property
    def status(self) -> int:
        """Of the only command."""
        return self.one().status

    @property
    def output(self) -> str:
        """Of the only command."""
        return self.one().output

    def good(self) -> Ran:
        """Assert that each command has passed, and that the kernel has reported nothing."""
        bad = {name: outcome.why() for name, outcome in self.outcomes.items() if outcome.status}
        assert not bad and not self.splats, (bad, self.splats, self.folder)
        return self

    def found(self, words: str, name: str | None = None) -> bool:
        """Whether the command has failed in these words: it was not skipped, and its time was not up."""
        outcome = self.one(name)
        return outcome.status not in (0, 4, 124) and bool(re.search(words, outcome.output))

    def finders(self, words: str | Mapping[str, str]) -> set[str]:
        """The names of the commands that have failed in `words`, those of the command or of all; each other one must have
        passed."""
        said = {name: words if isinstance(words, str) else words[name] for name in self.outcomes}
        found = {name for name in self.outcomes if self.found(said[name], name)}
        bad = {name: one.why() for name, one in self.outcomes.items() if name not in found and one.status}
        assert not bad, bad
        return found

    def counts(self) -> Counter[str]:
        """The counts of races, and of what was verified, that the only command has printed."""
        return Counter(soak.counts(self.output))

    def measures(self, name: str | None = None, count: bool = True) -> list[parse.Measure]:
        """What the test measured; in virtual time also what the clock counted, unless `count` is false."""
        outcome = self.one(name)
        # A test that fails says so behind what it has measured.
        found = parse.parse(self.programs[outcome.name], outcome.output.partition("==== Test Assertion")[0])
        if self.virtual and count:
            found += counters.measures(counters.by_test(counters.load(self.folder))[outcome.name])
        return found

    def metric(self, metric: str, name: str | None = None) -> float:
        """The value of the last iteration; of what is measured once, the value.  Fail if the last iteration has none."""
        measures = self.measures(name)
        last = max(measure.iteration or 0 for measure in measures)
        values = [one.value for one in measures if one.metric == metric and one.iteration in (None, last)]
        if not values:
            raise Fail(f"{self.one(name).name} has no metric {metric} in its last iteration (see {self.folder})")
        return values[-1]


@dataclass(frozen=True)
class Lab:
    """A kernel, and the machine that it runs on."""

    series: str
    kernel: str = "series"  # as --kernels has it: base, series, upto:MILESTONE
    params: tuple[str, ...] = ()  # of the kernel
    arch: str = "arm64"
    patches: tuple[str, ...] = ()  # on top: instruments and mutants
    mutant: str = ""  # which of those that the patches plant; "": none
    configs: tuple[str, ...] = ()
    tests: int | None = None  # the selftests of so many patches; None: of all
    machine: Mapping[str, Any] = field(default_factory=dict)  # other fields of machines.Machine

    def but(self, **changes: Any) -> Lab:
        """This one with other fields."""
        return replace(self, **changes)

    def virtual(self, cpus: int, slice_ns: int = SLICE) -> Lab:
        """This one in virtual time, with so many CPUs."""
        clock = {"cpu": vtime.CPUS[self.arch], "cpus": cpus, "clock": "virtual", "slice_ns": slice_ns}
        return self.but(machine={**self.machine, **clock})

    def built(self) -> build.Kernel:
        """The kernel, built or found."""
        series = catalog.load(self.series)
        (point,) = catalog.points(series, self.kernel)
        own = extra.own_base(series)
        if not self.patches:
            return build.kernel(series, point.count, self.arch, self.configs, own)
        count = None if self.kernel == "series" else point.count
        return mutant_kernels.kernel(series, self.patches, self.arch, self.configs, count, own)

    def initrd(self) -> Path:
        """The initramfs with the selftests of the series."""
        series = catalog.load(self.series)
        return image.base(self.arch, selftests.build(series, self.arch, extra.own_base(series), self.tests))

    def run(
        self, commands: Commands, seconds: float | Mapping[str, float], name: str, silence: float = guest.SILENCE
    ) -> Ran:
        """Boot, and run `commands`, each of which has `seconds`.  name: of the directory in out/runs.  Raises Fail where
        the guest dies."""
        if not isinstance(commands, Mapping):
            commands = {"test": commands}
        self._check()
        kernel, initrd = self.built(), self.initrd()
        params = (*self.params, *([f"kvm.mutant={self.mutant}"] if self.mutant else []))
        machine = machines.Machine(self.arch, params=params, **self.machine)
        limits = {one: seconds[one] if isinstance(seconds, Mapping) else seconds for one in commands}
        lines = [(one, limits[one], [str(word) for word in words]) for one, words in commands.items()]
        with progress.single(f"lab-{name}", f"{name}: {self.kernel} of {self.series}, {self.arch}", 60) as note:
            result = guest.run(kernel, initrd, machine, lines, name, note, silence)
        outcomes = {outcome.name: outcome for outcome in result.outcomes}
        programs = {one: _program(words) for one, _, words in lines}
        return Ran(outcomes, result.splats, result.folder, programs, machine.clock == "virtual")

    def _check(self) -> None:
        """Raise Fail for a mutant that no patch plants: the kernel would panic, which is what some mutants must make it do."""
        series = catalog.load(self.series)
        known = {name for patch in self.patches for name in mutants.held(trees.on_top(series, patch))}
        if self.mutant and self.mutant not in known:
            raise Fail(f"no mutant '{self.mutant}' in {', '.join(self.patches) or 'no patches'} of {self.series}")

    def stress(self, command: Words, seconds: float, name: str) -> Ran:
        """run() of a command that takes `seconds`, with swap.  All takes longer with lockdep and KASAN."""
        return self.but(params=(machines.SWAP, *self.params)).run(command, 3 * seconds + 120, name)

    def wreck(self, command: Words, seconds: float, name: str) -> str:
        """What stress() prints on a kernel that may not survive it: output and reports, or the console."""
        self._check()
        self.built(), self.initrd()
        console = paths.out("runs", name) / "console.log"
        paths.remove(console)
        try:
            # Or what is left of a kernel may wait for what is gone until the time is up.
            ran = self.but(params=(*self.params, "oops=panic")).stress(command, seconds, name)
            return "\n".join([ran.output, *ran.splats])
        except Fail:
            # What is used by somebody else by now may be the kernel's.
            return console.read_text(encoding="utf-8", errors="replace")

    def lock_counts(self, test: str, args: str, vcpus: Sequence[int], name: str) -> list[dict[str, Any]]:
        """Runs, as of a results file, of how often each phase of `test` (a key of bench.yaml, with `args` over its defaults)
        takes mmu_lock: by LOCK_STAT in the configuration lockstat, else by the instrument hold-times, which is of `patches` then."""
        release = catalog.load(self.series).kernel
        line = bench.arguments(test, self.arch, args, release)
        counter = [] if "lockstat" in self.configs else ["-f", LOCKS]
        commands = {
            f"{test}-{count}": ["/tests/lockphase", *counter, "--", f"/tests/{test}", "-v", count, *line]
            for count in vcpus
        }
        limits = {f"{test}-{count}": (60 if counter else 240) * (1 + count) for count in vcpus}
        ran = self.run(commands, limits, name).good()
        return [
            {"kernel": self.kernel, "vcpus": count, "metric": found.metric, "iteration": found.iteration}
            | {"samples": [found.value]}
            for count in vcpus
            for found in ran.measures(f"{test}-{count}", count=False)
            if found.metric.startswith("mmu_lock_")
        ]


def with_mutants(series: str, arch: str = "arm64", configs: tuple[str, ...] = ()) -> Lab:
    """The Lab of the delays and the mutants of races, of which none is planted yet: one kernel is for all of them."""
    newer = "upto:aging", ("mutants", "aging-delays", "aging-mutants")
    kernel, patches = {"v5.10": ("series", ("delays", "x86-delays", "mutants"))}.get(series, newer)
    return Lab(series, kernel, arch=arch, patches=patches, configs=configs)


def _program(words: Sequence[str]) -> str:
    """The test that a command runs: the last program of /tests/ among its words."""
    found = [word for word in words if re.fullmatch(r"/tests/\S+", word)]
    return found[-1][len("/tests/") :] if found else ""


def script(name: str, *words: object) -> list[object]:
    """The command that runs tools-testing-selftests-kvm/guest/NAME with `words`."""
    return ["sh", "-c", (image.GUEST / name).read_text(encoding="utf-8"), name, *words]


def delayed(folder: str, who: str, command: str, **delays: int) -> list[str]:
    """The words of a shell command that is run with `delays`, {file: us} of an instrument in the directory `folder` of
    debugfs; it ends with lines "WHO: NAME COUNT" of all that the instrument counts."""
    waits = "; ".join(f"echo {us} > {folder}/{name}" for name, us in delays.items())
    counts = f"cd {folder}; for what in *; do echo {who}: $what $(cat $what); done; exit $status"
    return ["sh", "-c", f"{waits}; {command}\nstatus=$?; {counts}"]


def races(wanted: Mapping[str, float], most: int, run: Callable[[], Mapping[str, float]]) -> None:
    """Call run(), which returns {race: times} of what went well, `most` times at most, until each race of
    `wanted`, {race: times}, was met as often."""
    hit = dict.fromkeys(wanted, 0.0)
    # A host that is slow by the load of others gets its time.
    for _ in range(most):
        met = run()
        hit = {race: hit[race] + met[race] for race in hit}
        if all(hit[race] >= wanted[race] for race in hit):
            return
    # Or nothing has raced, and this has shown nothing.
    assert all(hit[race] >= wanted[race] for race in hit), hit
