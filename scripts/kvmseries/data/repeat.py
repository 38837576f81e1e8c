"""Whether times of the virtual clock repeat: which are judged, by how much rounds may differ, and which differ by
chance, as tools-testing-selftests-kvm/bench.yaml says.

A run is what results.py describes.  Its `repeats` is True, False, or None where it is not judged.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import benchmarks
from .shape import key, Run

# Times that are judged, with what rounds may differ by besides _SHARES, s: ticks of the guest's timer fall into them.
JUDGED = {"dirty_memory_time": 2e-6, "populate_memory_time": 2e-5, "fault_memory_time": 2e-5}
# Share of the least by which rounds may differ: with one vCPU, and with more.
_SHARES = (0.02, 0.05)
# What `shown` of bench.yaml says of a reason that nobody has shown.
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Chance:
    """Why metrics of a test with the word `args` among its arguments need not repeat; shown: how that was shown, or
    UNEXPLAINED."""

    args: str
    metrics: tuple[str, ...]
    why: str
    shown: str

    def __str__(self) -> str:
        return f"{self.why} ({'not shown' if self.shown == UNEXPLAINED else f'shown: {self.shown}'})"


def judge(run: Run) -> bool | None:
    """Whether the rounds of `run` agree; None unless it is a judged time of the nominal model with two samples or more."""
    if run["clock"] != "virtual" or run["model"] != "nominal" or run["metric"] not in JUDGED or len(run["samples"]) < 2:
        return None
    low, high = min(run["samples"]), max(run["samples"])
    return high - low <= low * _SHARES[run["vcpus"] > 1] + JUDGED[run["metric"]]


def mark(runs: list[Run]) -> list[Run]:
    """Set `repeats` of each of `runs`, and what bench has not set of `earlier`."""
    for run in runs:
        run["repeats"] = judge(run)
        run.setdefault("earlier", [])
    return runs


@functools.lru_cache(maxsize=None)
def _entries() -> dict[str, list[Chance]]:
    """{test: [Chance]} of bench.yaml.  Raises Fail with one line."""
    return {
        test: [Chance(**{**one, "metrics": tuple(one["metrics"])}) for one in entry.get("chance", ())]
        for test, entry in benchmarks.load().items()
    }


def chance(run: Run) -> Chance | None:
    """The Chance that bench.yaml has for a run's metric, or None: then it should repeat."""
    words = shlex.split(run["args"])
    return next(
        (one for one in _entries().get(run["test"], ()) if one.args in words and run["metric"] in one.metrics), None
    )


def failed(runs: Iterable[Run]) -> list[Run]:
    """Those of `runs` that should repeat and do not."""
    return [run for run in runs if judge(run) is False and not chance(run)]


def where(run: Run) -> str:
    """What a run is of: "dirty_memory_time of base with 4 vCPUs"."""
    return f"{run['metric']} of {run['kernel']} with {run['vcpus']} vCPU{'s' * (run['vcpus'] > 1)}"


def complaint(runs: Sequence[Run]) -> str:
    """One line about runs that failed() has found."""
    one, more = runs[0], len(runs) - 1
    others = f"; {more} more time{'s do' if more > 1 else ' does'} not" if more else ""
    return (
        f"virtual time does not repeat: {where(one)} is {min(one['samples']):.6f} s to "
        f"{max(one['samples']):.6f} s{others}; measure again with --retry 2"
    )


def replace(runs: Iterable[Run], again: Iterable[Run]) -> None:
    """Put the samples of `again`, which were taken in the place of those of `runs`, into `runs`: the samples that were
    there go to `earlier`.  Both are lists of runs; what `again` does not have stays as it is."""
    found = {key(run): run for run in again}
    for run in runs:
        better = found.get(key(run))
        if better:
            run["earlier"] = [*run.get("earlier", ()), run["samples"]]
            run["samples"] = better["samples"]
