"""What got better or worse from one results file to another, beyond what repeating would change.

Runs of the two files are the same measurement if they agree in every key but the samples.  Such a
pair has changed if no sample of one lies within the spread (least to greatest) of the other and the
medians differ by more than the floor: what the instrument itself repeats to.

    virtual time           2 % with 1 vCPU, 5 % with more
    wall clock             5 %; not compared where the machine was emulated: no evidence
    counts                 0 for instructions per fault of 1 vCPU, where no sample differs from the
                           others of its file; else 5 %, and by more than one for each CPU
    merging pages          5 %; and exits by more than 0.1 a page, what vCPUs take more than without
                           faults by more than 10 us for each CPU

Times in virtual time are not compared if the models differ: the difference would be the model's.
bench.yaml says for which metrics less or more is better; of others, a change is not judged.  Nor is a
rise of a cheaper operation judged where the dearer one that it stands for fell by as much: a lock
taken for read instead of for write.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ..base.errors import Fail
from ..data import benchmarks, summary as s
from ..data.shape import KEYS, Results, Run
from .layout import count_text, TO

KEY = tuple(key for key in KEYS if key != "samples")
SHARED = ("series", "arch", "accel", "clock", "cpu", "config", "params", "test", "args")
INSTEAD = {
    "mmu_lock_read_acquisitions": "mmu_lock_write_acquisitions",
    "mmu_lock_read_contentions": "mmu_lock_write_contentions",
    "tlbi_local": "tlbi_broadcast",
}
UNCONTENDED, CONTENDED = 0.02, 0.05
PER_PAGE, DIFFERENCE = 0.1, 10e-6  # exits a page; seconds for each CPU
WORSE, BETTER, CHANGED, SAME = "worse", "better", "changed", "same"
MODELS = "virtual times: the models differ"
WALL = f"times, contentions and exits meanwhile: {s.EMULATED}"
OVERLAPPING = "contentions", "while_merged"  # in names of counts that depend on what overlaps

# The values of KEY.
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """One measurement that both files have.

    key: of KEY to its value; before, after: the samples (numbers); verdict: WORSE, BETTER, CHANGED
    (it did, but nothing says whether for the better) or SAME.
    """

    key: dict[str, Any]
    before: tuple[float, ...]
    after: tuple[float, ...]
    verdict: str

    @property
    def rise(self) -> float:
        """after minus before, of the medians."""
        return statistics.median(self.after) - statistics.median(self.before)

    @property
    def relative(self) -> float:
        """after by before, of the medians, minus 1; infinite if it came from 0."""
        before = statistics.median(self.before)
        return self.rise / before if before else float("inf") if self.rise else 0.0


@dataclass(frozen=True)
class Comparison:
    """changes: all Changes, in the order of the first file; left_out: reason to how many were not
    compared for it; alone: how many measurements only the first, only the second file has."""

    changes: list[Change]
    left_out: dict[str, int]
    alone: tuple[int, int]

    def of(self, verdict: str) -> list[Change]:
        """The Changes with this verdict."""
        return [change for change in self.changes if change.verdict == verdict]

    @property
    def status(self) -> int:
        """Exit status: 1 if anything got worse."""
        return 1 if self.of(WORSE) else 0


def compare(before: Results, after: Results, names: Sequence[str] = ("the first file", "the second")) -> Comparison:
    """The Comparison of two loaded results files; names: what to call them in a Fail.

    Raises Fail if they have nothing in common that can be compared.
    """
    old, new = collect(before["runs"]), collect(after["runs"])
    common = [key for key in old if key in new]
    if not common:
        raise Fail(f"{names[0]} and {names[1]} have nothing in common: {_differences(old, new)}")
    same_model = s.same_model(before["host"], after["host"])
    changes: dict[Key, Change] = {}
    left_out: dict[str, int] = {}
    for key in common:
        named = dict(zip(KEY, key))
        reason = _reason(named, same_model)
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            samples = tuple(old[key]), tuple(new[key])
            changes[key] = Change(named, *samples, _verdict(named, *samples))
    if not changes:
        raise Fail(f"{names[0]} and {names[1]} have nothing in common that can be compared: " + ", ".join(left_out))
    judged = [_judged(key, change, changes) for key, change in changes.items()]
    return Comparison(judged, left_out, (len(old) - len(common), len(new) - len(common)))


def collect(runs: Iterable[Run]) -> dict[Key, list[float]]:
    """{values of KEY: samples}; runs that differ in nothing else are further samples."""
    found: dict[Key, list[float]] = {}
    for run in runs:
        fields: Mapping[str, Any] = run
        key = tuple(tuple(fields[name]) if isinstance(fields[name], list) else fields[name] for name in KEY)
        found.setdefault(key, []).extend(run["samples"])
    return found


def _differences(old: Iterable[Key], new: Iterable[Key]) -> str:
    """Why no key is in both: the first thing in which they differ throughout."""
    if not old or not new:
        return "one has no runs"
    for number, name in enumerate(KEY):
        left, right = ({key[number] for key in keys} for keys in (old, new))
        if not left & right:
            return f"'{name}' is {_listed(left)} in one, {_listed(right)} in the other"
    return "no run of one agrees in all of its keys with one of the other"


def _listed(values: Iterable[object]) -> str:
    words = sorted(" ".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in values)
    return ", ".join(f"'{word}'" for word in words[:3]) + (", ..." if len(words) > 3 else "")


def _metric(key: Mapping[str, Any]) -> str:
    """The metric's name without its phase."""
    return key["metric"].split(".", 1)[0]


