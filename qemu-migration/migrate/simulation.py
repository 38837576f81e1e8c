"""The simulation of auto-converge that is one of QEMU's unit tests, without a build of QEMU: qemu-migration/simulation."""

from __future__ import annotations

import re
from pathlib import Path

from kvmseries.base import debian, paths, proc
from kvmseries.base.errors import Fail

ROOM = paths.ROOT / "qemu-migration/simulation"
TABLES = ROOM / "tables.txt"
# What it compiles of a tree.
CODE = "migration/auto-converge.c"
FILES = (CODE, "migration/auto-converge.h", "tests/unit/test-auto-converge.c", "tests/unit/test-auto-converge-sim.c")
_RULE = re.compile(r"^\|[-:|]+\|$")


def make(target: str, tree: Path, folder: Path, *variables: str) -> tuple[bool, str]:
    """Run `make TARGET` there, with the sources of `tree`; what it builds goes to `folder`.  variables: more for make's
    line, as "TESTS=test-auto-converge".  Returns (whether it ended well, what it printed)."""
    debian.install("qemu")
    for name in FILES:
        if not (tree / name).is_file():
            raise Fail(f"{tree} has no {name}: it takes a tree made by scripts/series apply")
    status, output = proc.attempt(
        ["make", "--no-print-directory", "-C", str(ROOM), target, f"QEMU={tree}", f"O={folder}", *variables],
        f"make {target} in {ROOM.name}",
    )
    return status == 0, output


def mutant(tree: Path, folder: Path, line: str, instead: str) -> Path:
    """Copy what is compiled of `tree` to `folder`, with `instead` in place of `line`, which is there once.  Returns the
    folder."""
    for name in FILES:
        text = (tree / name).read_text(encoding="utf-8")
        if name == CODE:
            if text.count(line) != 1:
                raise Fail(f"{CODE}: '{line.strip()}' is there {text.count(line)} times, and a mutant is to replace it")
            text = text.replace(line, instead)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def quoted(text: str) -> list[str]:
    """Rows of figures of the tables in `text` that have one in each column but the first."""
    rows = [line for line in text.splitlines() if line.startswith("| ") and not _RULE.match(line)]
    return [row for row in rows if all(re.fullmatch(r"[\d.]+|-", cell.strip()) for cell in row.split("|")[2:-1])]
