"""Results files: `{"schema": 4, "host": {...}, "made": {...}, "runs": [...]}`.

A run is one metric of one test on one kernel with its samples; Documentation/results.md describes
every key and metric.  load() checks all of it, so that whoever reads results afterwards need not.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..base import distro, files, paths
from ..base.errors import Fail
from . import repeat
from .shape import Host, Kind, Made, Making, Results, Run, Trace

SCHEMA = 4

# Key of a run -> types that it may have.
KEYS: dict[str, Kind] = {
    "series": str,  # "v5.10"
    "kernel": str,  # "base", "series" or "upto:NAME"
    "arch": str,  # "arm64" or "x86_64"
    "accel": str,  # "tcg", "kvm" or "here"
    "clock": str,  # "wall" or "virtual"
    "model": str,  # of the virtual clock: "nominal", "line*2" (a parameter times a factor)
    "cpu": str,  # the emulated CPU: "max", "cortex-a72"; "host"
    "config": str,  # kernel configuration: "normal", "lockstat", "debug", ...
    "params": list,  # kernel command line parameters added by the user
    "test": str,  # "dirty_log_perf_test"
    "args": str,  # the test's arguments, as run
    "vcpus": int,
    "iteration": (int, type(None)),
    "metric": str,
    "unit": str,  # "s" or "1"
    "samples": list,  # numbers, in the order they were taken
}
# What a run says of its rounds, from schema 4 on.
ROUNDS: dict[str, Kind] = {
    "repeats": (bool, type(None)),  # whether the samples agree; None: not judged (repeat.py)
    "earlier": list,  # of lists: samples that were there before --retry measured all rounds again
}
# A migration over time, of the optional list `traces`.
TRACE = {
    "series": str,
    "kernel": str,
    "config": str,
    "args": str,
    "vcpus": int,
    "rows": list,
}  # [s, bytes left to send, throttle in percent, bytes sent, sync passes]
CLOCKS = ("wall", "virtual")
# What `made` says: of what, how often, and how to make it again.
MADE = {
    "ids": dict,  # see ID_KINDS; empty in files of schema 1 and 2: of an unknown state
    "rounds": int,  # samples of each figure of the nominal model
    "command": str,  # without anybody's paths
    "seconds": int,  # that it took
}
# What `made` has besides in the file of a benchmark that broke off (unfinished.py).
UNFINISHED = {
    "key": str,  # hash of what was to be measured, and how
    "parts": list,  # names of the boots that are done: lists
    "left": int,  # boots that are still to be done
    "complaints": list,  # lines about what was measured
}
# Ids (ids.py) by what they are of: one, or one for each kernel label, series, configuration, variant of the
# model.  None is an id that could not be known.
ID_KINDS = {
    "kernels": dict,
    "tests": dict,
    "configs": dict,
    "models": dict,
    "guest": str,
    "own": dict,
    "instrument": str,
    "qemu": str,
}


def check_run(run: object, where: str) -> None:
    """Raise Fail unless `run` (a dict) has exactly the keys of KEYS, and maybe ROUNDS, of the right type."""
    if not isinstance(run, dict):
        raise Fail(f"{where} is not an object")
    for key, kind in KEYS.items():
        if key not in run:
            raise Fail(f"{where} has no '{key}'")
        if not isinstance(run[key], kind) or isinstance(run[key], bool):
            raise Fail(f"{where}: '{key}' is {run[key]!r}")
    for key in run:
        if key not in KEYS and key not in ROUNDS:
            raise Fail(f"{where}: unknown key '{key}'")
    for key, kind in ROUNDS.items():
        if key in run and not isinstance(run[key], kind):
            raise Fail(f"{where}: '{key}' is {run[key]!r}")
    if run["clock"] not in CLOCKS:
        raise Fail(f"{where}: clock is {run['clock']!r}, not one of {', '.join(CLOCKS)}")
    if (run["clock"] == "virtual") != bool(run["model"]):
        raise Fail(
            f"{where}: clock is {run['clock']!r} and model {run['model']!r}: a virtual clock "
            "has a model, no other has one"
        )
    for samples in (run["samples"], *run.get("earlier", ())):
        _check_samples(samples, where)


def _check_samples(samples: object, where: str) -> None:
    if not samples or not isinstance(samples, list):
        raise Fail(f"{where} has no samples")
    for sample in samples:
        if not isinstance(sample, (int, float)) or isinstance(sample, bool) or not math.isfinite(sample):
            raise Fail(f"{where}: sample {sample!r} is not a number")


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
    old = data.get("schema")
    if old not in (1, 2, 3, SCHEMA):
        raise Fail(f"{path} has schema {old!r}, this tool reads 1 to {SCHEMA}")
    if not isinstance(data.get("host"), dict) or not isinstance(data["runs"], list):
        raise Fail(f"{path} is not a results file: 'host' or 'runs' is of the wrong type")
    if old == 1:
        _from_schema_1(data)
    for number, run in enumerate(data["runs"]):
        check_run(run, f"{path}: run {number}")
        if old == SCHEMA and not ROUNDS.keys() <= run.keys():
            raise Fail(f"{path}: run {number} has no '{min(ROUNDS.keys() - run.keys())}'")
    if old < 3:
        _from_schema_2(data)
    if old < SCHEMA:
        _from_schema_3(data)
    check_made(data.get("made"), path)
    check_traces(data.get("traces", []), path)
    return cast(Results, data)


def _from_schema_1(data: dict[str, Any]) -> None:
    """Schema 1 knew no virtual clock."""
    for run in data["runs"]:
        if isinstance(run, dict):
            run.setdefault("model", "")


def _from_schema_2(data: dict[str, Any]) -> None:
    """Schema 2 said nothing of what it was made of."""
    line = data["host"].get("command")
    data["made"] = {
        "ids": {},
        "rounds": rounds(data["runs"]),
        "seconds": 0,
        "command": line if isinstance(line, str) else "",
    }


def _from_schema_3(data: dict[str, Any]) -> None:
    """Schema 3 did not say whether rounds agree: its samples do."""
    data["schema"] = SCHEMA
    repeat.mark(data["runs"])


def check_traces(traces: object, where: str | Path) -> None:
    """Raise Fail unless `traces` is a list of what TRACE says."""
    if not isinstance(traces, list):
        raise Fail(f"{where}: 'traces' is no list")
    for trace in traces:
        if (
            not isinstance(trace, dict)
            or set(trace) != set(TRACE)
            or not all(isinstance(trace[key], kind) for key, kind in TRACE.items())
        ):
            raise Fail(f"{where}: a trace needs {', '.join(TRACE)}")
        for row in trace["rows"]:
            if (
                not isinstance(row, list)
                or len(row) != 5
                or not all(
                    isinstance(one, (int, float)) and not isinstance(one, bool) and math.isfinite(one) for one in row
                )
            ):
                raise Fail(f"{where}: a row of a trace has five numbers, not {row!r}")


def check_made(made: object, where: str | Path) -> None:
    """Raise Fail unless `made` (a dict) has exactly the keys of MADE, and ids of the kinds of ID_KINDS."""
    if not isinstance(made, dict) or set(made) - {"unfinished"} != set(MADE):
        raise Fail(f"{where} is not a results file of schema {SCHEMA}: 'made' needs {', '.join(MADE)}")
    for key, kind in MADE.items():
        if not isinstance(made[key], kind) or isinstance(made[key], bool):
            raise Fail(f"{where}: '{key}' of 'made' is {made[key]!r}")
    rest = made.get("unfinished", dict.fromkeys(UNFINISHED))
    if (
        not isinstance(rest, dict)
        or set(rest) != set(UNFINISHED)
        or "unfinished" in made
        and not all(isinstance(rest[key], kind) for key, kind in UNFINISHED.items())
    ):
        raise Fail(f"{where}: 'unfinished' of 'made' needs {', '.join(UNFINISHED)}")
    for key, value in made["ids"].items():
        if key not in ID_KINDS or not isinstance(value, (ID_KINDS[key], type(None))):
            raise Fail(f"{where}: 'ids' has {key!r}: {value!r}")
        for one in value.values() if isinstance(value, dict) else ():
            if not isinstance(one, (str, type(None))):
                raise Fail(f"{where}: 'ids' has {one!r} in {key!r}")


def rounds(runs: Iterable[Run]) -> int:
    """The number of rounds that `runs` have: the least number of samples of a time of the nominal model (of a
    count where there are no times)."""
    counts = {
        unit: [len(run["samples"]) for run in runs if run["unit"] == unit and run["model"] in ("", "nominal")]
        for unit in ("s", "1")
    }
    return min(counts["s"] or counts["1"] or [0])


# Options whose value is a path.
_TREES = ("--tree", "--kernel")
# What names somebody's machine, and how it is told.
_HOST = {"--remote": "HOST", "--ssh": "SSH", "--host-config": "FILE"}
_PATHS = ("--json", "--picture", *_TREES, *_HOST)


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
    if option in _TREES or option in _HOST:
        return _HOST.get(option, "TREE")
    found = Path(path).absolute()
    return str(found.relative_to(paths.ROOT)) if found.is_relative_to(paths.ROOT) else found.name


def save(path: str | Path, host: Host, runs: Iterable[Run], made: Making, traces: Sequence[Trace] = ()) -> None:
    """Write a results file atomically: a reader sees the old file or the new one.

    made: a dict with the keys of MADE, but for `rounds`, which follow from the runs.  traces: of migrations.
    """
    runs = [{**run, "repeats": run.get("repeats"), "earlier": run.get("earlier", [])} for run in runs]
    for number, run in enumerate(runs):
        check_run(run, f"run {number}")
    whole: Made = {**made, "rounds": rounds(runs)}
    check_made(whole, path)
    check_traces(list(traces), path)
    data = {"schema": SCHEMA, "host": host, "made": whole, "runs": runs, **({"traces": list(traces)} if traces else {})}
    files.write(path, files.lines(data, "traces", "runs"))


def _first_line(command: list[str]) -> str | None:
    try:
        out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    return out.splitlines()[0].strip() if out.strip() else None


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


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
