"""What was built from what: a JSON file next to it, which is written last."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from . import files


def read(path: Path) -> dict[str, Any]:
    """What the stamp says; {} if there is none, or if an interrupted run has left a part of it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def current(path: Path, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """What the stamp says, if what it is of was made from `wanted`; None if not."""
    found = read(path)
    return found if found and {name: found.get(name) for name in wanted} == wanted else None


def digest(*parts: object) -> str:
    """A hash of `parts`, of what JSON has."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def write(path: Path, wanted: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Say that it was made from `wanted`; more: what else to know of it.  Returns all of it."""
    data = {**wanted, **more}
    files.write_json(path, data, indent=None)
    return data
