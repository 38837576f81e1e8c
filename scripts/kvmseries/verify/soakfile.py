"""The file of a soak: parts that have run, and what they add up to.

    {"schema": 2, "series": "v5.10", "source": {arch: id}, "sum": {...}, "parts": [...]}

`source` is what the sum is of: parts of another source are kept and not added.  A part is one boot.
Documentation/soak.schema.json says what all of it means.  The file is read, added to and replaced as a whole under a
lock, so that an interrupted run loses no part and two runs may add to one file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from ..base import files, paths
from ..base.errors import Fail
from ..base.progress import say
from ..data import schema
from ..data.shape import Host
from . import soakcounts

SCHEMA = 2
FORMAT = paths.ROOT / "Documentation" / "soak.schema.json"


class Where(TypedDict):
    """The keys of a part that say where it ran."""

    qemu: str
    host: Host


class How(TypedDict):
    """The keys of a part that say how it went."""

    seconds: float
    outcome: str
    complaints: list[str]
    reports: list[str]
    known: list[str]
    counts: dict[str, int]


class Part(Where, How):
    """A part: FORMAT says what the keys mean."""

    when: str
    arch: str
    configuration: str
    part: str
    source: str
    tests: str
    cpu: str
    accel: str
    config: str
    params: list[str]
    debug: dict[str, str]
    kernel: str
    commands: list[str]
    log: str


def load(path: str | Path, series: str) -> list[Part]:
    """The parts in `path` of a soak of `series` (its name); none if there is no such file.

    Raises Fail, in one line, for what is no such file, is cut short, or has another schema.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Fail(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Fail(f"{path} is not a file of a soak: it is not text") from None
    other = "name another file with --json, or remove it"
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise Fail(f"{path} is cut short, or not JSON: {other}") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise Fail(f"{path} is not a file of a soak: {other}")
    if data["schema"] != SCHEMA:
        raise Fail(f"{path} has schema {data['schema']!r}, this tool adds to {SCHEMA}: {other}")
    if data.get("series") != series:
        raise Fail(f"{path} is not the file of a soak of {series}: {other}")
    wrong = schema.wrong(data, FORMAT)
    if wrong:
        raise Fail(f"{path}: {wrong}: {other}")
    return data["parts"]


def of_source(parts: Iterable[Part], source: Mapping[str, str]) -> list[Part]:
    """The parts that are of `source`, {arch: id}."""
    return [part for part in parts if source.get(part["arch"]) == part["source"]]


def add_up(parts: Sequence[Part], source: Mapping[str, str], names: Iterable[str]) -> dict[str, object]:
    """What the parts of `source` add up to, in all and for each configuration of `names`."""
    mine = of_source(parts, source)
    return {
        **_sum(mine),
        "parts_of_another_source": len(parts) - len(mine),
        "configurations": {name: _sum([part for part in mine if part["configuration"] == name]) for name in names},
    }


def _sum(parts: Sequence[Part]) -> dict[str, object]:
    return {
        "hours": round(sum(part["seconds"] for part in parts) / 3600, 3),
        "parts": len(parts),
        "failed": sum(part["outcome"] != "ok" for part in parts),
        "reports": sum(len(part["reports"]) for part in parts),
        "known_reports": sum(len(part["known"]) for part in parts),
        "counts": soakcounts.total(part["counts"] for part in parts),
    }


def append(path: str | Path, series: str, source: Mapping[str, str], names: Iterable[str], part: Part) -> list[Part]:
    """Add `part` to `path`, and sum up anew; returns all parts.  The file is there whole or as it was."""
    path = Path(path).absolute()
    wrong = schema.wrong(part, FORMAT, "part")
    assert not wrong, wrong
    with paths.locked(f"soak-{path.name}", say):
        parts = [*load(path, series), part]
        save(path, series, source, names, parts)
    return parts


def save(path: str | Path, series: str, source: Mapping[str, str], names: Iterable[str], parts: Sequence[Part]) -> None:
    """Write `parts`, a line each, and their sum; raises Fail and leaves `path` as it was if it cannot."""
    data = {"schema": SCHEMA, "series": series, "source": source, "sum": add_up(parts, source, names), "parts": parts}
    files.write(path, files.lines(data, "parts"))
