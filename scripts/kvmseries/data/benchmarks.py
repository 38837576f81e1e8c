"""The benchmarks and what they measure: tools-testing-selftests-kvm/bench.yaml, whose head says what its keys mean."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import paths
from . import schema

FORM = paths.TESTS / "bench.schema.yaml"
COMMON, MIGRATION = "every test", "migration"
# A head that says no more than the titles below it.
PLAIN = "time"
TIMES = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True)
class Column:
    """One entry of `metrics`; head is "" for what no table shows.  The head of bench.yaml says what the rest is."""

    name: str
    head: str
    title: str
    unit: str
    better: str
    main: bool = False
    sum: tuple[str, ...] = ()
    per: str = ""
    each: bool = False
    less: float = 0
    scale: float = 1
    alone: tuple[str, ...] = ()
    show: str = ""

    @property
    def timed(self) -> bool:
        """Whether it is a time."""
        return self.unit in TIMES


def _file() -> Path:
    return paths.TESTS / "bench.yaml"


def load() -> dict[str, dict[str, Any]]:
    """{test: its entry} of the selftests, not to be changed.  Raises Fail with one line."""
    return {test: entry for test, entry in _read(_file()).items() if test not in (COMMON, MIGRATION)}


def columns(test: str) -> dict[str, Column]:
    """{metric, or a pattern of it, or a name of its own: Column} of a test, or of COMMON; {} for an unknown test."""
    return _columns(_file(), test)


def metric(test: str, name: str) -> Column | None:
    """The Column of a metric that a test may have, or None."""
    for known in (columns(test), columns(COMMON)):
        for pattern, column in known.items():
            if not column.sum and (pattern == name or ("*" in pattern and fnmatch.fnmatchcase(name, pattern))):
                return column
    return None


def braces(text: str) -> list[str]:
    """["a_x", "b_x"] of "{a,b}_x"."""
    found = re.search(r"\{([^{}]*)\}", text)
    if not found:
        return [text]
    return [one for part in found[1].split(",") for one in braces(text[: found.start()] + part + text[found.end() :])]


@functools.lru_cache(maxsize=None)
def _columns(path: Path, test: str) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for group in _read(path).get(test, {}).get("metrics", ()):
        of = group["of"] if isinstance(group["of"], Mapping) else dict.fromkeys(group["of"], "")
        for pattern, entry in of.items():
            more = {"title": entry} if isinstance(entry, str) else entry
            made = {"unit": group["unit"], **more}
            made.setdefault("better", group.get("better", "less" if made["unit"] in TIMES else "none"))
            made = {key: tuple(value) if isinstance(value, list) else value for key, value in made.items()}
            for name in braces(pattern):
                found[name] = Column(
                    name=name, head=group.get("head", ""), **{**made, "title": made.get("title") or name}
                )
    return found


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = schema.read(path, FORM)
    return found


def counted(name: str) -> Column | None:
    """The Column of a metric that counts one phase of any test, such as "atomics.dirty", or None."""
    found = metric(COMMON, name) if "." in name else None
    return found if found and found.name.endswith(".*") else None
