"""Which lines and branches of the kernel's functions the scenarios reach: gcov on a library of its own."""

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kvmseries.base import paths, proc
from kvmseries.base.errors import Fail

from . import build, runs, source

# Of a scenario: what it reaches it reaches early.
EXECUTIONS = 1000


class Function(NamedTuple):
    """A function of the kernel's."""

    path: str
    name: str
    lines: int  # that have code
    missed: tuple[int, ...]  # numbers of the lines never run
    branches: int = 0
    taken: int = 0  # of the branches

    @property
    def text(self) -> str:
        """One line about what is not run."""
        if len(self.missed) == self.lines:
            return f"{self.path}: {self.name}() is never run"
        return f"{self.path}: {self.name}(): lines {', '.join(map(str, self.missed))}"


@contextlib.contextmanager
def _collected(tree: Path, arch: str, what: str) -> Iterator[Path]:
    """A directory of its own with what is compiled of the kernel in `tree`."""
    folder = paths.out("model", f"{what}-{arch}")
    with paths.locked(folder.name):
        paths.remove(folder)
        folder.mkdir(parents=True)
        source.collect(tree, folder, source.ARCHES[arch])
        yield folder


def measure(tree: Path, program: Path, arch: str) -> list[Function]:
    """All Functions that are compiled of the kernel in `tree` for the architecture `arch`, after every short scenario of the checker
    `program` has been run by loom, with its own bound, EXECUTIONS at most."""
    with _collected(tree, arch, "coverage") as folder:
        build.compile_in(folder, source.ARCHES[arch], "--coverage")

        def run(scenario: runs.Scenario) -> None:
            limits = [f"limit={EXECUTIONS}", *runs.bounded(scenario.bound)]
            runs.run(program, folder / "code.so", scenario.name, "loom", *limits)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, [s for s in runs.scenarios(program) if s.kind == "short" and arch in s.arches]))
        found = []
        for unit in (Path(name).stem for name in (*source.ARCHES[arch].units, *source.ARCHES[arch].shims)):
            text = proc.run(
                ["gcov", "--json-format", "--branch-probabilities", "--stdout", f"{unit}.o"], "gcov", cwd=folder
            )
            found += parse(text, str(folder))
    if not found:
        raise Fail("gcov has nothing to say of the kernel's functions")
    return sorted(found)


def parse(text: str, folder: str) -> list[Function]:
    """The Functions of the kernel's in gcov's JSON; `folder` is where pgtable.c was compiled."""
    found = []
    for file in json.loads(text)["files"]:
        path = file["file"].removeprefix(f"{folder}/")
        if path.startswith("/") or path.endswith(".inc"):
            continue
        for function in file["functions"]:
            name, its = function["name"], range(function["start_line"], function["end_line"] + 1)
            lines: Counter[int] = Counter()
            branches: list[int] = []
            for line in file["lines"]:
                if line.get("function_name", name) == name and line["line_number"] in its:
                    lines[line["line_number"]] += line["count"]
                    branches += [branch["count"] for branch in line.get("branches", []) if not branch["throw"]]
            missed = tuple(sorted(number for number, count in lines.items() if not count))
            found.append(Function(path, name, len(lines), missed, len(branches), sum(map(bool, branches))))
    return found


def _counts(functions: Sequence[Function]) -> tuple[int, int, int, int]:
    """(lines, lines that are run, branches, branches that are taken)"""
    lines, missed = sum(f.lines for f in functions), sum(len(f.missed) for f in functions)
    return lines, lines - missed, sum(f.branches for f in functions), sum(f.taken for f in functions)


def percent(functions: Sequence[Function]) -> tuple[float, float]:
    """How much is run, of the lines and of the branches."""
    lines, run, branches, taken = _counts(functions)
    return 100 * run / lines, 100 * taken / max(branches, 1)


def summary(functions: Sequence[Function]) -> str:
    """A line: how much is run."""
    lines, run, branches, taken = _counts(functions)
    of_lines, of_branches = percent(functions)
    never = sum(len(function.missed) == function.lines for function in functions)
    return (
        f"{run} of {lines} lines run ({of_lines:.0f} %), {taken} of {branches} branches taken"
        f"{f' ({of_branches:.0f} %)' if branches else ''}, of {len(functions)} functions; {never} are never run"
    )


def never_lost(tree: Path, arch: str, arms: Iterable[str]) -> list[str]:
    """Where the code that is compiled of the kernel in `tree` for `arch` has a cmpxchg, "file:line", that no scenario has lost:
    `arms` are those that scenarios reached (runs.Result.arms)."""
    with _collected(tree, arch, "races") as folder:
        texts = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.*")) if path.is_file()]
    reached = {arm.rpartition(" ")[2] for arm in arms if arm.startswith("lost cmpxchg")}
    return sorted({place for name, text in texts for place in exchanges(name, text)} - reached)


def exchanges(name: str, text: str) -> set[str]:
    """The places "file:line" of each cmpxchg in the text of the file `name`; #line says where a part of it is from."""
    found: set[str] = set()
    number = 0
    for line in text.splitlines():
        number += 1
        moved = re.match(r'#line (\d+) "(?:.*/)?([^/"]+)"', line)
        if moved:
            number, name = int(moved[1]) - 1, moved[2]
        elif re.search(r"\b(?:try_)?cmpxchg\w*\(", line) and not line.lstrip().startswith("*"):
            found.add(f"{name}:{number}")
    return found