def _reason(key: Mapping[str, Any], same_model: bool) -> str | None:
    """Why a measurement is not compared, or None."""
    if s.clock_name(key["accel"], key["clock"]) == s.EMULATED and (
        key["unit"] == "s" or any(word in _metric(key) for word in OVERLAPPING)
    ):
        return WALL
    if key["clock"] == "virtual" and key["unit"] == "s" and not same_model:
        return MODELS
    return None


def _verdict(key: Mapping[str, Any], before: Sequence[float], after: Sequence[float]) -> str:
    contended = key["vcpus"] != 1
    floor, slack = CONTENDED, 0.0
    if _metric(key).endswith("exits_per_page"):
        slack = PER_PAGE
    elif _metric(key).endswith("merged_vcpu_time"):
        slack = DIFFERENCE * (key["vcpus"] + 1)
    elif key["unit"] == "s":
        if key["clock"] == "virtual" and not contended:
            floor = UNCONTENDED
    elif _metric(key) == s.PER_FAULT:
        if not contended and len(set(before)) == len(set(after)) == 1:
            floor = 0
    else:
        slack = key["vcpus"] + 1  # the CPUs of the machine
    if min(after) <= max(before) and min(before) <= max(after):
        return SAME
    old, new = statistics.median(before), statistics.median(after)
    if abs(new - old) <= max(floor * abs(old), slack):
        return SAME
    column = benchmarks.metric(key["test"], key["metric"])
    if not column or column.better == "none":
        return CHANGED
    return WORSE if (new > old) != (column.better == "more") else BETTER


def dearer(key: Key) -> Key | None:
    """The key of the dearer operation in whose place that of `key` may have come, or None."""
    number = KEY.index("metric")
    metric, dot, phase = key[number].partition(".")
    return (*key[:number], INSTEAD[metric] + dot + phase, *key[number + 1 :]) if metric in INSTEAD else None


def traded(rise: float, fall: float, vcpus: int) -> bool:
    """Whether a cheaper operation that rose so much came in the place of the dearer one that fell so much."""
    return rise <= fall + max(CONTENDED * rise, vcpus + 1)


def _judged(key: Key, change: Change, changes: Mapping[Key, Change]) -> Change:
    """`change`, not judged if it is the cheaper operation that took a dearer one's place."""
    other = changes.get(dearer(key) or ())
    if change.verdict == WORSE and other and traded(change.rise, -other.rise, change.key["vcpus"]):
        return replace(change, verdict=CHANGED)
    return change


def _samples_text(samples: Sequence[float], unit: str) -> str:
    """ "3.41 ms (3.39-3.44)": the median, and the spread where there is one."""

    def text(number: float) -> str:
        return f"{number * 1e3:,.4g}" if unit == "s" else count_text(number)

    middle, low, high = (text(of(samples)) for of in (statistics.median, min, max))
    if unit == "s":
        middle += " ms"
    return middle if low == high else f"{middle} ({low}{TO}{high})"


def change_text(change: Change) -> str:
    """By how much it changed: "+3.4 %", "from 0"."""
    return "from 0" if change.relative == float("inf") else f"{change.relative * 100:+.2f} %"


def view(comparison: Comparison) -> Group:
    """What moved, to print with rich: for each test and machine its clock and a table."""
    parts: list[Text | Table] = []
    groups: dict[tuple[Any, ...], list[Change]] = {}
    for change in comparison.changes:
        if change.verdict != SAME:
            groups.setdefault(tuple(change.key[name] for name in SHARED), []).append(change)
    for shared, changes in groups.items():
        key = dict(zip(SHARED, shared))
        clock = s.clock_name(key["accel"], key["clock"])
        what = [
            f"{key['series']}, {key['arch']}, cpu {key['cpu']}, accel {key['accel']}, config {key['config']}",
            *key["params"],
        ]
        parts.append(Text(f"{key['test']} {key['args']}".rstrip(), style="bold"))
        parts.append(Text(f"{', '.join(what)}; {clock}"))
        variants = any(change.key["model"] not in ("", s.NOMINAL) for change in changes)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for head in ("", "kernel", "vCPUs", "metric", "model", "before", "after", "change"):
            if head != "model" or variants:
                table.add_column(head, no_wrap=head in ("metric", "change"))
        order = (WORSE, CHANGED, BETTER)
        for change in sorted(changes, key=lambda one: order.index(one.verdict)):
            iteration = change.key["iteration"]
            table.add_row(
                *map(
                    Text,
                    (
                        change.verdict,
                        s.short(change.key["kernel"]),
                        str(change.key["vcpus"]),
                        change.key["metric"] + ("" if iteration is None else f" {iteration}"),
                        *([change.key["model"]] if variants else []),
                        _samples_text(change.before, change.key["unit"]),
                        _samples_text(change.after, change.key["unit"]),
                        change_text(change),
                    ),
                )
            )
        parts.append(table)
    return Group(*parts)


def verdict(comparison: Comparison) -> str:
    """One line that says it all."""
    counts = {name: comparison.of(name) for name in (WORSE, BETTER, CHANGED, SAME)}
    parts = [f"{name} {len(changes)}" for name, changes in counts.items() if changes or name in (WORSE, BETTER, SAME)]
    if counts[WORSE]:
        worst = max(counts[WORSE], key=lambda change: change.relative)
        parts[0] += (
            f" (most: {worst.key['metric']} on {worst.key['kernel']}, "
            f"{worst.key['vcpus']} vCPU{'s' * (worst.key['vcpus'] > 1)}, "
            f"{change_text(worst)})"
        )
    parts += [f"not compared {count} ({reason})" for reason, count in comparison.left_out.items()]
    parts += [
        f"only in the {which} file {count}" for which, count in zip(("first", "second"), comparison.alone) if count
    ]
    return ", ".join(parts)
