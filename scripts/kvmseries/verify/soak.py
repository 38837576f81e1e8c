"""Hours of selftests and stress on the series' kernels, in parts of some minutes each.

tools-testing-selftests-kvm/soak.yaml has the configurations and what a part runs.  The next part goes to
the configuration that has run the least.  What has run is in one file, from which the next run goes on:

    {"schema": 2, "series": "v5.10", "source": {arch: id}, "sum": {...}, "parts": [...]}

`source` is what the sum is of: parts of another source are kept and not added.  A part is one boot.  The file is read,
added to and replaced as a whole under a lock, so that an interrupted run loses no part and two runs may add to one file.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import files, paths, progress
from ..base.errors import Fail, Usage
from ..base.progress import clock, say
from ..data import ids, parse, results, schema
from ..kernel import build, kconfig, mutants, selftests
from ..source import catalog, trees
from ..vm import emulator, image, machine as machines, run as guest
from . import functional

# The form of soak.yaml, and of the file of a soak.
PLAN, FILE = paths.TESTS / "soak.schema.yaml", paths.ROOT / "Documentation" / "soak.schema.yaml"
SCHEMA = 2
# FILE says what its keys mean.
Part = dict[str, Any]
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

# Lines "KVM: NAME N..." and "Host: NAME N..." have counts with names of their own.
_NAMED = re.compile(r"^(KVM|Host):((?: \S+ \d+)+)$", re.M)
# What else is counted, and the names of a line's numbers; `key`, its first group, goes behind them.
_LINES = (
    (r"^Walks that age: (?P<key>\w+) (\d+)$", ("walks_that_age",)),
    (r"^Faults that undo: (?P<key>\w+) (\d+)$", ("faults_that_undo",)),
    (r"^Faults that map: (?P<key>\w+) (\d+)$", ("faults_that_map",)),
    (
        r"^Verified with the vCPUs stopped: (\d+) times, (\d+) words, (\d+) writes in the dirty log of (\d+) harvests",
        ("stops", "words_verified", "writes_verified_in_log", "harvests"),
    ),
    (
        r"^Verified by vCPUs: (\d+) words executed, (\d+) writes to the read-only memslot",
        ("words_executed", "writes_to_readonly"),
    ),
    (r"^Storm: [\d.]+ s, (\d+) accesses by vCPUs, (\d+) pages verified by the host", ("accesses", "pages_verified")),
    (r"^[\d.]+ s, (\d+) accesses by vCPUs, (\d+) exits", ("accesses", "exits")),
    (r"^Verified by the host: (\d+) pages", ("pages_verified",)),
    # access_tracking_stress_test, of each iteration.
    (r"found after aging, vCPUs (?P<key>idle|running): (\d+) young", ("pages_young",)),
    (r"false idle after flush: (\d+) of (\d+) pages touched", ("false_idle_after_flush", "pages_touched")),
    (r"^Pages swapped out: (\d+), in: (\d+)", ("swapped_out", "swapped_in")),
    # dirty_log_test
    (r"^Total bits checked: dirty \((\d+)\), clear \((\d+)\)", ("log_dirty_checked", "log_clear_checked")),
    # tables.sh
    (r"^Tables of stage 2: (\d+) before, (\d+) after$", ("tables_before", "tables_after")),
)


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

    configurations: tuple[Configuration, ...]
    parts: dict[str, list[dict[str, Any]]]  # name -> commands, as in the file
    debug: tuple[str, ...]  # names of trees.on_top(), for all parts but the functional one
    known: tuple[tuple[str, str], ...]  # of (regular expression, reason)


def plan(series: catalog.Series) -> Plan:
    """The Plan of `series`; Fail if soak.yaml has none, or a configuration that cannot be."""
    file = paths.TESTS / "soak.yaml"
    data = (schema.read(file, PLAN) or {}).get(series.name)
    if not data:
        raise Fail(f"{file} says nothing of {series.name}")
    found = []
    for name, entry in data["configurations"].items():
        lists = {key: tuple(entry.get(key, ())) for key in ("config", "params")}
        one = Configuration(name, entry["arch"], entry.get("cpu", "max"), **lists)
        kconfig.load(one.arch, one.config, series.kernel)
        if one.arch in series.arches:
            found.append(one)
    known = tuple((entry["report"], entry["reason"]) for entry in data.get("known", ()))
    return Plan(tuple(found), {FUNCTIONAL: [], **data["parts"]}, tuple(data.get("debug", ())), known)


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
        begin = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        qemu = emulator.for_commands(one.arch, commands, self.accel, one.params)
        host = results.host_info()
        folder = f"soak-{self.series.name}-{one.name}-{name}"
        died = ""
        with progress.single(f"soak-{one.name}-{name}", f"{name} on {one.name}", 200) as note:
            try:
                result = guest.run(kernel, initrd, machine, commands, folder, note, _SILENCE)
            except Fail as error:
                died = re.sub(r" \(see .*\)$", "", str(error))
                if died.startswith("QEMU failed"):
                    raise
                result = guest.remains(paths.out("runs", folder))
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
            "debug": {patch: self._patch_id(patch) for patch in debug},
            # A script that sh is given as text goes by its name.
            "commands": [shlex.join(words[3:] if words[:2] == ["sh", "-c"] else words) for _, _, words in commands],
            "qemu": qemu.version()[1] or "unknown",
            "host": {
                **{key: host[key] for key in ("machine", "cpu", "cpus", "memory", "os", "kernel")},
                "load": round(os.getloadavg()[1], 1),
            },
            **judge(result, commands, died, name == FUNCTIONAL, known, self.plan.known),
        }
        if part["outcome"] != "ok":
            part["log"] = _keep(paths.out("runs", folder), part)
        return part

    def _patch_id(self, patch: str) -> str:
        return hashlib.sha256(trees.on_top(self.series, patch).read_bytes()).hexdigest()[:16]

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


def judge(
    result: guest.Result,
    commands: Sequence[image.Command],
    died: str,
    may_skip: bool,
    known: Mapping[str, str],
    known_reports: Iterable[tuple[str, str]],
) -> Part:
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
        "counts": total(counts(outcome.output) for outcome in result.outcomes),
    }


def _keep(folder: Path, part: Part) -> str:
    """Copy the logs of a part that has failed to out/soak; returns where they are, below out/."""
    kept = paths.out("soak", f"{part['when'].replace(':', '')}-{part['configuration']}-{part['part']}")
    guest.keep(folder, kept)
    return f"soak/{kept.name}"


def counts(text: str) -> dict[str, int]:
    """{name: sum} of the counts in `text`, the output of a command; what is not known is passed over.

    "kvm.NAME" are counters of KVM, "host.NAME" what the helpers of a test did, "vms" the VMs of
    stage2_fault_stress_test.
    """
    found: Counter[str] = Counter()
    for group, line in _NAMED.findall(text):
        words = line.split()
        for name, value in zip(words[::2], words[1::2]):
            found[f"{group.lower()}.{name}"] += int(value)
    for pattern, names in _LINES:
        for match in re.finditer(pattern, text, re.M):
            key = match.groupdict().get("key")
            for name, value in zip(names, match.groups()[1 if key else 0 :]):
                found[f"{name}.{key}" if key else name] += int(value)
    vms = len(re.findall(r"^Dirty log: \S+$", text, re.M))
    if vms:
        found["vms"] = vms
    return dict(found)


def total(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of several results of counts(), by name, sorted."""
    found: Counter[str] = Counter()
    for one in many:
        found.update(one)
    return dict(sorted(found.items()))


