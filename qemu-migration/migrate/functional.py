"""QEMU's own tests on base and series, compared: unit tests, and the qtests of migration on every target."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import yaml

from kvmseries.base import debian, paths, proc, progress, tap
from kvmseries.base.errors import Fail, Usage
from kvmseries.base.progress import Note
from kvmseries.data import results
from kvmseries.data.shape import Host
from kvmseries.kernel import toolchain
from kvmseries.source import catalog, trees
from kvmseries.verify import functional
from kvmseries.vm import machine as machines

from . import build

# Of one qtest and of a unit test's program, in seconds: many times what they take here.
_LIMIT = 240
_MULTIPLIER = 4
_MIGRATION = "tests/qtest/migration-test"
# Of those that there are with -m slow only, these are run.
_SLOW = ("migration/auto_converge/computed",)
# What is known to fail, by series, with the reason.
KNOWN = paths.ROOT / "qemu-migration" / "tests.yaml"
_WORDS = {"OK": "pass", "SKIP": "skip", "TIMEOUT": "timeout", "EXPECTEDFAIL": "pass"}


def known(series: catalog.Series) -> dict[str, str]:
    """Names of tests that are known to fail on base and series alike, with the reason."""
    data = yaml.safe_load(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else None
    return {name: " ".join(reason.split()) for name, reason in ((data or {}).get(series.name) or {}).items()}


def run(
    series: catalog.Series,
    points: Sequence[catalog.Point],
    targets: Sequence[str] = ("arm64", "x86_64"),
    accel: str = "tcg",
    pattern: str = "",
    kernel: str | None = None,
) -> tuple[list[functional.Verdict], list[str], Host]:
    """Run the tests on all `points` (catalog.Point) with the emulators of `targets`.

    pattern: only those with this in their name (as "precopy/unix" or "unit/").  Returns (list of
    functional.Verdict, list of complaints, host).
    """
    arch = host_arch()
    if accel == "kvm":
        # QEMU itself would fall back to TCG without a word.
        for target in targets:
            machines.check(machines.Machine(target, accel=accel))
    kind = build.Kind(f"tests-{accel}", arch, tuple(targets), kvm=accel == "kvm", tests=True)
    debian.install("qemu-test")
    units, qtests = f"qemu-unit-{bool(pattern)}", f"qemu-migration-{'-'.join(targets)}-{accel}-{bool(pattern)}"
    plan: list[progress.Step] = [("qemu-tests-build", "QEMU and its tests", 400)]
    for point in points:
        what = f"migration qtests on {point.label} ({', '.join(targets)}, {accel})"
        plan += [(units, f"unit tests on {point.label}", 120), (qtests, what, 300 * len(targets))]
    steps = progress.Steps(plan)
    with steps.step("qemu-tests-build") as note:
        folders = []
        for point in points:
            tree = trees.worktree(point.series, point.count, kernel)
            folders.append((tree, build.compiled(tree, kind, note)))
    found, versions = {}, {}
    for point, (tree, folder) in zip(points, folders):
        env = build.environment(tree.path)
        log = paths.out("logs", f"qemu-tests-{series.name}-{accel}-{point.label.replace(':', '-')}.log")
        paths.remove(log)
        with steps.step(units):
            found[point.label] = unit(folder, env, pattern, log)
        with steps.step(qtests) as note:
            for target in targets:
                found[point.label].update(migration(folder, env, target, pattern, log, note))
        text = proc.run([str(folder / build.binary(targets[0])), "--version"], "QEMU")
        versions[f"{point.label} {arch}"] = text.splitlines()[0]
    verdicts = compare(found, known(series))
    if not verdicts:
        raise Usage(f"--only '{pattern}' is in no test's name")
    complaints = [verdict.line for verdict in verdicts if verdict.complaint]
    return verdicts, complaints, results.host_info(["gcc"], versions)


def host_arch() -> str:
    """The arch of this machine, which its tests run on."""
    for arch in ("arm64", "x86_64"):
        if not toolchain.prefix(arch):
            return arch
    raise Fail("QEMU's tests run on arm64 and x86_64 hosts")


def compare(found: Mapping[str, Mapping[str, str]], reasons: Mapping[str, str]) -> list[functional.Verdict]:
    """Verdicts from {label: {test: result}}.  A test that a series has lost counts as skipped there; one that
    base does not have must not fail."""

    def of(name: str) -> dict[str, str]:
        return {label: names.get(name, "skip") for label, names in found.items() if label != "base" or name in names}

    every = sorted({name for names in found.values() for name in names})
    return [functional.judge(name, of(name), reasons.get(name, "")) for name in every]


def unit(
    folder: Path,
    env: Mapping[str, str],
    pattern: str = "",
    log: Path | None = None,
    names: Collection[str] | None = None,
) -> dict[str, str]:
    """Run meson's suite "unit" in a build directory, or those `names` of it; returns {"unit/NAME": result}.

    A program is one test, as meson counts.
    """
    chosen = [
        test["name"]
        for test in build.tests(folder, env, "unit")
        if pattern in f"unit/{test['name']}" and (names is None or test["name"] in names)
    ]
    if not chosen:
        return {}
    record = folder / "meson-logs/testlog.json"
    paths.remove(record)
    options = ["--no-rebuild", "--suite", "unit", f"--timeout-multiplier={_MULTIPLIER}", "--print-errorlogs"]
    _, text = proc.attempt([build.meson(), "test", *options, *chosen], "meson test", cwd=folder, env=env)
    _append(log, text)
    if not record.exists():
        raise Fail(f"the unit tests did not run: {proc.reason(text)}")
    return unit_results(record.read_text(encoding="utf-8"))


def unit_results(text: str) -> dict[str, str]:
    """{"unit/NAME": result} from meson's testlog.json, an object a line."""
    found = {}
    for line in text.splitlines():
        entry = json.loads(line)
        # "qemu:unit / test-bitmap"
        name = entry["name"].rpartition(" / ")[2]
        found[f"unit/{name}"] = _WORDS.get(entry["result"], "fail")
    return found


