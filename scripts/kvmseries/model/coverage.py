"""Which lines of the kernel's functions the scenarios reach: gcov on a library of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ..base import paths, proc
from ..base.errors import Fail
from . import build, runs, source


class Function(NamedTuple):
    """A function of the kernel's."""

    path: str
    name: str
    lines: int       # that have code
    missed: tuple[int, ...]  # numbers of the lines never run

    @property
    def text(self) -> str:
        """One line about what is not run."""
        if len(self.missed) == self.lines:
            return f"{self.path}: {self.name}() is never run"
        return f"{self.path}: {self.name}(): lines {', '.join(map(str, self.missed))}"


def measure(tree: Path, program: Path) -> list[Function]:
    """All Functions that are compiled of the kernel in `tree`, after every short scenario of the checker
    `program` has been run by loom, with its own bound."""
    folder = paths.out("model", "coverage")
    with paths.locked("model-coverage"):
        paths.remove(folder)
        folder.mkdir(parents=True)
        source.collect(tree, folder)
        build.compile_in(folder, "--coverage")
        def run(scenario: runs.Scenario) -> None:
            runs.run(program, folder / "code.so", scenario.name, "loom", *([] if scenario.bound == "all" else [f"bound={scenario.bound}"]))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, [s for s in runs.scenarios(program) if s.kind == "short"]))
        found = []
        for unit in ("pgtable", "vm", "ksm"):
            text = proc.run(["gcov", "--json-format", "--stdout", f"{unit}.o"], "gcov", cwd=folder)
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
            lines: dict[int, int] = {}
            for line in file["lines"]:
                if line.get("function_name", function["name"]) == function["name"] \
                        and function["start_line"] <= line["line_number"] <= function["end_line"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
            found.append(Function(path, function["name"], len(lines), tuple(sorted(n for n, count in lines.items() if not count))))
    return found


def summary(functions: Sequence[Function]) -> str:
    """A line: how much is run."""
    lines = sum(function.lines for function in functions)
    missed = sum(len(function.missed) for function in functions)
    never = sum(len(function.missed) == function.lines for function in functions)
    return (f"{lines - missed} of {lines} lines run ({100 * (lines - missed) / lines:.0f} %), of {len(functions)} functions; "
            f"{never} are never run")
