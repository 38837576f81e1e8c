"""What verdict.py compares, and how people write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..data import summary as s
from . import layout


@dataclass(frozen=True)
class Measure:
    """What is compared.  value(kernel, place): a Value or None, place as in Summary.places; text(number): with its unit;
    less is better, or more; main: it may stand in the first line; count: no time; each: a CPU of the machine may have one
    more by chance; fair(place): whether both began alike there: the first line is of such a place if there is one."""

    words: str
    value: Callable[[str, Any], s.Value | None]
    text: Callable[[float], str]
    more: bool = False
    main: bool = False
    count: bool = False
    each: bool = False
    fair: Callable[[Any], bool] = lambda _: True


def main_lines(summary: s.Summary, measures: Iterable[Measure]) -> list[str]:
    """A line for each of the Measures that may stand in the first line, of the largest vCPU count that has it."""
    return [
        line
        for measure in measures
        if measure.main
        for line in layout.most_line(summary, measure.words, summary.kernels, measure.value, measure.text)
    ]


def time_text(seconds: float) -> str:
    """A time with its unit to three significant digits: "19.6 us", "507 ns"."""
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if abs(seconds) * scale >= 0.9995:
            return f"{_digits(seconds * scale)} {unit}"
    return f"{_digits(seconds * 1e9)} ns"


def _digits(number: float) -> str:
    if abs(number) >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 9.995 else f"{number:.2f}"


def of_base(ratio: float) -> str:
    """A ratio to base in words: "0.027 of base", "2.8 times base"."""
    return f"{layout.ratio_text(ratio)} {'times' if ratio > 1 else 'of'} base"


def vcpus_text(count: int) -> str:
    """ "1 vCPU", "16 vCPUs"."""
    return f"{count} vCPU{'s' * (count > 1)}"
