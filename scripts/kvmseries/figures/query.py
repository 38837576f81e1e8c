"""A figure from results files: which runs, what is done with them, and how it is written."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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
_TAKES: dict[str, Callable[[list[float]], tuple[float, ...]]] = {
    "min": lambda numbers: (min(numbers),),
    "max": lambda numbers: (max(numbers),),
    "range": lambda numbers: (min(numbers), max(numbers)),
}

# Keys of the runs that are wanted, beside metric.
Keys = Mapping[str, Any]
# One number of a run's samples.
Take = Callable[[Iterable[float]], float]


@dataclass(frozen=True)
class Used:
    """A run that a figure follows from, and the short name of its results."""

    name: str
    run: Run


class Files:
    """The results files of figures.yaml, by their short names; each is read once."""

    def __init__(self, entries: Mapping[str, dict[str, Any]], folder: Path | None = None) -> None:
        """entries: {short name: {"file": ..., ...}}"""
        self.entries, self.folder = entries, folder or RESULTS
        self._data: dict[str, Results] = {}
        self._states: dict[tuple[str, str, str, str], str] = {}
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

    def run(self, name: str, metric: str, wanted: Keys) -> Run:
        """The one run of the file `name` with this metric that has the keys of `wanted`; Fail if there is none,
        or more than one."""
        self.data(name)
        known = self._index[name].get((metric, wanted.get("kernel", "")), ())
        found = [run for run in known if wanted.items() <= run.items()]
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

    def state(self, one: Used) -> str:
        """ "new", "old" or "unknown": whether a run's kernel is what patches/ are today."""
        key = one.name, one.run["kernel"], one.run["series"], one.run["arch"]
        if key not in self._states:
            self._states[key] = state.of_label(self.data(one.name), *key[1:])
        return self._states[key]


@dataclass
class Query:
    """What fig() of texts.py asks for; see there."""

    of: str
    metric: str
    keys: dict[str, Any]
    form: str = "x.0"
    by: Any = None
    per: str | None = None
    over: dict[str, list[Any]] | None = None
    op: str = "value"
    published: str = ""
    compare: str = "growth"

    def __post_init__(self) -> None:
        unknown = [key for key in self.keys if key not in shape.KEYS]
        if unknown:
            raise Fail(f"unknown key '{unknown[0]}'")
        if self.op not in (*_TAKES, "value", "rounds"):
            raise Fail(f"unknown operation '{self.op}': there is value, rounds, {', '.join(_TAKES)}")
        if self.compare not in ("growth", "page"):
            raise Fail(f"unknown comparison '{self.compare}': there is growth, page")
        unit(self.form)


def compute(files: Files, query: Query) -> tuple[tuple[float, ...], list[Used]]:
    """(numbers, what they follow from) of a Query: one number, or of a range and of rounds the least and the greatest."""
    figure = _Figure(files, query)
    over = dict(query.over or {})
    if over.get("model") == "all":
        over["model"] = list(dict.fromkeys(run["model"] for run in files.data(query.of)["runs"]))
    if query.op == "rounds":
        if over or query.by is not None or query.published:
            raise Fail("op rounds is for a figure of its own: no over, by or published")
        return tuple(figure.quantity(query.of, query.keys, take) for take in (min, max)), figure.used
    numbers = []
    for values in itertools.product(*over.values()):
        keys = dict(zip(over, values))
        numbers.append(figure.number(keys.pop("of", query.of), {**query.keys, **keys}))
    if query.op == "value" and len(numbers) != 1:
        raise Fail(f"'over' needs op min, max or range, not '{query.op}'")
    return _TAKES[query.op](numbers) if query.op in _TAKES else tuple(numbers), figure.used


@dataclass
class _Figure:
    """A Query while it is computed; used: what its numbers follow from.  name: of results; wanted: keys of the runs."""

    files: Files
    query: Query
    used: list[Used] = field(default_factory=list)

    def number(self, name: str, wanted: Keys) -> float:
        """A quantity, by what the Query divides it by."""
        number = self.quantity(name, wanted)
        if self.query.published:
            return self._by_published(number, name, wanted)
        by = self.query.by
        if by is None:
            return number
        # A kernel, a number of vCPUs, or keys.
        other = dict(by) if isinstance(by, Mapping) else {("vcpus" if type(by) is int else "kernel"): by}
        below = self.quantity(other.pop("of", name), {**wanted, **other})
        if not below:
            raise Fail(f"{self.query.metric} is divided by 0")
        return number / below

    def _by_published(self, number: float, name: str, wanted: Keys) -> float:
        column = next((one for one in published.load() if one.id == self.query.published), None)
        if not column:
            raise Fail(f"published.yaml has no column '{self.query.published}'")
        page = column.page_ns(wanted["vcpus"])
        if page is None:
            raise Fail(f"published.yaml: {column.id} has no {wanted['vcpus']} vCPUs")
        if self.query.compare == "page":
            return number / published.pages_of(self.used[-1].run) * 1e9 / page
        return number / self.quantity(name, {**wanted, "vcpus": 1}) / column.growth[wanted["vcpus"]]

    def quantity(self, name: str, wanted: Keys, take: Take = statistics.median) -> float:
        """A sum of runs, maybe by page or by another sum; take: what of the samples."""
        keys = dict(wanted)
        metric = keys.pop("metric", self.query.metric)
        number = self._sum(name, metric, keys, take)
        kind = self.query.form.partition(".")[0]
        if kind in ("page", "vmpage"):
            run = self.used[-1].run
            number /= published.pages_of(run) * (run["vcpus"] if kind == "vmpage" else 1)
        if self.query.per is None:
            return number
        below = self._sum(name, self.query.per, keys)
        if not below:
            raise Fail(f"{metric} is counted by 0")
        return number / below

    def _sum(self, name: str, metrics: str, keys: Keys, take: Take = statistics.median) -> float:
        """The sum over "METRIC+METRIC".  Raises Fail for the median of what does not repeat."""
        total = 0.0
        for metric in metrics.split("+"):
            run = self.files.run(name, metric, keys)
            if run["repeats"] is False and take is statistics.median:
                raise Fail(
                    f"{self.files.entries[name]['file']}: {repeat.where(run)} does not repeat from round to round "
                    f'({min(run["samples"]):.6f} s to {max(run["samples"]):.6f} s): quote its rounds (op="rounds"), or '
                    "measure again"
                )
            self.used.append(Used(name, run))
            total += take(run["samples"])
        return total


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


def shortcomings(files: Files, one: Used) -> set[str]:
    """Why what follows from a run is not to be quoted as it is: a set of "old", "unknown" (state of the source), "rounds"."""
    run = one.run
    reasons = {files.state(one)} - {"new"}
    # Counts of the instrument come from one round, and a variant of the model has one.
    if run["clock"] == "virtual" and run["model"] == "nominal" and run["unit"] == "s" and len(run["samples"]) < ROUNDS:
        reasons.add("rounds")
    return reasons
