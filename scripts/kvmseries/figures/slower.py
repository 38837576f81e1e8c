"""What got worse than on base must be said: which metrics did in the results that a text quotes, and whether its paragraphs
of what gets slower have the words that figures.yaml asks for."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..data import benchmarks, shape, summary as s
from ..data.shape import Run
from .query import Files

if TYPE_CHECKING:
    from .texts import Data, Text

# By how much a metric may be worse than base without being mentioned.
WORSE = 1.1
# The cheaper operation that may be in the place of a dearer one.
INSTEAD = {
    "mmu_lock_read_acquisitions": "mmu_lock_write_acquisitions",
    "mmu_lock_read_contentions": "mmu_lock_write_contentions",
    "tlbi_local": "tlbi_broadcast",
}

# The ratio to base, vCPUs, the variant of the model.
Worst = tuple[float, int, str]
Place = tuple[str, ...]


def lower_is_better(run: Mapping[str, Any]) -> bool | None:
    """Whether less of the metric of a run with these keys is better; None where that cannot be said, or is by chance."""
    if s.clock_name(run["accel"], run["clock"]) == s.EMULATED and "contentions" in run["metric"]:
        return None
    column = benchmarks.metric(run["test"], run["metric"])
    if not column:
        return True if run["unit"] == "s" else None
    return None if column.better == "none" else column.better == "less"


def worse(files: Files, name: str, kernels: Iterable[str] = (s.SERIES,)) -> dict[tuple[str, str], Worst]:
    """{(metric, kernel): Worst} of what one of `kernels` does worse than base by more than WORSE in the results `name`, in any
    variant of the model."""
    runs = files.data(name)["runs"]
    return {(metric, kernel): worst for kernel in kernels for metric, worst in _worse(runs, kernel).items()}


def _worse(all_runs: Sequence[Run], kernel: str) -> dict[str, Worst]:
    """{metric: Worst} of one kernel."""
    before, after = ({_place(run): run for run in all_runs if run["kernel"] == which} for which in (s.BASE, kernel))
    medians = {
        place: (statistics.median(before[place]["samples"]), statistics.median(after[place]["samples"]))
        for place in before
        if place in after
    }
    found: dict[str, Worst] = {}
    for place, (base, patched) in medians.items():
        run = before[place]
        better = lower_is_better(run)
        if better is None or min(base, patched) < 0 or _traded(run, medians):
            continue
        less, more = (base, patched) if better else (patched, base)
        # A count may differ by one for each CPU of the machine.
        if more <= WORSE * less or (run["unit"] == "1" and more - less <= run["vcpus"] + 1):
            continue
        worst = more / less if less else float("inf"), run["vcpus"], run["model"] or s.NOMINAL
        found[run["metric"]] = max(found.get(run["metric"], (0, 0, "")), worst)
    return found


def _place(run: Run, metric: str = "") -> Place:
    """What the runs of two kernels have in common; metric: another one than the run's."""
    return shape.key({**run, "kernel": "", "metric": metric or run["metric"]})


def _traded(run: Run, medians: Mapping[Place, tuple[float, float]]) -> bool:
    """Whether the metric of `run`, a cheaper operation, came in the place of the dearer one, which fell by as much: a lock taken
    for read instead of for write.  medians: of base and of the kernel."""
    metric, dot, phase = run["metric"].partition(".")
    dearer = medians.get(_place(run, f"{INSTEAD[metric]}{dot}{phase}")) if metric in INSTEAD else None
    if not dearer:
        return False
    base, patched = medians[_place(run)]
    rise, fall = patched - base, dearer[0] - dearer[1]
    return rise <= fall + max(0.05 * rise, run["vcpus"] + 1)


def entries(data: Data, name: str, metric: str, kernel: str) -> list[dict[str, Any]]:
    """The entries of `worse` in figures.yaml for a metric and kernel of the results `name`."""
    return [
        entry
        for entry in data["worse"]
        if re.fullmatch(entry["metric"], metric)
        and (entry["of"] == "all" or name in entry["of"])
        and entry.get("kernel", kernel) == kernel
    ]


def unsaid(data: Data, files: Files, text: Text) -> list[str]:
    """Lines about what got worse in the results that a text quotes and its paragraphs of that do not say."""
    if not text.slower:
        return []
    said = ""
    for begin in text.slower:
        found = re.search(rf"^{re.escape(begin)}.*?(?=\n\s*\n|\Z)", text.made, re.M | re.S)
        if not found:
            return [f"{text.where}: no paragraph begins with '{begin}'"]
        said += " " + " ".join(found[0].split())
    wrong = []
    for name, kernels in text.kernels.items():
        for (metric, kernel), (ratio, vcpus, model) in worse(files, name, kernels).items():
            known = entries(data, name, metric, kernel)
            if any("why" in entry or entry["says"] in said for entry in known):
                continue
            of = "" if kernel == s.SERIES else f" of {kernel}"
            variant = "" if model == s.NOMINAL else f", model {model}"
            wrong.append(
                f"{text.where}: what gets slower does not say that {metric}{of} is {ratio:.2f} times "
                f"base's with {vcpus} vCPUs ({files.entries[name]['file']}{variant})"
                + (f": it should have '{known[0]['says']}'" if known else "")
            )
    return wrong
