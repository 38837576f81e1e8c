"""The functional selftests on base and series, with the same binaries, compared."""

from __future__ import annotations

import itertools
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

FORMAT = paths.TESTS / "tests.schema.yaml"
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
    def line(self) -> str:
        """The complaint as a line of a list, with what the test printed."""
        return f"{self.name}: {'; '.join((self.complaint, *self.why))}"


def place(cpu: str, configs: Sequence[str], params: Sequence[str]) -> str:
    """A file's part that names where tests ran: "max-normal", "max-64k-kvm-arm.mode=nested"."""
    return "-".join([cpu, kconfig.name(configs), *(re.sub(r"[^\w.=-]", "_", word) for word in params)])


def _listed(series: catalog.Series, arch: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """What tests.yaml says of `series` on `arch`: (seconds for a test of which it says nothing else, {program: its runs,
    each with "name", "command" and "timeout"}).  Raises Fail, in one line, if the file is not as FORMAT wants it."""
    data = schema.read(paths.TESTS / "tests.yaml", FORMAT)
    default, found = data["default_timeout"], {}
    for program, entry in ((data.get(series.name) or {}).get(arch) or {}).items():
        # A program without a list of runs has one.
        runs = [{"timeout": entry.get("timeout", default), **run} for run in entry.get("runs", [entry])]
        for run in runs:
            words = run.get("args", "").split()
            run.update(name="_".join([program, *words]), command=[f"/tests/{program}", *words])
        found[program] = runs
    return default, found


def plan(
    series: catalog.Series, arch: str, programs: Collection[str], quick: bool = False
) -> tuple[list[image.Command], dict[str, str], dict[str, str]]:
    """Commands for image.job() and known failures from tests.yaml; `quick`: without those that fail, that go by the host's
    clock, or that are slow.

    Returns (list of (name, seconds, [program, argument...]), dict of name to reason, the same for
    those that fail on base alone).
    """
    default, of = _listed(series, arch)
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
        for run in of.get(program, [{"name": program, "command": [f"/tests/{program}"], "timeout": default}]):
            if quick and run.keys() & {"fails", "clock", "slow"}:
                continue
            name, command = run["name"], run["command"]
            if "clock" in run:
                command = ["sh", "-c", _UNTIL, "until", str(TRIES), *command]
            commands.append((name, run["timeout"], command))
            if "fails_with" in run:
                # Only for a run that has it: a compiler that is not there is told elsewhere.
                reason = run["fails_with"].get(f"gcc-{toolchain.major(arch)}")
            else:
                reason = run.get("fails")
            for reasons, why in ((known, reason), (mended, run.get("mended"))):
                if why:
                    reasons[name] = " ".join(why.split())
    return commands, known, mended


# KVM gives its guests the TSC rate that the kernel had measured when KVM was initialised.  On a busy host that may be more
# than KVM's tolerance, 250 ppm, from what the kernel measures a second later.  An emulated CPU cannot scale the TSC, so
# then KVM sets no rate at all ("user requested TSC rate below hardware speed"), and guests read times that are seconds
# off.  tsc_early_khz=2590000 makes that happen on a host of 2596 MHz.
_CLOCK = {"x86_64": ("kvm.tsc_tolerance_ppm=10000",)}


def _word(outcome: guest.Outcome) -> str:
    """ "pass", "skip", "fail" or "timeout"."""
    empty = outcome.status == 0 and parse.nothing_harvested(outcome.output)
    return "fail" if empty else _WORDS.get(outcome.status, "fail")


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
    quick: bool = False,
) -> tuple[list[Verdict], list[str], Host]:
    """Run the tests on all `points` (catalog.Point); returns (verdicts, complaints, host).

    complaints: lines about what is not as it must be, also of the kernels' own reports.
    reference: verdicts of the default configuration, which the series must not do less than here.
    quick: see plan().
    """
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
    commands, known, mended = plan(series, arch, selftests.programs(tests), quick)
    # Huge pages and swap for the tests that want some; a test that finds none is skipped, or does without.
    machine = machines.Machine(
        arch, cpu, accel, 4, 3072, ("series.hugepages=64", machines.SWAP, *_CLOCK.get(arch, ()), *params)
    )
    ran: dict[str, guest.Result] = {}
    for key, point, built in zip(keys, points, kernels):
        with steps.step(key) as note:
            name = f"test-{series.name}-{arch}-{place(cpu, configs, params)}-{point.label.replace(':', '-')}"
            ran[point.label] = guest.run(built, initrd, machine, commands, name, note)
    # What hold() is not asked about is judged here.
    excuses = excused(series, arch, (cpu, *params, *configs))
    if reference is None:
        known.update(excuses)
    # The reasons are the emulator's.
    verdicts = [
        _verdict(name, ran, known.get(name, ""), mended.get(name, ""), accel == "tcg") for name, _, _ in commands
    ]
    if reference is not None:
        hold(verdicts, reference, excuses)
    complaints = [verdict.line for verdict in verdicts if verdict.complaint]
    on_base = {_shape(line) for line in ran["base"].splats} if "base" in ran else set()
    for label, result in ran.items():
        complaints += [f"{label}: the kernel reported: {line}" for line in result.splats if _shape(line) not in on_base]
    qemu = emulator.for_commands(arch, commands, accel, params)
    versions = {f"{label} {arch} {config}": result.version for label, result in ran.items()}
    return verdicts, complaints, results.host_info([qemu.program, f"{toolchain.prefix(arch)}gcc"], versions)


def _verdict(name: str, ran: Mapping[str, guest.Result], known: str, mended: str, expires: bool) -> Verdict:
    """The Verdict of judge() on the test `name`, with what it printed where it failed; `ran`: by labels of the kernels."""
    outcomes = {label: outcome for label, result in ran.items() for outcome in result.outcomes if outcome.name == name}
    verdict = judge(name, {label: _word(outcome) for label, outcome in outcomes.items()}, known, mended, expires)
    verdict.why = tuple(
        f"on {label}: {outcome.why() if outcome.status else parse.NOTHING_HARVESTED}"
        for label, outcome in outcomes.items()
        if verdict.results[label] in ("fail", "timeout")
    )
    return verdict


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
    for run in itertools.chain.from_iterable(_listed(series, arch)[1].values()):
        reasons = [reason for place, reason in run.get("unless", {}).items() if place in where]
        if reasons:
            found[run["name"]] = " ".join(reasons[0].split())
    return found


def hold(verdicts: Iterable[Verdict], reference: Iterable[Verdict], excuses: Mapping[str, str]) -> None:
    """Complain where the series does less in `verdicts` than in `reference`, which are another configuration's, and
    `excuses`, {name: reason}, do not say why; or say it of what does as much."""
    before = {verdict.name: verdict.results.get("series") for verdict in reference}
    for verdict in verdicts:
        result, reason, complaint = verdict.results.get("series"), excuses.get(verdict.name), ""
        if before.get(verdict.name) == "pass" and result != "pass" and not reason:
            complaint = f"{result} on series, but pass in the default configuration, and tests.yaml does not say why"
        elif result == "pass" and reason:
            complaint = f"pass on series, but tests.yaml says that it does not here: {reason}"
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
