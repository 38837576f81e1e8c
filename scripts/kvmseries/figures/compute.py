"""A figure from results files: which runs, what is done with them, and how it is written."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, ROUND_HALF_UP
from pathlib import Path
from typing import Any

from ..base import paths
from ..base.errors import Fail
from ..data import published, repeat, results, shape
from ..data.shape import Results, Run
from ..report import layout, state

RESULTS = paths.ROOT / "Documentation" / "results"
# Fewer rounds of a virtual clock are not enough to be quoted.
ROUNDS = 3
OPERATIONS = ("value", "min", "max", "range", "rounds")
COMPARED = ("growth", "page")
# What a figure may say besides keys of a run.
_OWN = {"of", "op", "by", "per", "over", "form", "published", "as"}
_UNITS = {
    "s": 1,
    "ms": 1e3,
    "us": 1e6,
    "ns": 1e9,
    "MB": 1e-6,
    "x": 1,
    "%": 100,
    "-%": 100,
    "+%": 100,
    "page": 1e9,
    "vmpage": 1e9,
}

# Keys of a figure, or of the runs that it wants; compute() says what they are.
Figure = Mapping[str, Any]
# A run, and the short name of its results.
Used = tuple[str, Run]
# One number of a run's samples.
Take = Callable[[Iterable[float]], float]


@dataclass(frozen=True)
class Found:
    """The numbers of a figure: one, or for a range the least and the greatest; the runs that they follow from."""

    numbers: tuple[float, ...]
    runs: tuple[Used, ...]  # of (name of the file, a run)


class Files:
    """The results files of figures.yaml, by their short names; each is read once."""

    def __init__(self, entries: Mapping[str, dict[str, Any]], folder: Path | None = None) -> None:
        """entries: {short name: {"file": ..., ...}}"""
        self.entries, self.folder = entries, folder or RESULTS
        self._data: dict[str, Results] = {}
        self._index: dict[str, dict[tuple[str, str], list[Run]]] = {}

    def data(self, name: str) -> Results:
        """What results.load() returns of the file with this short name."""
        if name not in self.entries:
            raise Fail(f"there are no results '{name}': there is {', '.join(self.entries)}")
        if name not in self._data:
            self._data[name] = results.load(self.folder / self.entries[name]["file"])
            index = self._index[name] = {}
            for run in self._data[name]["runs"]:
                index.setdefault((run["metric"], run["kernel"]), []).append(run)
        return self._data[name]

    def run(self, name: str, metric: str, wanted: Figure) -> Run:
        """The one run of the file `name` with this metric that has the keys of `wanted`; Fail if there is none,
        or more than one."""
        self.data(name)
        runs = self._index[name].get((metric, wanted.get("kernel", "")), [])
        found = [run for run in runs if wanted.items() <= run.items()]
        # Where nothing else is asked for, the nominal model's.
        if "model" not in wanted:
            found = [run for run in found if run["model"] in ("", "nominal")]
        if len(found) != 1:
            about = ", ".join(f"{key} {value}" for key, value in wanted.items())
            raise Fail(
                f"{self.entries[name]['file']} has {len(found) or 'no'} run{'s' * (len(found) > 1)} of "
                f"{metric} ({about}): {'say more' if found else 'it was not measured'}"
            )
        return found[0]

    def models(self, name: str) -> list[str]:
        """The variants of the model that a file has, nominal first."""
        return list(dict.fromkeys(run["model"] for run in self.data(name)["runs"]))


def check(figure: Figure) -> None:
    """Raise Fail unless all keys of `figure` (a dict) are known, and those that it needs there."""
    for key in figure:
        if key not in _OWN and key not in shape.KEYS:
            raise Fail(f"unknown key '{key}'")
    for key in ("of", "metric", "kernel"):
        if key not in figure:
            raise Fail(f"it has no '{key}'")
    if figure.get("op", "value") not in OPERATIONS:
        raise Fail(f"unknown operation '{figure['op']}': there is {', '.join(OPERATIONS)}")
    if "published" in figure and figure.get("as", "growth") not in COMPARED:
        raise Fail(f"unknown comparison '{figure['as']}': there is {', '.join(COMPARED)}")
    unit(figure.get("form", "x.0"))


def compute(files: Files, figure: Figure) -> Found:
    """The Found of `figure`, a dict: `of` (short name of the results), keys of a run (`metric` and `iteration`
    may be lists, which are added up), and maybe
      per        keys that differ in what it is counted by, such as {metric: syncs}
      by         keys that differ in what all of that is divided by, such as {kernel: base}
      over       lists of values of keys, of which op takes the least, the greatest or the range
      op: rounds the least and the greatest of its rounds, for what does not repeat
      published  a column of published.yaml that its growth over 1 vCPU (as: growth) or its time a page is divided by
    """
    check(figure)
    wanted = {key: value for key, value in figure.items() if key in shape.KEYS}
    over = dict(figure.get("over") or {})
    if over.get("model") == "all":
        over["model"] = files.models(figure["of"])
    numbers: list[float] = []
    runs: list[Used] = []
    if figure.get("op") == "rounds":
        if over or {"by", "published"} & set(figure):
            raise Fail("op rounds is for a figure of its own: no over, by or published")
        (low, runs), (high, _) = (_quantity(files, figure, figure["of"], wanted, take) for take in (min, max))
        return Found((low, high), tuple(runs))
    for values in itertools.product(*over.values()):
        keys = dict(zip(over, values))
        name = keys.pop("of", figure["of"])
        number, used = _one(files, {**figure, "of": name}, {**wanted, **keys})
        numbers.append(number)
        runs += used
    take = {
        "min": lambda all_: (min(all_),),
        "max": lambda all_: (max(all_),),
        "range": lambda all_: (min(all_), max(all_)),
    }.get(figure.get("op", "value"))
    if not take and len(numbers) != 1:
        raise Fail(f"'over' needs op min, max or range, not '{figure.get('op', 'value')}'")
    return Found(take(numbers) if take else tuple(numbers), tuple(runs))


def _one(files: Files, figure: Figure, wanted: Figure) -> tuple[float, list[Used]]:
    """(number, [(file, run)]) for the keys `wanted`."""
    number, used = _quantity(files, figure, figure["of"], wanted)
    if "published" in figure:
        column = _column(figure["published"])
        page = column.page_ns(wanted["vcpus"])
        if page is None:
            raise Fail(f"published.yaml: {column.id} has no {wanted['vcpus']} vCPUs")
        if figure.get("as") == "page":
            return number / pages(used[0][1]) * 1e9 / page, used
        below, more = _quantity(files, figure, figure["of"], {**wanted, "vcpus": 1})
        return number / below / column.growth[wanted["vcpus"]], used + more
    if figure.get("by"):
        other = dict(figure["by"])
        below, more = _quantity(files, figure, other.pop("of", figure["of"]), {**wanted, **other})
        if not below:
            raise Fail(f"{wanted['metric']} is divided by 0")
        return number / below, used + more
    return number, used


def _quantity(
    files: Files, figure: Figure, name: str, wanted: Figure, take: Take = statistics.median
) -> tuple[float, list[Used]]:
    """(number, [(file, run)]): a sum of runs of the results `name`, maybe by page or by another sum; take: what of the
    samples."""
    number, used = _sum(files, name, wanted, take)
    kind = figure.get("form", "").partition(".")[0]
    if kind in ("page", "vmpage"):
        number /= pages(used[0][1]) * (used[0][1]["vcpus"] if kind == "vmpage" else 1)
    if "per" in figure:
        below, more = _sum(files, name, {**wanted, **figure["per"]})
        if not below:
            raise Fail(f"{wanted['metric']} is counted by 0")
        return number / below, used + more
    return number, used


def _column(name: str) -> published.Column:
    """The published.Column `name`."""
    found = [column for column in published.load() if column.id == name]
    if not found:
        raise Fail(f"published.yaml has no column '{name}'")
    return found[0]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _sum(files: Files, name: str, wanted: Figure, take: Take = statistics.median) -> tuple[float, list[Used]]:
    """(the sum over all metrics and iterations in `wanted`, [(file, run)]).  Raises Fail for the median of what does not
    repeat."""
    used = []
    for metric, iteration in itertools.product(_list(wanted["metric"]), _list(wanted.get("iteration"))):
        keys = {key: value for key, value in wanted.items() if key != "metric"}
        run = files.run(name, metric, {**keys, "iteration": iteration})
        if run["repeats"] is False and take is statistics.median:
            raise Fail(
                f"{files.entries[name]['file']}: {repeat.where(run)} does not repeat from round to round "
                f"({min(run['samples']):.6f} s to {max(run['samples']):.6f} s): quote its rounds (op: rounds), or "
                "measure again"
            )
        used.append((name, run))
    return sum(take(run["samples"]) for _, run in used), used


def pages(run: Run) -> int:
    """The pages of 4 KiB that each vCPU of a run has, by its -b."""
    size = published.options(run["args"]).get("-b") or ""
    if not size[:-1].isdigit() or size[-1] not in "KMG":
        raise Fail(f"{run['test']} {run['args']}: no -b that says how many pages a vCPU has")
    return int(size[:-1]) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[size[-1]] // 4096


def unit(form: str) -> tuple[str, str]:
    """(unit, digits) of a form such as "us.1": digits are a number, "r" (of a ratio: two or three significant
    digits) or "a" (one decimal below 20).  Units: s ms us ns MB x % -% (less 100 %) +% (the same, with a
    sign) page (ns a page of a vCPU) vmpage (of all vCPUs)."""
    name, _, digits = form.partition(".")
    if name not in _UNITS or not (digits.isdigit() or digits in ("r", "a")):
        raise Fail(f"unknown form '{form}': UNIT.DIGITS with UNIT of {', '.join(_UNITS)}")
    return name, digits


def write(number: float, form: str) -> str:
    """A number as text."""
    name, digits = unit(form)
    value = (number - 1) * 100 if name in ("-%", "+%") else number * _UNITS[name]
    if digits == "r":
        return layout.ratio_text(value)
    if digits == "a":
        digits = "0" if not value or abs(value) >= 19.95 else "1"
    # Half up, as people round, after what a multiplication adds at the end.
    text = f"{Decimal(repr(round(value, 9))).quantize(Decimal(1).scaleb(-int(digits)), ROUND_HALF_UP):,}"
    if not float(text.replace(",", "")):
        return text.lstrip("-")  # -0 is 0
    return f"+{text}" if name == "+%" and value > 0 else text


def text(found: Found, form: str) -> str:
    """A Found as text: "1.04", or "36 to 44"."""
    words = [write(number, form) for number in found.numbers]
    return words[0] if len(set(words)) == 1 else " to ".join(words)


def shortcomings(files: Files, found: Found) -> set[str]:
    """Why a Found is not to be quoted as it is: a set of "old", "unknown" (state of the source), "rounds"."""
    reasons = set()
    for name, run in found.runs:
        kind = state.of_label(files.data(name), run["kernel"], run["series"], run["arch"])
        reasons |= {kind} - {"new"}
        if few(run):
            reasons.add("rounds")
    return reasons


def few(run: Run) -> bool:
    """Whether a run is a time of the nominal virtual clock from fewer than ROUNDS rounds.  Counts of the
    instrument come from one, and a variant of the model has one."""
    return (
        run["clock"] == "virtual" and run["model"] == "nominal" and run["unit"] == "s" and len(run["samples"]) < ROUNDS
    )


def changed_instrument(files: Files, name: str) -> list[str]:
    """What else than kernels has changed since a file was measured, as words."""
    data = files.data(name)
    return sorted(
        {
            word
            for series, arch in {(run["series"], run["arch"]) for run in data["runs"]}
            for word in state.changes(data, series, arch)
        }
    )