def load(path: str | Path, series: str) -> list[Part]:
    """The parts in `path` of a soak of `series` (its name); none if there is no such file.

    Raises Fail, in one line, for what is no such file, is cut short, or has another schema.
    """
    other = "name another file with --json, or remove it"
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Fail(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Fail(f"{path} is cut short, or not JSON: {other}") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise Fail(f"{path} is not a file of a soak: {other}")
    if data["schema"] != SCHEMA:
        raise Fail(f"{path} has schema {data['schema']!r}, this tool adds to {SCHEMA}: {other}")
    if data.get("series") != series:
        raise Fail(f"{path} is not the file of a soak of {series}: {other}")
    wrong = schema.wrong(data, FILE)
    if wrong:
        raise Fail(f"{path}: {wrong}: {other}")
    return data["parts"]


def of_source(parts: Iterable[Part], source: Mapping[str, str]) -> list[Part]:
    """The parts that are of `source`, {arch: id}."""
    return [part for part in parts if source.get(part["arch"]) == part["source"]]


def _sum(parts: Sequence[Part]) -> dict[str, Any]:
    return {
        "hours": round(sum(part["seconds"] for part in parts) / 3600, 3),
        "parts": len(parts),
        "failed": sum(part["outcome"] != "ok" for part in parts),
        "reports": sum(len(part["reports"]) for part in parts),
        "known_reports": sum(len(part["known"]) for part in parts),
        "counts": total(part["counts"] for part in parts),
    }


def append(path: str | Path, series: str, source: Mapping[str, str], names: Iterable[str], part: Part) -> list[Part]:
    """Add `part` to `path`, and sum up anew what is of `source`, in all and for each configuration of `names`; returns
    all parts.  The file is there whole or as it was."""
    path = Path(path).absolute()
    wrong = schema.wrong(part, FILE, "part")
    assert not wrong, wrong
    with paths.locked(f"soak-{path.name}", say):
        parts = [*load(path, series), part]
        mine = of_source(parts, source)
        added = {
            **_sum(mine),
            "parts_of_another_source": len(parts) - len(mine),
            "configurations": {name: _sum([one for one in mine if one["configuration"] == name]) for name in names},
        }
        data = {"schema": SCHEMA, "series": series, "source": source, "sum": added, "parts": parts}
        files.write(path, files.lines(data, "parts"))
    return parts


def run(
    series: catalog.Series, path: str | Path, hours: float, only: Collection[str] = (), accel: str = "tcg"
) -> list[Part]:
    """Soak `series` until the parts in the file `path` that are of its source add up to `hours`; returns those parts.

    only: names of configurations and of parts: of a kind that has no name there, all.  A part is in the file as soon as it
    has ended.
    """
    load(path, series.name)  # it may be no such file: said before minutes of work
    known = plan(series)
    every, parts = known.configurations, list(known.parts)
    names = [one.name for one in every]
    for name in only:
        if name not in (*names, *parts):
            raise Usage(f"--only {name}: soak.yaml has {', '.join(names)}, and the parts {', '.join(parts)}")
    turn = [one for one in every if one.name in only] or every
    chosen = [name for name in parts if name in only] or parts
    soak = Soak(series, accel)
    while True:
        done = of_source(load(path, series.name), soak.source)
        ran = sum(part["seconds"] for part in done)
        if ran >= hours * 3600:
            return done
        say(f"soak: {clock(ran / 60)} of {clock(hours * 60)} hours in {len(done)} parts")
        part = soak.run(*choose(done, turn, chosen))
        for line in part["complaints"]:
            say(f"{part['part']} on {part['configuration']}: {line}")
        append(path, series.name, soak.source, names, part)


def verdict(parts: Sequence[Part], path: str | Path) -> None:
    """Raise Fail if one of `parts`, which are in the file `path`, has failed."""
    failed = [part for part in parts if part["outcome"] != "ok"]
    if failed:
        first = failed[0]
        raise Fail(
            f"{len(failed)} of {len(parts)} parts failed, the first: {first['part']} on "
            f"{first['configuration']}: {first['complaints'][0]} (see {path}, {paths.out(first['log'])})"
        )
