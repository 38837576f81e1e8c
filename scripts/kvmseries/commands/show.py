"""What commands print, and where they write."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console, RenderableType

from ..base.errors import Fail, Usage
from ..base.progress import say


def console(width: int = 120) -> Console:
    """Standard output: as wide as the terminal, `width` columns where it is none."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else width)


def table(view: RenderableType) -> None:
    """Print a table of rich."""
    console().print(view)


def lines(texts: Iterable[str]) -> None:
    """Print lines."""
    for line in texts:
        print(line)


def check_writable(target: Path, option: str = "--json") -> None:
    """Find out before minutes of work that its result, which `option` names, cannot be kept.  Makes no directory."""
    if target.is_dir():
        raise Usage(f"{option} {target} is a directory: name a file")
    if not target.parent.is_dir():
        raise Usage(f"{option} {target}: there is no directory {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise Fail(f"no permission to write {target.parent}: choose another {option}")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise Fail(f"no file can be made in {target.parent} ({error.strerror}): choose another {option}") from None


def complain(complaints: Sequence[str], where: object) -> None:
    """Say each of `complaints`, lines, and raise Fail if there is one."""
    for complaint in complaints:
        say(complaint)
    if complaints:
        raise Fail(
            f"{len(complaints)} complaint{'s' if len(complaints) > 1 else ''}, the first: {complaints[0]} (see {where})"
        )
