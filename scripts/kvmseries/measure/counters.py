"""What the virtual clock counted in a run, and whether its figures may be used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..base.errors import Fail
from ..data import parse

# Most accesses to cache lines that may come after a later one, as a share of a phase's.  Where the
# interconnect is saturated by TLBIs it is 1 % on an idle host, with times as arithmetic has them.  While two programs
# want all of the host's CPUs it is 0.8 % with 16 vCPUs, and tests/v5.10/test_vtime.py compares the times with those of an
# idle host.  Nearer to this limit there is one observation, during three builds: 6 %, and times the same to 0.8 %.
MAX_INVERSIONS = 0.1
# Phases of a test whose counters are kept: those in which vCPUs fault.
COUNTED = ("populate", "dirty", "fault", "access")
COUNTS = (
    *(f"faults_{kind}" for kind in ("permission", "translation", "access", "other")),
    *("tlbi_local", "tlbi_broadcast", "atomics", "foreign_atomics"),
)
# Most turns that a CPU may pass which has gone on out of turn for longer than a translation block, as
# a share of a phase's.  It is 0.4 % where TLBIs have CPUs pass 44 %, whatever the host's load.  Where a
# CPU was let go for no reason it was up to 80 %, and one time of twenty off by 8 %.
MAX_STRAYS = 0.02

# A line of counters.json: counts, and the line of output that ended the phase.
Counted = dict[str, Any]


def load(folder: Path) -> list[Counted]:
    """What a run in `folder` counted: list of dicts, one a phase, its health checked.

    Raises Fail if it broke off, or if its order of events was not kept.
    """
    try:
        lines = (folder / "counters.json").read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise Fail(f"the virtual clock left no counters in {folder}: {error}") from None
    if not found or not found[-1].get("end"):
        raise Fail(f"the virtual clock broke off (see {folder})")
    check(found[:-1], found[-1], folder)
    return found[:-1]


def check(phases: Iterable[Counted], health: Counted, where: str | Path) -> None:
    """Raise Fail if a run's figures must not be used.

    phases: its counters, a dict a phase; health: the last line.  `where` is named in the message.
    """
    for entry in phases:
        phase = f"in the phase that ends with '{entry['line']}'"
        if entry["inversions"] > MAX_INVERSIONS * entry["accesses"]:
            raise Fail(
                f"virtual time out of order: {phase} {entry['inversions']} of {entry['accesses']} accesses to cache lines "
                f"came too late; use fewer vCPUs (see {where})"
            )
        if entry["strays"] > MAX_STRAYS * entry["turns"]:
            raise Fail(
                f"virtual time out of order: {phase} CPUs went on without their turn, {entry['strays']} of "
                f"{entry['turns']} times (see {where})"
            )
        if entry["forced"]:
            raise Fail(
                f"virtual time stood still {phase}, and QEMU's main loop went on: is the host overloaded? (see {where})"
            )
    if health["late"]:
        raise Fail(f"a CPU ran without a clock {health['late']} times (see {where})")
    if not health["polls"] or not health["reads"]:
        raise Fail(
            "this QEMU looks at the time, or sleeps, by other calls than scripts/vtime knows: "
            f"use another QEMU, or --clock wall (see {where})"
        )


def by_test(found: Iterable[Counted]) -> dict[str, list[Counted]]:
    """Counters of a job, by the name of its command: dict of name to list of dicts."""
    tests: dict[str, list[Counted]] = {}
    name = ""
    for entry in found:
        match = re.match(r"@@ (begin|end) (\S+)", entry["line"])
        if match and match[1] == "begin":
            name = match[2]
            tests[name] = []
        elif match:
            tests[name].append({**entry, "line": "exit"})
            name = ""
        elif name:
            tests[name].append(entry)
    return tests


def measures(entries: Iterable[Counted]) -> list[parse.Measure]:
    """The Measures of one test's counters (from by_test())."""
    found = []
    for entry in entries:
        phase, iteration = parse.phase(entry["line"].split(":")[0])
        if phase not in COUNTED:
            continue
        found += [parse.Measure(f"{name}.{phase}", iteration, entry[name], "1") for name in COUNTS]
        if entry["faults_handled"]:
            found.append(
                parse.Measure(f"instructions_per_fault.{phase}", iteration, entry["instructions_per_fault"], "1")
            )
    return found
