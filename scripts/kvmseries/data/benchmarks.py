"""The benchmarks: tools-testing-selftests-kvm/bench.yaml, whose head says what its keys mean, and bench.schema.json is its form."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from ..base import paths
from . import schema

FORM = paths.TESTS / "bench.schema.json"


def load() -> dict[str, dict[str, Any]]:
    """{test: its entry}, not to be changed.  Raises Fail with one line."""
    path = paths.TESTS / "bench.yaml"
    return _read(path, path.stat().st_mtime_ns if path.exists() else 0)


@functools.lru_cache(maxsize=1)
def _read(path: Path, _changed: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = schema.read(path, FORM)
    return found
