"""The functional selftests on base and series, with the same binaries, compared."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import files, paths, progress
from ..base.errors import Fail
from ..data import parse, results, schema
from ..data.shape import Host
from ..kernel import build, kconfig, selftests, toolchain
from ..source import catalog
from ..vm import emulator, image, machine as machines, run as guest

FORMAT = paths.TESTS / "tests.schema.json"
# kselftest's exit statuses; 124 is job.sh's for a test whose time was up.
_WORDS = {0: "pass", 4: "skip", 124: "timeout"}
# How often a test is run whose bound is the host's clock, and how: "until TRIES COMMAND...".
TRIES = 10
_UNTIL = """tries=$1; shift
until "$@"; do
	status=$?; tries=$((tries - 1))
	[ $tries -gt 0 ] && [ $status -ne 4 ] || exit $status
done"""


@dataclass
class Verdict:
    """One test, with its arguments, on all kernels."""

    name: str
    results: dict[str, str]  # label of the kernel -> "pass", "skip", "fail", "timeout"
    known: str  # reason why it is known to fail, or ""
    complaint: str  # why this is not as it must be, or ""
    why: tuple[str, ...] = ()  # what it printed where it failed: "on LABEL: LINE"

    @property
    def reason(self) -> str:
        """The complaint, with what the test printed."""
        return "; ".join((self.complaint, *self.why))

    @property
    def line(self) -> str:
        """The complaint as a line of a list."""
        return f"{self.name}: {self.reason}"


def place(cpu: str, configs: Sequence[str], params: Sequence[str]) -> str:
    """A file's part that names where tests ran: "max-normal", "max-64k-kvm-arm.mode=nested"."""
    return "-".join([cpu, kconfig.name(configs), *(re.sub(r"[^\w.=-]", "_", word) for word in params)])


def listed(series: catalog.Series, arch: str) -> tuple[int, dict[str, Any]]:
    """What tests.yaml says of `series` on `arch`, with the compiler of this machine: (seconds for a test of which it
    says nothing else, {program: entry}).  Raises Fail, in one line, if the file is not as FORMAT wants it."""
    data = schema.read(paths.TESTS / "tests.yaml", FORMAT)
    found = (data.get(series.name) or {}).get(arch) or {}
    for entry in found.values():
        for run in entry.get("runs") or []:
            # Only for a run that has it: a compiler that is not there is told elsewhere.
            compilers = run.pop("fails_with", None)
            reason = compilers and compilers.get(f"gcc-{toolchain.major(arch)}")
            if reason:
                run["fails"] = reason
    return data["default_timeout"], found


def _name(program: str, run: Mapping[str, Any]) -> str:
    """The name of a run of tests.yaml: the program and its arguments."""
    return "_".join([program, *str(run.get("args") or "").split()])


def plan(
    series: catalog.Series, arch: str, programs: Collection[str]
) -> tuple[list[image.Command], dict[str, str], dict[str, str]]:
    """Commands for image.job() and known failures from tests.yaml.

    Returns (list of (name, seconds, [program, argument...]), dict of name to reason, the same for
    those that fail on base alone).
    """
    default, of = listed(series, arch)
    for test in of:
        if test not in programs:
            raise Fail(f"tests.yaml lists '{test}' for {series.name} on {arch}, which is not built")
    ours = selftests.own()
    commands: list[image.Command] = []
    known: dict[str, str] = {}
    mended: dict[str, str] = {}
    for program in programs:
        # A program of ours that is not listed is for a check or a benchmark of its own.
        if program in ours and program not in of:
            continue
        entry = of.get(program) or {}
        for run in entry.get("runs") or [{}]:
            words = str(run.get("args") or "").split()
            name = _name(program, run)
            command = [f"/tests/{program}", *words]
            if run.get("clock"):
                command = ["sh", "-c", _UNTIL, "until", str(TRIES), *command]
            commands.append((name, run.get("timeout") or entry.get("timeout") or default, command))
            for key, reasons in (("fails", known), ("mended", mended)):
                if run.get(key):
                    reasons[name] = " ".join(run[key].split())
    return commands, known, mended


@dataclass
class Observed:
    """What the tests did on some kernels."""

    commands: list[image.Command]  # as from plan()
    known: dict[str, str]
    mended: dict[str, str]
    results: dict[str, dict[str, str]]  # label of the kernel -> {test: "pass", "skip", "fail", "timeout"}
    why: dict[tuple[str, str], str]  # (label, test) -> a line of what failed
    splats: dict[str, list[str]]  # label -> lines that the kernel reported
    versions: dict[str, str]


