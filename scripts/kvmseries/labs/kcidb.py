"""Results of bench as KCIDB's JSON (schema 5.3), which `kcidb-submit` takes.

A checkout is a kernel label's source, a build one configuration of it, and a test one metric of a run.  A
measurement has no verdict: its status is DONE and its `number` the median of the samples.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.errors import Usage
from ..data.shape import Results, Run
from ..source import catalog

# Major and minor number of the schema.
VERSION = {"major": 5, "minor": 3}
# Keys of a run that stand in the `misc` of its test.
_MISC = ("args", "accel", "clock", "model", "cpu", "params", "samples")
_COMMENT = {"tcg": "emulated", "kvm": "in QEMU on real KVM", "here": "on the machine itself"}


def document(
    data: Results, series: catalog.Series, counts: Mapping[str, int | None], origin: str, begun: str
) -> dict[str, Any]:
    """The JSON object for the results file `data` (as from results.load()).

    series: the catalog.Series.  counts: label of each kernel to its number of patches, None if the label is
    another series' base.  origin: the lab's name at KCIDB.  begun: start time, RFC 3339.
    """
    check_origin(origin)
    key = hashlib.sha256(json.dumps(data["made"]["ids"], sort_keys=True).encode() + begun.encode()).hexdigest()[:16]
    labels = dict.fromkeys(run["kernel"] for run in data["runs"])
    builds = dict.fromkeys((run["kernel"], run["config"], run["arch"]) for run in data["runs"])
    return {
        "version": VERSION,
        "checkouts": [_checkout(series, label, counts.get(label), origin, key, begun) for label in labels],
        "builds": [_build(data, build, origin, key, begun) for build in builds],
        "tests": [_test(data, run, number, origin, key, begun) for number, run in enumerate(data["runs"])],
    }


def check_origin(origin: str) -> None:
    """Raise Usage unless KCIDB takes the lab's name."""
    if not re.fullmatch(r"[a-z0-9_]+", origin):
        raise Usage(f"--kcidb-origin '{origin}': KCIDB takes small letters, digits and _")


def patchset_hash(patches: Sequence[Path]) -> str:
    """KCIDB's hash of a list of patch files: sha256 of the newline-terminated sha256 of each; "" for none."""
    if not patches:
        return ""
    lines = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in patches)
    return hashlib.sha256(lines.encode()).hexdigest()


def _id(origin: str, key: str, *words: str) -> str:
    return f"{origin}:{key}-" + "-".join(re.sub(r"[^\w.]+", "_", word) for word in words)


def _checkout(
    series: catalog.Series, label: str, count: int | None, origin: str, key: str, begun: str
) -> dict[str, Any]:
    found = {
        "id": _id(origin, key, label),
        "origin": origin,
        "tree_name": series.name,
        "valid": True,
        "comment": f"{series.name}: {label}",
        "start_time": begun,
    }
    if count is not None:
        found["git_commit_name"] = series.tag
        found["patchset_hash"] = patchset_hash(series.patches[:count])
    return found


def _build(data: Results, build: tuple[str, str, str], origin: str, key: str, begun: str) -> dict[str, Any]:
    label, config, arch = build
    compiler = next(
        (version for name, version in data["host"]["tools"].items() if name.endswith("gcc") and version), ""
    )
    return {
        "id": _id(origin, key, label, config),
        "checkout_id": _id(origin, key, label),
        "origin": origin,
        "architecture": {"arm64": "aarch64"}.get(arch, arch),
        "config_name": config,
        "compiler": compiler,
        "start_time": begun,
        "status": "PASS",
        "misc": {"source": (data["made"]["ids"].get("kernels") or {}).get(label)},
    }


def _test(data: Results, run: Run, number: int, origin: str, key: str, begun: str) -> dict[str, Any]:
    words = [run["test"], run["metric"]] + [f"iteration-{run['iteration']}"] * (run["iteration"] is not None)
    where = _COMMENT[run["accel"]]
    return {
        "id": _id(origin, key, "test", str(number)),
        "build_id": _id(origin, key, run["kernel"], run["config"]),
        "origin": origin,
        "start_time": begun,
        "status": "DONE",
        "path": ".".join(["kvm", *words, f"vcpus-{run['vcpus']}"]),
        "comment": f"{run['metric']}, {run['vcpus']} vCPUs, {run['clock']} time, {where}",
        "environment": {"comment": f"{data['host']['cpu']}, {data['host']['os']}"},
        "number": {"value": statistics.median(run["samples"]), **({"unit": "s"} if run["unit"] == "s" else {})},
        "misc": {name: value for name, value in run.items() if name in _MISC},
    }
