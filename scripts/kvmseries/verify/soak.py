"""Hours of selftests and stress on the series' kernels, in parts of some minutes each.

tools-testing-selftests-kvm/soak.yaml has the configurations and what a part runs.  The next part goes to
the configuration that has run the least; what has run is in one file (soakfile.py), from which the next
run goes on.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import paths, progress
from ..base.errors import Fail, Usage
from ..base.progress import clock, say
from ..data import ids, parse, results, schema
from ..kernel import build, kconfig, mutants, selftests
from ..source import catalog, trees
from ..vm import emulator, image, machine as machines, run as guest
from . import functional, soakcounts, soakfile
from .soakfile import How, Part, Where

FORMAT = paths.TESTS / "soak.schema.yaml"
FUNCTIONAL = "functional"
# Seconds that a command may take beyond three times what it takes alone: stage2_fault_stress_test goes on for
# up to 100 in each of three VMs where it has verified nothing of a kind.
_GRACE = 400
# Seconds that a guest may say nothing, while it boots and beyond a command's own limit: a soak has other work before
# it, and a debug kernel boots for minutes then.
_SILENCE = 600
# What a part that died at its begin counts for the question of what runs next.
_LEAST = 60
_WORDS = {4: "skipped", 124: "its time was up"}


@dataclass(frozen=True)
class Configuration:
    """A kernel and the machine that it runs on."""

    name: str
    arch: str
    cpu: str = "max"
    config: tuple[str, ...] = ()  # overlays
    params: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What soak.yaml says of a series."""

    configurations: tuple[Configuration, ...]  # of Configuration
    parts: dict[str, list[dict[str, Any]]]  # name -> commands, as in the file
    debug: tuple[str, ...]  # names of trees.on_top(), for all parts but the functional one
    known: tuple[tuple[str, str], ...]  # of (regular expression, reason)


def plan(series: catalog.Series) -> Plan:
    """The Plan of `series`; Fail if soak.yaml has none, or a configuration that cannot be."""
    file = paths.TESTS / "soak.yaml"
    data = (schema.read(file, FORMAT) or {}).get(series.name)
    if not data:
        raise Fail(f"{file} says nothing of {series.name}")
    found = []
    for name, entry in data["configurations"].items():
        keys: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        found.append(Configuration(name, **keys))
    for one in found:
        kconfig.load(one.arch, one.config, series.kernel)
    return Plan(
        tuple(one for one in found if one.arch in series.arches),
        data["parts"],
        tuple(data.get("debug") or ()),
        tuple((entry["report"], entry["reason"]) for entry in data.get("known") or ()),
    )


def choose(
    done: Sequence[Part], configurations: Sequence[Configuration], names: Sequence[str]
) -> tuple[Configuration, str]:
    """(Configuration, name of the part) that runs next: the configuration that has run the fewest seconds in
    `done`, the parts that have run, and of its parts `names` the one that has run least often."""

    def seconds(one: Configuration) -> float:
        return sum(max(part["seconds"], _LEAST) for part in done if part["configuration"] == one.name)

    least = min(configurations, key=seconds)
    return least, min(
        names, key=lambda name: sum((part["configuration"], part["part"]) == (least.name, name) for part in done)
    )