# KVM gives its guests the TSC rate that the kernel had measured when KVM was initialised.  On a busy host that may be more
# than KVM's tolerance, 250 ppm, from what the kernel measures a second later.  An emulated CPU cannot scale the TSC, so
# then KVM sets no rate at all ("user requested TSC rate below hardware speed"), and guests read times that are seconds
# off.  tsc_early_khz=2590000 makes that happen on a host of 2596 MHz.
_CLOCK = {"x86_64": ("kvm.tsc_tolerance_ppm=10000",)}


def _word(outcome: guest.Outcome) -> str:
    """ "pass", "skip", "fail" or "timeout"."""
    empty = outcome.status == 0 and parse.nothing_harvested(outcome.output)
    return "fail" if empty else _WORDS.get(outcome.status, "fail")


def observe(
    series: catalog.Series,
    arch: str,
    points: Sequence[catalog.Point],
    cpu: str = "max",
    accel: str = "tcg",
    configs: Sequence[str] = (),
    params: Sequence[str] = (),
    kernel: str | None = None,
    only: Collection[str] | None = None,
) -> Observed:
    """Run the tests on all `points` (catalog.Point); returns what they did, Observed.

    only: programs to run, None: all."""
    config = kconfig.name(configs)
    keys = [f"test-{arch}-{cpu}-{config}" for _ in points]
    steps = progress.Steps(
        [("prepare", f"kernels and selftests for {arch} ({config})", 240)]
        + [(key, f"selftests on {point.label} ({arch}, {cpu}, {config})", 150) for key, point in zip(keys, points)]
    )
    with steps.step("prepare") as note:
        tests = selftests.build(series, arch, kernel)
        initrd = image.base(arch, tests)
        kernels = [build.kernel(series, point.count, arch, configs, kernel, note) for point in points]
    commands, known, mended = plan(series, arch, selftests.programs(tests))
    commands = [command for command in commands if only is None or command[0].split("_-")[0] in only]
    # Huge pages and swap for the tests that want some; a test that finds none is skipped, or does without.
    machine = machines.Machine(
        arch, cpu, accel, 4, 3072, ("series.hugepages=64", machines.SWAP, *_CLOCK.get(arch, ()), *params)
    )
    found: dict[str, dict[str, str]] = {}
    why: dict[tuple[str, str], str] = {}
    splats: dict[str, list[str]] = {}
    versions: dict[str, str] = {}
    for key, point, built in zip(keys, points, kernels):
        with steps.step(key) as note:
            name = f"test-{series.name}-{arch}-{place(cpu, configs, params)}-{point.label.replace(':', '-')}"
            result = guest.run(built, initrd, machine, commands, name, note)
        found[point.label] = {outcome.name: _word(outcome) for outcome in result.outcomes}
        why |= {
            (point.label, outcome.name): outcome.why() if outcome.status else parse.NOTHING_HARVESTED
            for outcome in result.outcomes
            if found[point.label][outcome.name] in ("fail", "timeout")
        }
        splats[point.label] = result.splats
        versions[f"{point.label} {arch} {config}"] = result.version
    return Observed(commands, known, mended, found, why, splats, versions)


def run(
    series: catalog.Series,
    arch: str,
    points: Sequence[catalog.Point],
    cpu: str = "max",
    accel: str = "tcg",
    configs: Sequence[str] = (),
    params: Sequence[str] = (),
    kernel: str | None = None,
    reference: Iterable[Verdict] | None = None,
    only: Collection[str] | None = None,
) -> tuple[list[Verdict], list[str], Host]:
    """Run the tests on all `points` (catalog.Point); returns (verdicts, complaints, host).

    complaints: lines about what is not as it must be, also of the kernels' own reports.
    reference: verdicts of the default configuration, which the series must not do less than here.
    only: as for observe().
    """
    seen = observe(series, arch, points, cpu, accel, configs, params, kernel, only)
    found, splats = seen.results, seen.splats
    # What hold() is not asked about is judged here.
    excuses = excused(series, arch, (cpu, *params, *configs))
    known = seen.known if reference is not None else {**seen.known, **excuses}
    verdicts = [
        judge(
            name,
            {label: by_name[name] for label, by_name in found.items() if name in by_name},
            known.get(name, ""),
            seen.mended.get(name, ""),
            # The reasons are the emulator's.
            expires=accel == "tcg",
        )
        for name, _, _ in seen.commands
    ]
    for verdict in verdicts:
        verdict.why = tuple(f"on {label}: {line}" for (label, name), line in seen.why.items() if name == verdict.name)
    if reference is not None:
        hold(verdicts, reference, excuses)
    complaints = [verdict.line for verdict in verdicts if verdict.complaint]
    base_splats = {_shape(line) for line in splats.get("base", [])}
    for label, lines in splats.items():
        for line in lines:
            if label != "base" and _shape(line) not in base_splats:
                complaints.append(f"{label}: the kernel reported: {line}")
    qemu = emulator.for_commands(arch, seen.commands, accel, params)
    host = results.host_info([qemu.program, f"{toolchain.prefix(arch)}gcc"], seen.versions)
    return verdicts, complaints, host


