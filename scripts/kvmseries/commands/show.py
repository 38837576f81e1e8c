"""What commands print, and where they write."""

import os
import sys

from rich.console import Console

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say


def console(width=120):
    """Standard output: as wide as the terminal, `width` columns where it is none."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else width)


def table(view):
    """Print a table of rich."""
    console().print(view)


def lines(texts):
    """Print lines."""
    for line in texts:
        print(line)


def check_writable(target, option="--json"):
    """Find out before minutes of work that its result, which `option` names, cannot be kept."""
    if target.is_dir():
        raise Usage(f"{option} {target} is a directory: name a file")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise paths.os_fail(error, target.parent) from None
    if not os.access(target.parent, os.W_OK):
        raise Fail(f"no permission to write {target.parent}: choose another {option}")


def complain(complaints, where):
    """Say each of `complaints`, lines, and raise Fail if there is one."""
    for complaint in complaints:
        say(complaint)
    if complaints:
        raise Fail(f"{len(complaints)} complaint{'s' if len(complaints) > 1 else ''}, the first: {complaints[0]} "
                   f"(see {where})")
