"""What got worse than on base must be said: which metrics did in the results that a text quotes, and whether its paragraphs
of what gets slower have the words that figures.yaml asks for."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..data import benchmarks, summary as s
from ..data.shape import Run
from ..report import compare
from .query import Files

if TYPE_CHECKING:
    from .texts import Data, Text

# By how much a metric may be worse than base without being mentioned.
WORSE = 1.1

# The ratio to base, vCPUs, the variant of the model.
Worst = tuple[float, int, str]
# By the other keys of a run: the runs of base and series, their medians.
Pairs = Mapping[tuple[str, ...], Mapping[str, Run]]
Medians = Mapping[tuple[str, ...], tuple[float, float]]


def lower_is_better(run: Run) -> bool | None:
    """Whether less of a run's metric is better; None where that cannot be said, or is by chance."""
    if s.clock_name(run["accel"], run["clock"]) == s.EMULATED and "contentions" in run["metric"]:
        return None
    column = benchmarks.metric(run["test"], run["metric"])
    return None if not column or column.better == "none" else column.better == "less"


def worse(files: Files, name: str, kernels: Iterable[str] = (s.SERIES,)) -> dict[tuple[str, str], Worst]:
    """{(metric, kernel): Worst} of what one of `kernels` does worse than base by more than WORSE in the results `name`, in any
    variant of the model."""
    return {
        (metric, kernel): worst
        for kernel in kernels
        for metric, worst in _worse(files.data(name)["runs"], kernel).items()
    }


def _worse(all_runs: Iterable[Run], kernel: str) -> dict[str, Worst]:
    runs: dict[tuple[str, ...], dict[str, Run]] = {}
    found: dict[str, Worst] = {}
    for run in all_runs:
        if run["kernel"] in (s.BASE, kernel):
            keys: Mapping[str, object] = run
            key = tuple(str(keys[name]) for name in compare.KEY if name != "kernel")
            runs.setdefault(key, {})[run["kernel"]] = run
    medians = {
        key: (statistics.median(pair[s.BASE]["samples"]), statistics.median(pair[kernel]["samples"]))
        for key, pair in runs.items()
        if len(pair) == 2
    }
    for key, (base, patched) in medians.items():
        run = runs[key][s.BASE]
        better = lower_is_better(run)
        if better is None or min(base, patched) < 0 or _traded(runs, medians, key):
            continue
        before, after = (base, patched) if better else (patched, base)
        # A count may differ by one for each CPU of the machine.
        if after <= WORSE * before or (run["unit"] == "1" and after - before <= run["vcpus"] + 1):
            continue
        ratio = after / before if before else float("inf")
        metric = run["metric"]
        found[metric] = max(found.get(metric, (0, 0, "")), (ratio, run["vcpus"], run["model"] or s.NOMINAL))
    return found


def _traded(runs: Pairs, medians: Medians, key: tuple[str, ...]) -> bool:
    """Whether the metric of `key` is the cheaper operation that took a dearer one's place."""
    metric, _, phase = runs[key][s.BASE]["metric"].partition(".")
    if metric not in compare.INSTEAD:
        return False
    number = [name for name in compare.KEY if name != "kernel"].index("metric")
    other = key[:number] + (".".join(filter(None, (compare.INSTEAD[metric], phase))),) + key[number + 1 :]
    if other not in medians:
        return False
    return (
        medians[key][1] - medians[key][0]
        <= 1.05 * (medians[other][0] - medians[other][1]) + runs[key][s.BASE]["vcpus"] + 1
    )


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
