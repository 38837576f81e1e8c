"""Mutants of the model: planted in the kernel's code, and whether the scenario that must find each does.

patches/mutants/mutants.yaml has the scenario. A mutant's patch is for what the model compiles, and its first line is the mistake.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kvmseries.base import paths, proc
from kvmseries.base.errors import Fail
from kvmseries.source import catalog, trees
from kvmseries.verify import mutants as table
from kvmseries.verify.mutants import Mutant

from . import build, runs, source


def arch(mutant: Mutant) -> str:
    """The name of the Arch whose code a mutant of the model changes: on x86 its own name begins so."""
    of = source.of_series(mutant.series)
    return next((name for name in of if mutant.name.startswith(f"{name}-")), of[0])


def mistake(mutant: Mutant) -> str:
    """What is wrong with a mutant of the model."""
    return mutant.path.read_text(encoding="utf-8").partition("\n")[0]


def every(arches: Iterable[str] = source.of_series("v5.10")) -> list[Mutant]:
    """The Mutants of the model for these architectures."""
    return [mutant for mutant in table.load() if mutant.kind and arch(mutant) in arches]


def plant(tree: Path, patch: Path, folder: Path, series: str = "v5.10") -> Path:
    """Copy what is compiled of the kernel in `tree`, which is of a series, to `folder`, and apply the file `patch` to it."""
    paths.remove(folder)
    files = source.files(*(source.ARCHES[name] for name in source.of_series(series)))
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.checked(tree, name), folder / name)
    # Not as a part of the repository that out/ is in.
    where = {"GIT_CEILING_DIRECTORIES": str(folder.absolute().parent)}
    only = [f"--include={name}" for name in files]
    status, text = proc.attempt(["git", "apply", *only, str(patch.absolute())], "git apply", cwd=folder, env=where)
    if status:
        raise Fail(f"{patch.name} does not apply to what the model compiles of {tree}: {proc.reason(text)}")
    if all((tree / name).read_bytes() == (folder / name).read_bytes() for name in files):
        raise Fail(f"{patch.name} changes nothing that the model compiles")
    return folder


def planted(tree: Path, patch: Path, folder: Path, series: str) -> Path:
    """As plant(), and it must change one of the declarations that are cut out of these files."""
    plant(tree, patch, folder, series)
    arches = [source.ARCHES[name] for name in source.of_series(series)]
    if all(source.compiled(tree, of) == source.compiled(folder, of) for of in arches):
        raise Fail(f"{patch.name} changes no function that the model compiles")
    return folder


class Outcome(NamedTuple):
    """What became of a Mutant of the model."""

    mutant: Mutant
    result: runs.Result | None  # runs.Result, None if no scenario is to find it
    seconds: float = 0.0  # from planting and compiling it to the verdict

    @property
    def killed(self) -> bool:
        """Whether it was found. A scenario that no longer reaches its race has noticed, too."""
        return self.result is not None and self.result.verdict in ("found", "nothing")

    @property
    def good(self) -> bool:
        """Whether it is as the table says."""
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
    if mutant.milestone:
        series = catalog.load(mutant.series)
        tree = trees.worktree(series, series.upto(mutant.milestone), paths.own_tree()).path
    folder = planted(tree, mutant.path, paths.out("model", "mutants", mutant.series, mutant.name), mutant.series)
    library = build.library(folder, arch(mutant))
    if not mutant.scenario:
        return Outcome(mutant, None, time.monotonic() - begun)
    result = runs.run(program, library, mutant.scenario, "loom", *runs.bounded(mutant.bound))
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
