"""Published figures: the tables of published patch series that our runs are compared with.

tools-testing-selftests-kvm/published.yaml has them, published-aging.yaml those of aging while vCPUs fault
memory in; each says what its keys mean.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from ..base import paths
from ..base.errors import Fail
from .shape import Kind

FILE = paths.TESTS / "published.yaml"
AGING_FILE = paths.TESTS / "published-aging.yaml"
# vCPUs -> s, or a quotient of such.
Times = dict[int, float]


@dataclass(frozen=True)
class Column:
    """One column of one table; every field but `id` is a key of the file."""

    id: str
    work: str  # "Zhang 2022"
    what: str
    machine: str
    command: str
    series: str
    arch: str
    test: str
    kernels: tuple[str, ...]  # labels of the kernels of ours that stand for it
    args: dict[str, str | None]  # option -> value (text) or None
    without: tuple[str, ...]  # options
    metric: str
    iteration: int | None  # number or None
    pages: int  # of 4 KiB, a vCPU
    fitted: bool
    seconds: dict[int, float]  # vCPUs -> seconds; has 1

    @property
    def growth(self) -> dict[int, float]:
        """vCPUs -> time by the time of 1 vCPU."""
        return {vcpus: seconds / self.seconds[1] for vcpus, seconds in self.seconds.items()}

    def page_ns(self, vcpus: int) -> float | None:
        """Nanoseconds a page of one vCPU, or None if that was not published."""
        return self.seconds[vcpus] / self.pages * 1e9 if vcpus in self.seconds else None

    def fits(self, series: str, arch: str, test: str, args: str) -> bool:
        """True if runs with the arguments `args` (text) are runs of what was published."""
        if (series, arch, test) != (self.series, self.arch, self.test):
            return False
        found = options(args)
        return not any(name in found for name in self.without) and all(
            name in found and found[name] == value for name, value in self.args.items()
        )


def options(args: str) -> dict[str, str | None]:
    """Options of a test's command line: {"-b": "2G", "-g": None}."""
    try:
        words = shlex.split(args)
    except ValueError:  # a quote without its pair
        words = args.split()
    found, last = {}, None
    for word in words:
        if len(word) > 1 and word[0] == "-" and not word[1].isdigit():
            last = word[:2] if word[1] != "-" else word
            found[last] = word[2:] or None if last != word else None
        elif last:
            found[last], last = word, None
    return found


KINDS: dict[str, Kind] = {
    "work": str,
    "what": str,
    "machine": str,
    "command": str,
    "series": str,
    "arch": str,
    "test": str,
    "kernels": list,
    "args": dict,
    "without": list,
    "metric": str,
    "iteration": (int, type(None)),
    "pages": int,
    "fitted": bool,
    "seconds": dict,
}
assert set(KINDS) | {"id"} == {field.name for field in fields(Column)}


def load(path: Path = FILE) -> tuple[Column, ...]:
    """The Columns of the file `path`, in its order.  Raises Fail with one line."""
    return tuple(_column(where, name, entry) for where, name, entry in entries(path, KINDS))


def entries(path: Path, kinds: Mapping[str, Kind]) -> list[tuple[str, str, dict[str, Any]]]:
    """[(words for a message, name, entry)] of the YAML file `path`: each entry a dict that has the keys
    of `kinds`, and values of these types, and no others.  Raises Fail with one line."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Fail(f"cannot read {path}: {str(error).splitlines()[0]}") from None
    if not isinstance(data, dict):
        raise Fail(f"{path} has no entries")
    for name, entry in data.items():
        where = f"{path}: {name}"
        if not isinstance(entry, dict):
            raise Fail(f"{where} is not an entry with keys")
        for key, kind in kinds.items():
            if key not in entry:
                raise Fail(f"{where} has no '{key}'")
            if not isinstance(entry[key], kind) or isinstance(entry[key], bool) != (kind is bool):
                raise Fail(f"{where}: '{key}' is {entry[key]!r}")
        unknown = set(entry) - set(kinds)
        if unknown:
            raise Fail(f"{where}: unknown key '{min(map(str, unknown))}'")
    return [(f"{path}: {name}", name, entry) for name, entry in data.items()]


def check_times(where: str, key: str, times: dict[object, object]) -> None:
    """Raise Fail unless the dict `times` is of numbers of vCPUs to seconds."""
    for vcpus, seconds in times.items():
        if (
            isinstance(vcpus, bool)
            or not isinstance(vcpus, int)
            or vcpus < 1
            or isinstance(seconds, bool)
            or not isinstance(seconds, (int, float))
            or not 0 < seconds < 1e6
        ):
            raise Fail(f"{where}: '{key}' has {vcpus!r}: {seconds!r}")


def _column(where: str, name: str, entry: dict[str, Any]) -> Column:
    check_times(where, "seconds", entry["seconds"])
    if 1 not in entry["seconds"]:
        raise Fail(f"{where}: 'seconds' has no 1 vCPU, by which growth is taken")
    if entry["pages"] < 1 or not entry["kernels"]:
        raise Fail(f"{where} has no pages or no kernels")
    args = {str(key): None if value is None else str(value) for key, value in entry["args"].items()}
    return Column(
        str(name), **{**entry, "args": args, "kernels": tuple(entry["kernels"]), "without": tuple(entry["without"])}
    )


@dataclass(frozen=True)
class Aging:
    """One published table; every field but `id` is a key of the file.  Times: vCPUs -> seconds."""

    id: str
    work: str  # "Zhang 2022"
    message: str
    what: str
    machine: str
    workload: str
    locked: Times  # an aging pass
    lockless: Times  # has the vCPUs of locked
    vcpu_none: Times  # wall time of the vCPUs; {} if not published
    vcpu_locked: Times
    vcpu_lockless: Times

    @property
    def passes(self) -> Times:
        """vCPUs -> time of a lockless pass by that of a locked one."""
        return _quotient(self.lockless, self.locked)

    @property
    def slowdown(self) -> dict[str, Times]:
        """{"locked": ..., "lockless": ...}: vCPUs -> vCPU time with such aging by that without; {}
        where either was not published."""
        return {
            "locked": _quotient(self.vcpu_locked, self.vcpu_none),
            "lockless": _quotient(self.vcpu_lockless, self.vcpu_none),
        }


def _quotient(above: Times, below: Times) -> Times:
    return {vcpus: above[vcpus] / below[vcpus] for vcpus in sorted(above) if vcpus in below}


AGING_KINDS: dict[str, Kind] = {
    "work": str,
    "message": str,
    "what": str,
    "machine": str,
    "workload": str,
    "locked": dict,
    "lockless": dict,
    "vcpu_none": dict,
    "vcpu_locked": dict,
    "vcpu_lockless": dict,
}
assert set(AGING_KINDS) | {"id"} == {field.name for field in fields(Aging)}


def load_aging(path: Path = AGING_FILE) -> tuple[Aging, ...]:
    """The Agings of the file `path`, in its order.  Raises Fail with one line."""
    return tuple(_aging(where, name, entry) for where, name, entry in entries(path, AGING_KINDS))


def _aging(where: str, name: str, entry: dict[str, Any]) -> Aging:
    for key, kind in AGING_KINDS.items():
        if kind is dict:
            check_times(where, key, entry[key])
    if not entry["locked"] or set(entry["locked"]) != set(entry["lockless"]):
        raise Fail(f"{where}: 'locked' and 'lockless' are not of the same vCPUs")
    return Aging(str(name), **entry)