def migration(
    folder: Path,
    env: Mapping[str, str],
    target: str,
    pattern: str = "",
    log: Path | None = None,
    note: Note | None = None,
) -> dict[str, str]:
    """Run the migration qtests for the emulator of `target`, each in a process of its own, as one that fails
    takes the whole program with it; returns {"aarch64/migration/...": result}."""
    env = {**env, "QTEST_QEMU_BINARY": str(folder / build.binary(target)), "PYTHON": sys.executable}
    # --full: the machine's speed is not what decides which tests there are.
    program = [str(folder / _MIGRATION), "--full"]
    text = proc.run([*program, "-l"], "migration-test", cwd=folder, env=env)
    names = listed(text)
    if not names:
        raise Fail(f"migration-test has no tests for {toolchain.machine(target)}: {proc.reason(text)}")
    text = proc.run([*program, "-m", "slow", "-l"], "migration-test", cwd=folder, env=env)
    names += [name for name in listed(text) if name.endswith(_SLOW) and name not in names]
    chosen = [name for name in names if pattern in name]
    found = {}
    for number, name in enumerate(chosen, 1):
        if note:
            note(f"{number} of {len(chosen)} on {toolchain.machine(target)}")
        # -p means those below this name, too: (precopy/file/offset and precopy/file/offset/bad).
        below = [word for other in names if other.startswith(f"{name}/") for word in ("-s", f"/{other}")]
        mode = ["-m", "slow"] if name.endswith(_SLOW) else []
        line = ["timeout", "-k", "10", str(_LIMIT), *program, *mode, "--tap", "-k", "-p", f"/{name}", *below]
        status, text = proc.attempt(line, "migration-test", cwd=folder, env=env)
        found[name] = qtest_result(name, status, text)
        _append(log, f"== {name}: {found[name]}\n{text}")
    return found


def listed(text: str) -> list[str]:
    """Names in what `migration-test -l` prints, without their first slash."""
    return [line[1:] for line in text.splitlines() if re.fullmatch(r"/[\w+./-]+", line)]


def qtest_result(name: str, status: int, text: str) -> str:
    """The result of one test from what its program (--tap) printed and its exit status."""
    if status in (124, 137):
        return "timeout"
    found = next((one for one in tap.results(text) if one.name == f"/{name}"), None)
    if not found or not found.passed or status:
        return "fail"
    return "skip" if found.skipped else "pass"


def _append(log: Path | None, text: str) -> None:
    if log:
        with open(Path(log), "a", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else f"{text}\n")
