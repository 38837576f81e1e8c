"""Single mistakes in the kernel's code: model/mutants/*.patch, and whether the scenario that must find one does.

A patch begins with lines `Mistake:` (a sentence), `Kind:`, `Scenario:` (or none), `Engine:` (the checker's
arguments) and, where no scenario can find it, `Survives:` with the reason. `Milestone:` says that it is a mistake in the code of
that milestone, and not in that of the whole series.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kvmseries.base import paths, proc
from kvmseries.base.errors import Fail
from kvmseries.source import catalog, trees

from . import build, ROOM, runs, source

FOLDER = ROOM / "mutants"
_FIELDS = ("Mistake", "Kind", "Scenario", "Engine")


class Mutant(NamedTuple):
    """One mistake."""

    path: Path
    mistake: str
    kind: str
    scenario: str  # "" for none
    engine: tuple[str, ...]  # arguments of the checker
    survives: str  # why no scenario finds it
    milestone: str = ""  # "": of the whole series

    @property
    def name(self) -> str:
        """The file's name, without suffix."""
        return self.path.stem

    @property
    def arch(self) -> str:
        """The architecture whose code it changes: the name says so."""
        return next(
            (arch for start, arch in (("x86-", "x86"), ("v7.3-", "arm64-v7.3")) if self.name.startswith(start)), "arm64"
        )


def load(path: str | Path) -> Mutant:
    """The Mutant in the file `path`; Fail if a line of its head is missing."""
    path = Path(path)
    head = path.read_text(encoding="utf-8").partition("\n\n")[0]
    found = dict(line.partition(": ")[::2] for line in head.splitlines())
    missing = [field for field in _FIELDS if not found.get(field)]
    if missing:
        raise Fail(f"{path.name}: it has no line '{missing[0]}: ...' at its beginning")
    scenario = "" if found["Scenario"] == "none" else found["Scenario"]
    if (not scenario) != bool(found.get("Survives")):
        raise Fail(f"{path.name}: either a scenario must find it, or 'Survives: ...' says why none does")
    return Mutant(
        path,
        found["Mistake"],
        found["Kind"],
        scenario,
        tuple(found["Engine"].split()),
        found.get("Survives", ""),
        found.get("Milestone", ""),
    )


def every(arches: Iterable[str] = source.of_series("v5.10")) -> list[Mutant]:
    """All Mutants of these architectures, by name."""
    found = [load(path) for path in sorted(FOLDER.glob("*.patch"))]
    return [mutant for mutant in found if mutant.arch in arches]


def plant(tree: Path, patch: str | Path, folder: Path, series: str = "v5.10") -> Path:
    """Copy what is compiled of the kernel in `tree`, which is of a series, to `folder`, and apply the file `patch` to it."""
    paths.remove(folder)
    files = source.files(*(source.ARCHES[name] for name in source.of_series(series)))
    for name in files:
        if not (tree / name).is_file():
            raise Fail(f"{tree} has no {name}: the model needs a tree made by scripts/series apply")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / name, folder / name)
    # Not as a part of the repository that out/ is in.
    where = {"GIT_CEILING_DIRECTORIES": str(Path(folder).absolute().parent)}
    status, text = proc.attempt(
        ["git", "apply", *_only(patch, files), str(Path(patch).absolute())], "git apply", cwd=folder, env=where
    )
    if status:
        raise Fail(f"{Path(patch).name} does not apply to what the model compiles of {tree}: {proc.reason(text)}")
    if all((tree / name).read_bytes() == (folder / name).read_bytes() for name in files):
        raise Fail(f"{Path(patch).name} changes nothing that the model compiles")
    return folder


def _only(patch: str | Path, files: Iterable[str]) -> list[str]:
    """The part of a patch that is about files which are compiled."""
    known = set(files)
    touched = re.findall(r"^\+\+\+ b/(\S+)", Path(patch).read_text(encoding="utf-8", errors="replace"), re.M)
    return [f"--exclude={name}" for name in touched if name not in known]


class Outcome(NamedTuple):
    """What became of a Mutant."""

    mutant: Mutant
    result: runs.Result | None  # runs.Result, None if no scenario is to find it
    seconds: float = 0.0  # from planting and compiling it to the verdict

    @property
    def killed(self) -> bool:
        """Whether it was found. A scenario that no longer reaches its race has noticed, too."""
        return self.result is not None and self.result.verdict in ("found", "nothing")

    @property
    def good(self) -> bool:
        """Whether it is as its patch says."""
        return self.killed or bool(self.mutant.survives)

    @property
    def line(self) -> str:
        """One line for the terminal."""
        mutant, result = self.mutant, self.result
        if result is None:
            return f"{mutant.name:31}survives: {mutant.survives}"
        if not self.killed:
            return f"{mutant.name:31}NOT FOUND by {mutant.scenario} ({result.line.split(None, 1)[1]})"
        return f"{mutant.name:31}{mutant.scenario:30}{result.executions:>6,} {self.seconds:6.1f} s  {self.by}"

    @property
    def by(self) -> str:
        """What of its scenario has found it: an invariant that does not hold, or a race that is not reached. "" if it was not."""
        if self.result is None or not self.killed:
            return ""
        return self.result.invariant if self.result.verdict == "found" else f"{self.result.invariant} not reached"


def judge(mutant: Mutant, tree: Path, program: Path) -> Outcome:
    """The Outcome of one Mutant, planted into the kernel in `tree`, or into that of its milestone."""
    begun = time.monotonic()
    name = source.ARCHES[mutant.arch].series
    if mutant.milestone:
        series = catalog.load(name)
        tree = trees.worktree(series, series.upto(mutant.milestone), paths.own_tree()).path
    folder = plant(tree, mutant.path, paths.out("model", "planted", mutant.name), name)
    library = build.library(folder, mutant.arch)
    if not mutant.scenario:
        return Outcome(mutant, None, time.monotonic() - begun)
    result = runs.run(program, library, mutant.scenario, *mutant.engine)
    return Outcome(mutant, result, time.monotonic() - begun)


def judge_all(
    mutants: Iterable[Mutant], tree: Path, program: Path, told: Callable[[Outcome], object] = lambda outcome: None
) -> list[Outcome]:
    """The Outcomes of `mutants`, as many at a time as there are CPUs; `told` gets each, in order."""
    outcomes = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for outcome in pool.map(lambda m: judge(m, tree, program), mutants):
            told(outcome)
            outcomes.append(outcome)
    return outcomes