def _shape(line: str) -> str:
    """A kernel report without what differs from boot to boot, and from base to series: numbers, addresses,
    places in functions.  The functions themselves stay."""
    line = re.sub(r"\((Not tainted|Tainted: [^)]*)\)", "", line)
    return " ".join(
        re.sub(r"\+0x[0-9a-f]+/0x[0-9a-f]+|\b(0x)?[0-9a-f]{8,16}\b|(?<![a-z]-)\b(0x[0-9a-f]+|\d+)\b", "", line).split()
    )


def judge(name: str, by_label: dict[str, str], known: str, mended: str = "", expires: bool = True) -> Verdict:
    """The Verdict on one test: a kernel must do at least what base does, what fails must be known to,
    what is known to (`known`, a reason) must fail if that `expires`, and what fails on base alone (`mended`,
    a reason) must not on the others."""
    base = by_label.get("base")
    complaint = ""
    for label, result in by_label.items():
        if result in ("fail", "timeout") and label != "base" and base in ("pass", "skip"):
            complaint = f"{result} on {label}, but {base} on base"
        elif result == "skip" and base == "pass":
            complaint = f"skip on {label}, but pass on base"
        elif result in ("fail", "timeout") and not known and not complaint and not (mended and label == "base"):
            complaint = f"{result} on {label}, and tests.yaml does not say why"
        elif result == "pass" and known and expires and not complaint:
            complaint = f"pass on {label}, but tests.yaml says that it fails: {known}"
    return Verdict(name, by_label, known or mended, complaint)


def excused(series: catalog.Series, arch: str, where: Collection[str]) -> dict[str, str]:
    """{name: reason} of the runs that tests.yaml lets do less than by default (`unless`) on one of `where`:
    CPUs, kernel parameters, overlays of the configuration."""
    found = {}
    for program, entry in listed(series, arch)[1].items():
        for run in entry.get("runs") or []:
            reasons = [reason for place, reason in (run.get("unless") or {}).items() if place in where]
            if reasons:
                found[_name(program, run)] = " ".join(reasons[0].split())
    return found


def hold(
    verdicts: Iterable[Verdict], reference: Iterable[Verdict], excuses: Mapping[str, str], label: str = "series"
) -> None:
    """Complain where `label` does less in `verdicts` than in `reference`, which are another configuration's, and
    `excuses`, {name: reason}, do not say why; or say it of what does as much."""
    before = {verdict.name: verdict.results.get(label) for verdict in reference}
    for verdict in verdicts:
        result, reason, complaint = verdict.results.get(label), excuses.get(verdict.name), ""
        if before.get(verdict.name) == "pass" and result != "pass" and not reason:
            complaint = f"{result} on {label}, but pass in the default configuration, and tests.yaml does not say why"
        elif result == "pass" and reason:
            complaint = f"pass on {label}, but tests.yaml says that it does not here: {reason}"
        verdict.complaint = "; ".join(filter(None, (verdict.complaint, complaint)))


def table(verdicts: Iterable[Verdict], labels: Collection[str], title: str = "functional selftests") -> Table:
    """The terminal table (rich)."""
    view = Table("test", *labels, "known failure", title=title)
    for verdict in verdicts:
        view.add_row(
            ("! " if verdict.complaint else "") + verdict.name,
            *(verdict.results.get(label, "-") for label in labels),
            verdict.known,
        )
    return view


def save(path: str | Path, host: Host, verdicts: Iterable[Verdict], about: Mapping[str, object]) -> None:
    """Write verdicts as JSON: {"schema": 1, "host", "about", "tests"}."""
    files.write_json(
        path, {"schema": 1, "host": host, "about": about, "tests": [asdict(verdict) for verdict in verdicts]}
    )