class Soak:
    """Runs parts on the kernels of `series`."""

    def __init__(self, series: catalog.Series, accel: str = "tcg") -> None:
        self.series, self.accel, self.plan = series, accel, plan(series)
        self.tree = trees.worktree(series, len(series.patches))
        self.source = {arch: ids.source(self.tree.path, arch) for arch in series.arches}
        self.tests = ids.source(self.tree.path, ids.SUITE)

    def run(self, one: Configuration, name: str) -> Part:
        """Run the part `name` on the Configuration `one`.  A guest that dies is a part that has failed; Fail
        where none can start."""
        debug = () if name == FUNCTIONAL else self.plan.debug
        config = kconfig.name(one.config)
        machine = machines.Machine(
            one.arch, one.cpu, self.accel, params=("series.hugepages=64", machines.SWAP, *one.params)
        )
        machines.check(machine)
        with progress.single(f"soak-build-{one.arch}-{config}", f"kernel and selftests for {one.name}", 60) as note:
            tests = selftests.build(self.series, one.arch)
            initrd = image.base(one.arch, tests)
            if debug:
                kernel = mutants.kernel(self.series, debug, one.arch, one.config, note=note)
            else:
                kernel = build.in_tree(self.tree, one.arch, one.config, note)
        commands, known = self._commands(one, name, selftests.programs(tests))
        begin, where = _now(), _host(emulator.for_commands(one.arch, commands, self.accel, one.params))
        folder = f"soak-{self.series.name}-{one.name}-{name}"
        died = ""
        with progress.single(f"soak-{one.name}-{name}", f"{name} on {one.name}", 200) as note:
            try:
                result = guest.run(kernel, initrd, machine, commands, folder, note, _SILENCE)
            except Fail as error:
                died = re.sub(r" \(see .*\)$", "", str(error))
                if died.startswith("QEMU failed"):
                    raise
                result = _remains(paths.out("runs", folder))
        where["host"]["load"] = round(os.getloadavg()[1], 1)
        part: Part = {
            "when": begin,
            "arch": one.arch,
            "configuration": one.name,
            "part": name,
            "source": self.source[one.arch],
            "tests": self.tests,
            "cpu": one.cpu,
            "accel": self.accel,
            "config": config,
            "params": list(one.params),
            "kernel": kernel.release,
            "log": "",
            "debug": {patch: _patch_id(self.series, patch) for patch in debug},
            "commands": [_line(command) for _, _, command in commands],
            **where,
            **judge(result, commands, died, name == FUNCTIONAL, known, self.plan.known),
        }
        if part["outcome"] != "ok":
            part["log"] = _keep(paths.out("runs", folder), part)
        return part

    def _commands(
        self, one: Configuration, name: str, programs: Collection[str]
    ) -> tuple[list[image.Command], dict[str, str]]:
        """(commands for guest.run(), reasons of failures that are known by name) of a part."""
        where = (one.cpu, *one.params, *one.config)
        if name == FUNCTIONAL:
            commands, known, _ = functional.plan(self.series, one.arch, programs)
            return commands, {**known, **functional.excused(self.series, one.arch, where)}
        found: list[image.Command] = []
        for entry in self.plan.parts[name]:
            program, *words = entry["args"].split()
            command = [f"/tests/{program}", *words]
            if entry.get("script"):
                script, *more = entry["script"].split()
                text = (image.GUEST / script).read_text(encoding="utf-8")
                command = ["sh", "-c", text, script, *more, *command]
            if entry.get("arch", one.arch) == one.arch and not set(where) & set(entry.get("unless") or ()):
                found.append((f"{len(found) + 1}-{program}", 3 * entry["seconds"] + _GRACE, command))
        return found, {}


def _line(command: Sequence[str]) -> str:
    """A command as it is read: a script that sh is given as text goes by its name."""
    return shlex.join(command[3:] if command[:2] == ["sh", "-c"] else command)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _patch_id(series: catalog.Series, patch: str) -> str:
    content = trees.on_top(series, patch).read_bytes()
    return hashlib.sha256(content).hexdigest()[:16]


def _host(qemu: emulator.Qemu) -> Where:
    """The keys of a part that say where it ran."""
    host = results.host_info()
    return {
        "qemu": qemu.version()[1] or "unknown",
        "host": {key: host[key] for key in ("machine", "cpu", "cpus", "memory", "os", "kernel")},
    }


def _remains(folder: Path) -> guest.Result:
    """The guest.Result of what a guest that died has left in `folder`."""

    def text(name: str) -> str:
        path = folder / name
        return path.read_text(encoding="utf-8", errors="replace").replace("\r", "") if path.exists() else ""

    outcomes, _ = guest.parse_job(text("job.log"))
    return guest.Result(outcomes, guest.splats(text("console.log")), "unknown", folder)


