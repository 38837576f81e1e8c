"""Files that are there whole or not at all."""

import os
from pathlib import Path

from .errors import Fail


def write_atomically(path, data):
    """Write the bytes `data` to `path`, whose folder is made: readers see the old file or the new
    one.  Raises Fail with one line if that is not possible."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(data)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Fail(f"cannot write {path}: {error.strerror}") from None
    return path
