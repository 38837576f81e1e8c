"""Running scenarios: the checker's program once for each, its last line as a Result."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kvmseries.base.errors import Fail

from . import build, ROOM, source


class Scenario(NamedTuple):
    """What the checker can run."""

    name: str
    kind: str  # "short" for loom and shuttle, "long" for shuttle, "litmus": calibration
    bound: str  # loom's preemption bound, "all" for none
    threads: int
    arches: tuple[str, ...] = ("arm64",)  # names of source.ARCHES


class Result(NamedTuple):
    """What came of one scenario."""

    verdict: str  # "holds", "stopped": as far as the time allowed; "found"; "nothing": no race met; "engine"
    name: str
    executions: int
    seconds: float
    steps: int  # operations of an execution
    words: int  # words that threads share
    restarts: int
    invariant: str  # that does not hold
    text: str
    arms: tuple[str, ...]  # reached
    trace: str

    @property
    def good(self) -> bool:
        """Whether nothing was found, and something was looked at."""
        return self.verdict in ("holds", "stopped")

    @property
    def line(self) -> str:
        """One line for the terminal."""
        how = {
            "holds": "holds",
            "stopped": "holds so far",
            "found": f"FOUND {self.invariant}",
            "nothing": "HAS SHOWN NOTHING",
            "engine": "ENGINE",
        }[self.verdict]
        why = f": {self.text}" if self.text else ""
        if self.verdict == "nothing":
            why = f": never reached {self.invariant}"
        return f"{self.name:26}{self.executions:>9,} executions {self.seconds:7.1f} s  {how}{why}"


# A scenario that is not over in this time, in seconds, is stuck: in `make test` none takes a minute on an idle machine.
_LIMIT = 1800


def scenarios(program: Path) -> list[Scenario]:
    """All Scenarios that the checker `program` has."""
    text = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    fields = (line.split("\t") for line in text.splitlines())
    return [
        Scenario(name, kind, bound, int(threads), tuple(arches.split(",")))
        for name, kind, bound, threads, arches in fields
    ]


def declared() -> dict[str, tuple[str, ...]]:
    """{name of a scenario: names of source.ARCHES}, as the checker's source has them: without the calibration's."""
    found: dict[str, tuple[str, ...]] = {}
    for file, others in (("scenarios.rs", ("arm64", "arm64-v7.3")), ("scenarios_x86.rs", ("x86",))):
        text = (ROOM / "src" / file).read_text(encoding="utf-8")
        for name, kernel in re.findall(r'^    Scenario \{ name: "([^"]+)"(?:.* on: On::(\w+))?', text, re.M):
            found[name] = {"V5_10": ("arm64",), "V7_3": ("arm64-v7.3",)}.get(kernel, others)
    return found


def run(program: Path, library: Path, name: str, engine: str, *options: str) -> Result:
    """The Result of scenario `name` with `engine` ("loom", "random" or "pct"); options are the checker's,
    such as "bound=2".  Fail if the checker says that it cannot, or dies."""
    try:
        done = subprocess.run(
            [str(program), str(library), name, engine, *options, "trace"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT,
        )
    except subprocess.TimeoutExpired:
        raise Fail(f"model scenario {name} is not over after {_LIMIT} s") from None
    return parse(done.returncode, done.stdout, done.stderr, name)


def parse(status: int, output: str, errors: str, name: str) -> Result:
    """The Result that the checker's output says; Fail if it says none."""
    lines = output.splitlines()
    fields = lines[-1].split("\t") if lines else []
    if len(fields) != 10:
        said = [line for line in errors.splitlines() if line.strip()]
        raise Fail(
            f"model scenario {name}: the checker ended with status {status}"
            f"{': ' + said[-1].removeprefix('s2check: ') if said else ', and said nothing'}"
        )
    return Result(
        fields[0],
        fields[1],
        int(fields[2]),
        float(fields[3]),
        int(fields[4]),
        int(fields[5]),
        int(fields[6]),
        fields[7],
        fields[8],
        tuple(a for a in fields[9].split("; ") if a),
        "\n".join(lines[:-1]),
    )


def of(name: str, program: Path) -> Scenario:
    """The Scenario of that name; Fail if there is none."""
    for scenario in scenarios(program):
        if scenario.name == name:
            return scenario
    raise Fail(f"the model has no scenario '{name}': see model/README.md")


def ready(tree: Path, arches: Iterable[str] = source.of_series("v5.10")) -> tuple[Path, dict[str, Path]]:
    """(program, libraries by the name of the architecture) for the kernel in `tree`, built if they are not."""
    return build.checker(), {arch: build.library(tree, arch) for arch in arches}
