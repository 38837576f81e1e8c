"""Published figures: the tables of published patch series that our runs are compared with.

tools-testing-selftests-kvm/published.yaml has them, published-aging.yaml those of aging while vCPUs fault
memory in; each says what its keys mean, and published.schema.yaml is their form.
"""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import paths
from ..base.errors import Fail
from . import schema
from .shape import Run

FILE = paths.TESTS / "published.yaml"
AGING_FILE = paths.TESTS / "published-aging.yaml"
FORMAT = paths.TESTS / "published.schema.yaml"


@dataclass(frozen=True)
class Column:
    """One column of one table; every field but `id` is a key of the file."""

    id: str
    what: str  # "Zhang 2022, base"
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


def pages(args: str) -> int | None:
    """Pages of 4 KiB that a vCPU has by the arguments of a test, its -b; None if they do not say."""
    size = re.fullmatch(r"(\d+)([kmgt]?)", options(args).get("-b") or "", re.I | re.A)
    return int(size[1]) * 1024 ** " kmgt".index(size[2].lower() or " ") // 4096 or None if size else None


def pages_of(run: Run) -> int:
    """The pages of 4 KiB that each vCPU of a run has, by its -b.  Raises Fail if it does not say."""
    found = pages(run["args"])
    if not found:
        raise Fail(f"{run['test']} {run['args']}: no -b SIZE that says how many pages a vCPU has")
    return found


@functools.lru_cache(maxsize=None)
def load(path: Path = FILE) -> tuple[Column, ...]:
    """The Columns of the file `path`, in its order.  Raises Fail with one line."""
    return tuple(_column(name, entry) for name, entry in schema.read(path, FORMAT, "columns").items())


def _column(name: str, entry: dict[str, Any]) -> Column:
    made: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    made["args"] = {key: None if value is None else str(value) for key, value in entry["args"].items()}
    made["seconds"] = {int(vcpus): seconds for vcpus, seconds in entry["seconds"].items()}
    return Column(name, **made)


@functools.lru_cache(maxsize=None)
def slowdowns(path: Path = AGING_FILE) -> dict[str, dict[str, dict[int, float]]]:
    """{title: {"locked", "lockless": {vCPUs: vCPU time with such aging by that without}}}.  Raises Fail with one line."""
    return {
        entry["what"]: {
            how: {int(vcpus): row[number] / row[0] for vcpus, row in entry["seconds"].items()}
            for number, how in enumerate(("locked", "lockless"), 1)
        }
        for entry in schema.read(path, FORMAT, "agings").values()
    }
