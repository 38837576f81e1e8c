"""One command, over and over, on base and on the series: how often each fails, and by what.

For what is rare and not explained.  Kernels take turns, a boot at a time, in which the command runs so many times;
the counts are written after each boot, so that a hunt can be interrupted and goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

from ..base import files, paths, progress
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import ids, results, schema
from ..data.shape import Host
from ..guest import emulator, image, machine as machines, run as guest
from ..kernel import build, selftests
from ..source import catalog

_SCHEMA = 1
FORMAT = paths.ROOT / "Documentation" / "hunt.schema.json"


@dataclass(frozen=True)
class Hunt:
    """What is run."""

    arch: str
    cpu: str
    params: tuple[str, ...]  # of the kernel
    command: tuple[str, ...]  # program in /tests and its arguments
    limit: int  # seconds for one run
    accel: str = "tcg"
    cpus: int = 4
    memory: int = 3072  # MiB
    all_cpus: bool = False  # the command may run on CPU 0, too: see guest.firstcpu


class Counts(TypedDict):
    """What became of the runs on one kernel."""

    source: str | None
    runs: int
    boots: int
    failures: dict[str, int]
    logs: list[str]


class Found(TypedDict):
    """The file of a hunt."""

    schema: int
    series: str
    hunt: dict[str, Any]
    host: Host
    tests: str | None
    kernels: dict[str, Counts]


def why(outcome: guest.Outcome) -> str:
    """The words by which a run that failed can be counted with others: numbers are left out."""
    status, colon, text = outcome.why().partition(": ")
    return status + colon + re.sub(r"0x[0-9a-f]+|\d+", "N", text)[:120]


def run(series: catalog.Series, hunt: Hunt, kernels: str, runs: int, batch: int, path: Path) -> Found:
    """Run `hunt` until each of `kernels` ("base,series") has `runs` runs, `batch` in a boot; returns the data in `path`.

    Documentation/hunt.schema.json says what is in it.  Raises Fail if `path` is of another hunt or of other sources, and
    Usage if the guest has no such program.
    """
    points = catalog.points(series, kernels)
    _begin(series, hunt, points, path)  # before minutes of builds: Fail if the file is of something else
    tests = selftests.build(series, hunt.arch)
    _known(hunt.command[0], tests)
    initrd = image.base(hunt.arch, tests)
    # Two at once would write over each other's counts.
    with paths.locked(f"hunt-{path.name}", say):
        data = _begin(series, hunt, points, path)
        while True:
            point = min(points, key=lambda point: data["kernels"][point.label]["runs"])
            counts = data["kernels"][point.label]
            wanted = min(batch, runs - counts["runs"])
            if wanted <= 0:
                return data
            built = build.kernel(series, point.count, hunt.arch, ())
            _boot(built, initrd, hunt, wanted, f"hunt-{point.label.replace(':', '-')}", counts)
            qemu = emulator.for_commands(hunt.arch, _commands(hunt, 1), hunt.accel, hunt.params)
            data["host"] = results.host_info([qemu.program])
            files.write_json(path, data)
            say(f"{point.label}: {counts['runs']} of {runs} runs, {sum(counts['failures'].values())} failed")


def _known(program: str, tests: Path) -> None:
    """Raise Usage if the guest has no `program`: its path there, such as /tests/dirty_log_test."""
    if not program.startswith("/"):
        raise Usage(
            f"hunt: '{program}' is no path in the guest: give /tests/{program}, or another one that begins with /"
        )
    if program.startswith("/tests/") and program.removeprefix("/tests/") not in selftests.programs(tests):
        raise Usage(f"hunt: there is no {program} (tests: {tests})")


def _begin(series: catalog.Series, hunt: Hunt, points: Iterable[catalog.Point], path: Path) -> Found:
    """The data in `path`, or what it begins with."""
    kernels: dict[str, Counts] = {
        point.label: {
            "source": ids.today(point.label, series.name, hunt.arch),
            "runs": 0,
            "boots": 0,
            "failures": {},
            "logs": [],
        }
        for point in points
    }
    begun: Found = {
        "schema": _SCHEMA,
        "series": series.name,
        "hunt": json.loads(json.dumps(asdict(hunt))),
        "host": {},
        "tests": ids.today("series", series.name, ids.SUITE),
        "kernels": kernels,
    }
    if not path.exists():
        return begun
    try:
        data: Found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise Fail(f"{path} is no file of a hunt: remove it, or give another one") from None
    found = schema.wrong(data, FORMAT)
    if found:
        raise Fail(f"{path} is no file of a hunt ({found}): remove it, or give another one")
    if _what(data) != _what(begun):
        raise Fail(f"{path} is of another hunt, or of other sources: give another file")
    return data


def _what(found: Found) -> list[object]:
    """What a file is of: all but what was counted, and where."""
    return [
        found["schema"],
        found["series"],
        found["hunt"],
        found["tests"],
        {label: counts["source"] for label, counts in found["kernels"].items()},
    ]


def _commands(hunt: Hunt, times: int) -> list[image.Command]:
    return [(f"run-{number}", hunt.limit, list(hunt.command)) for number in range(1, times + 1)]


def _boot(kernel: build.Kernel, initrd: Path, hunt: Hunt, times: int, name: str, counts: Counts) -> None:
    """Boot `kernel` once, run the command so many times, and add to `counts` what became of it."""
    commands = _commands(hunt, times)
    machine = machines.Machine(
        hunt.arch, hunt.cpu, hunt.accel, hunt.cpus, hunt.memory, hunt.params, all_cpus=hunt.all_cpus
    )
    folder, failures = paths.out("runs", name), []
    with progress.single("hunt", f"{name}, {times} runs", 30 + 20 * times) as note:
        try:
            result = guest.run(kernel, initrd, machine, commands, name, note)
            outcomes = result.outcomes
            failures += [f"the kernel reported: {re.sub('0x[0-9a-f]+|[0-9]+', 'N', line)}" for line in result.splats]
        except Fail as error:
            # How the guest itself ended, in which a run broke off.
            outcomes = _outcomes(folder)
            failures.append(re.sub(r"0x[0-9a-f]+|\d+", "N", re.split(r"; | \(see ", str(error))[0]))
            counts["runs"] += 1
    counts["boots"] += 1
    counts["runs"] += len(outcomes)
    failures += [why(outcome) for outcome in outcomes if outcome.status]
    for failure in failures:
        counts["failures"][failure] = counts["failures"].get(failure, 0) + 1
    if failures:
        kept = paths.out("hunt", f"{name}-{counts['boots']}")
        paths.remove(kept)
        folder.rename(kept)
        counts["logs"].append(f"hunt/{kept.name}")


def _outcomes(folder: Path) -> list[guest.Outcome]:
    """What ended before the guest did."""
    try:
        text = (folder / "job.log").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return guest.parse_job(text.replace("\r", ""))[0]