def judge(
    result: guest.Result,
    commands: Sequence[image.Command],
    died: str,
    may_skip: bool,
    known: Mapping[str, str],
    known_reports: Iterable[tuple[str, str]],
) -> How:
    """The keys of a part that say how it went.

    result: a guest.Result; commands: what it was to run; died: what the guest died of, or "".  may_skip:
    whether a test that is skipped is fine; known: reasons of tests that are known to fail, by name;
    known_reports: of (regular expression, reason).
    """
    complaints = [died] if died else []
    for outcome in result.outcomes:
        if outcome.status and outcome.name not in known and not (outcome.status == 4 and may_skip):
            complaints.append(f"{outcome.name}: {_WORDS.get(outcome.status, f'failed with status {outcome.status}')}")
        elif not outcome.status and parse.nothing_harvested(outcome.output):
            complaints.append(f"{outcome.name}: {parse.NOTHING_HARVESTED}")
    left = len(commands) - len(result.outcomes)
    if left:
        complaints.append(f"{left} of {len(commands)} commands did not come to their end")
    reports = [line for line in result.splats if not any(re.search(pattern, line) for pattern, _ in known_reports)]
    complaints += [f"the kernel reported: {line}" for line in reports]
    return {
        "seconds": round(sum(outcome.seconds for outcome in result.outcomes), 1),
        "outcome": "failed" if complaints else "ok",
        "complaints": complaints,
        "reports": reports,
        "known": [line for line in result.splats if line not in reports],
        "counts": soakcounts.total(soakcounts.counts(outcome.output) for outcome in result.outcomes),
    }


def _keep(folder: Path, part: Part) -> str:
    """Copy the logs of a part that has failed to out/soak; returns where they are, below out/."""
    kept = paths.out("soak", f"{part['when'].replace(':', '')}-{part['configuration']}-{part['part']}")
    guest.keep(folder, kept)
    return f"soak/{kept.name}"


def run(
    series: catalog.Series, path: str | Path, hours: float, only: Collection[str] = (), accel: str = "tcg"
) -> list[Part]:
    """Soak `series` until the parts in the file `path` that are of its source add up to `hours`; returns those parts.

    only: names of configurations and of parts: of a kind that has no name there, all.  A part is in the file as soon as it
    has ended.
    """
    soakfile.load(path, series.name)  # it may be no such file: said before minutes of work
    known = plan(series)
    every, names, parts = known.configurations, [one.name for one in known.configurations], list(known.parts)
    for name in only:
        if name not in (*names, *parts):
            raise Usage(f"--only {name}: soak.yaml has {', '.join(names)}, and the parts {', '.join(parts)}")
    turn = [one for one in every if one.name in only] or every
    chosen = [name for name in parts if name in only] or parts
    soak = Soak(series, accel)
    while True:
        done = soakfile.of_source(soakfile.load(path, series.name), soak.source)
        ran = sum(part["seconds"] for part in done)
        if ran >= hours * 3600:
            return done
        say(f"soak: {clock(ran / 60)} of {clock(hours * 60)} hours in {len(done)} parts")
        part = soak.run(*choose(done, turn, chosen))
        for line in part["complaints"]:
            say(f"{part['part']} on {part['configuration']}: {line}")
        soakfile.append(path, series.name, soak.source, names, part)


def verdict(parts: Sequence[Part], path: str | Path) -> None:
    """Raise Fail if one of `parts`, which are in the file `path`, has failed."""
    failed = [part for part in parts if part["outcome"] != "ok"]
    if failed:
        first = failed[0]
        raise Fail(
            f"{len(failed)} of {len(parts)} parts failed, the first: {first['part']} on "
            f"{first['configuration']}: {first['complaints'][0]} (see {path}, {paths.out(first['log'])})"
        )
