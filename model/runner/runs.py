"""Running scenarios: the checker's program once for each, its last line as a Result."""

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
    arches: tuple[str, ...]  # names of source.ARCHES


class Result(NamedTuple):
    """What came of one scenario."""

    verdict: str  # "holds", "stopped": as far as the time allowed; "found"; "nothing": no race met; "engine"
    name: str
    executions: int
    seconds: float
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
        how = {"holds": "holds", "stopped": "holds so far", "nothing": "HAS SHOWN NOTHING", "engine": "ENGINE"}
        what = how.get(self.verdict) or f"FOUND {self.invariant}"
        why = f"never reached {self.invariant}" if self.verdict == "nothing" else self.text
        said = ": ".join(filter(None, (what, why)))
        return f"{self.name:26}{self.executions:>9,} executions {self.seconds:7.1f} s  {said}"


# A scenario that is not over in this time, in seconds, is stuck: in `make test` none takes a minute on an idle machine.
_LIMIT = 1800


def scenarios(program: Path) -> list[Scenario]:
    """All Scenarios that the checker `program` has."""
    text = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    fields = (line.split("\t") for line in text.splitlines())
    return [Scenario(name, kind, bound, tuple(arches.split(","))) for name, kind, bound, _threads, arches in fields]


def declared() -> dict[str, tuple[str, ...]]:
    """{name of a scenario: names of source.ARCHES}, as the checker's source has them: without the calibration's."""
    found: dict[str, tuple[str, ...]] = {}
    newer = ("arm64-v7.3", "arm64-v6.12")
    for file, others in (("scenarios.rs", ("arm64", *newer)), ("scenarios_x86.rs", ("x86",))):
        text = (ROOM / "src" / file).read_text(encoding="utf-8")
        for name, kernel in re.findall(r'^    Scenario \{ name: "([^"]+)"(?:.* on: On::(\w+))?', text, re.M):
            found[name] = {"V5_10": ("arm64",), "V7_3": newer, "V7_3Alone": newer[:1], "Rfc": ("arm64-v7.3-rfc",)}.get(
                kernel, others
            )
    return found


def bounded(bound: str) -> list[str]:
    """loom's options for a preemption bound, or for "all"."""
    return [] if bound == "all" else [f"bound={bound}"]


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
    # Operations of an execution, words that threads share, and restarts are for people.
    verdict, name, executions, seconds, _, _, _, invariant, text, reached = fields
    arms = tuple(arm for arm in reached.split("; ") if arm)
    return Result(verdict, name, int(executions), float(seconds), invariant, text, arms, "\n".join(lines[:-1]))


def ready(tree: Path, arches: Iterable[str] = source.of_series("v5.10")) -> tuple[Path, dict[str, Path]]:
    """(program, libraries by the name of the architecture) for the kernel in `tree`, built if they are not."""
    return build.checker(), {arch: build.library(tree, arch) for arch in arches}
