"""What a run of stage2_fault_stress_test has met, and a file of it: with SERIES_COUNTS=FILE each run that went well
is added to FILE, Documentation/results/stress-v5.10.json for what a text quotes."""

import json
import os
import re
from pathlib import Path

from kvmseries import catalog
from kvmseries.errors import Fail

# What the test says of itself, apart from the lists of helpers and of KVM's counters.
_SAID = {"words": r"(\d+) words, ", "dirty": r"(\d+) writes in the dirty log", "executed": r"(\d+) words executed",
         "exiting": r"(\d+) writes to the read-only memslot"}


def parse(text):
    """{what: sum over all VMs} of what the test printed: operations of each helper, KVM's counters, words
    verified, of those in the dirty log, executed, and written by exits."""
    sums = {}
    for line in re.findall(r"^(?:Host|KVM):(.*)$", text, re.M):
        for name, count in re.findall(r"(\w+) (\d+)", line):
            sums[name] = sums.get(name, 0) + int(count)
    for name, pattern in _SAID.items():
        sums[name] = sum(map(int, re.findall(pattern, text)))
    return sums


def keep(name, where, command, seconds, met):
    """Add a run to the file that SERIES_COUNTS names, or do nothing if it names none.

    where: (arch, cpu, overlays, kernel parameters); met: parse()'s.  Raises Fail if the file is another's."""
    target = os.environ.get("SERIES_COUNTS")
    if not target:
        return
    target, series = Path(target), catalog.load("v5.10")
    runs = _load(target)
    arch, cpu, configs, params = where
    runs.append({"check": name, "patches": series.patches_id(len(series.patches)), "arch": arch, "cpu": cpu,
                 "configs": list(configs), "params": list(params), "command": " ".join(map(str, command)),
                 "seconds": round(seconds), "met": met})
    part = target.with_suffix(".part")
    part.write_text(json.dumps({"schema": 1, "series": series.name, "runs": runs}, indent=1) + "\n", encoding="utf-8")
    part.replace(target)


def _load(target):
    """The runs in the file `target`, none if there is no such file."""
    if not target.exists():
        return []
    try:
        data = json.loads(target.read_text(encoding="utf-8"))
        return data["runs"]
    except (ValueError, KeyError, TypeError):
        raise Fail(f"{target} is no file of counts: SERIES_COUNTS is to name one, or none yet") from None
