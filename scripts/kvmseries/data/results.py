"""Results files: `{"schema": 4, "host": {...}, "made": {...}, "runs": [...]}`.

A run is one metric of one test on one kernel with its samples; Documentation/results.md describes
every key and metric, and Documentation/results.schema.yaml the form.  load() checks all of it, so that whoever reads
results afterwards need not.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from ..base import distro, files, paths
from ..base.errors import Fail
from . import schema
from .shape import Host, Made, Results, Run, Trace

SCHEMA = 4
FORMAT = paths.ROOT / "Documentation" / "results.schema.yaml"


def check(data: object, where: str | Path, part: str = "") -> None:
    """Raise Fail with one line unless `data` is as FORMAT says of a file, or of its part `part`."""
    schema.check(data, where, FORMAT, part)


def load(path: str | Path) -> Results:
    """Read and check the results file `path`; returns its dict.  Raises Fail with one line."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise Fail(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Fail(f"{path} is not a results file: it is not JSON") from None
    if not isinstance(data, dict) or "runs" not in data:
        raise Fail(f"{path} is not a results file: it has no runs")
    if data.get("schema") != SCHEMA:
        raise Fail(f"{path} has schema {data.get('schema')!r}, this tool reads {SCHEMA}")
    check(data, path)
    return cast(Results, data)


def rounds(runs: Iterable[Run]) -> int:
    """The number of rounds that `runs` have: the least number of samples of a time of the nominal model (of a
    count where there are no times)."""
    counts = {
        unit: [len(run["samples"]) for run in runs if run["unit"] == unit and run["model"] in ("", "nominal")]
        for unit in ("s", "1")
    }
    return min(counts["s"] or counts["1"] or [0])


# Options whose value is a path.
_PATHS = ("--json", "--picture", "--tree")


def command(words: Iterable[str]) -> str:
    """The command line of the tool that `words` are the arguments of, without anybody's paths: a file of this
    repository by its path from the top, another one by its name, a user's own tree as TREE."""
    line, option = ["scripts/series"], ""
    for word in words:
        name, equals, value = word.partition("=")
        if option in _PATHS:
            line.append(_place(option, word))
        elif name in _PATHS and equals:
            line.append(f"{name}={_place(name, value)}")
        else:
            line.append(word)
        option = word
    return shlex.join(line)


def _place(option: str, path: str) -> str:
    if option == "--tree":
        return "TREE"
    found = Path(path).absolute()
    return str(found.relative_to(paths.ROOT)) if found.is_relative_to(paths.ROOT) else found.name


def save(path: str | Path, host: Host, runs: Iterable[Run], made: Made, traces: Sequence[Trace] = ()) -> None:
    """Write a results file atomically: a reader sees the old file or the new one.

    made: without `rounds`, which follow from the runs.  traces: of migrations.
    """
    runs = [{**run, "repeats": run.get("repeats"), "earlier": run.get("earlier", [])} for run in runs]
    whole: Made = {**made, "rounds": 0}
    data = {"schema": SCHEMA, "host": host, "made": whole, "runs": runs, **({"traces": list(traces)} if traces else {})}
    check(data, path)
    whole["rounds"] = rounds(runs)
    files.write(path, files.lines(data, "traces", "runs"))


def _first_line(command: list[str]) -> str | None:
    try:
        out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    return out.splitlines()[0].strip() if out.strip() else None


def _cpu_model() -> str:
    found = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    return found[1] if found else platform.machine()


def host_info(tools: Iterable[str] = (), kernels: Mapping[str, str] | None = None) -> Host:
    """Describe the machine: CPU model and count, memory (bytes), OS, versions of `tools`.

    tools: commands that print their version for --version, such as qemu-system-aarch64; their names are kept, not
    where they are.
    kernels: dict of "<kernel> <arch> <config>" to the version that the guest reported.
    """
    return {
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "os": distro.release().get("PRETTY_NAME") or _first_line(["uname", "-sr"]) or "unknown",
        "kernel": platform.release(),
        "tools": {Path(tool).name: _first_line([tool, "--version"]) for tool in tools},
        "kernels": dict(kernels or {}),
    }
