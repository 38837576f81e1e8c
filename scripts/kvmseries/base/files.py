"""Files that are there whole or not at all, and JSON in them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import paths


@contextlib.contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yields the path of a new file in the folder of `path`, which is made; it becomes `path` when the block ends, and
    is removed when the block fails.  Readers see the old file or the new one.  Raises Fail, one line, where the
    system refuses."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            os.replace(part, path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    except OSError as error:
        if error.filename == str(part):
            error.filename = str(path)
        raise paths.os_fail(error, path) from None


def write(path: str | Path, data: str | bytes) -> Path:
    """Write `data` (text as UTF-8) to `path`, see whole()."""
    with whole(path) as part:
        part.write_bytes(data.encode() if isinstance(data, str) else data)
    return Path(path)


def write_json(path: str | Path, data: Any, **keys: Any) -> Path:
    """Write `data` as JSON, indented by 1; keys: of json.dumps."""
    return write(path, json.dumps(data, **{"indent": 1, **keys}) + "\n")


def lines(data: dict[str, Any], *keys: str) -> str:
    """JSON of `data` with a line for each element of the lists data[key] of `keys`, which come last in that order, if
    they are there: small, and a change of one element is a change of one line."""
    text = json.dumps({name: value for name, value in data.items() if name not in keys}, indent=1)
    for key in keys:
        if key in data:
            rows = ",\n".join("  " + json.dumps(row) for row in data[key])
            text = f'{text[:-2]},\n "{key}": [\n{rows}\n ]\n}}'
    return text + "\n"
