"""The table of `scripts/series prove --mutants`: where each mutant was found, and how long it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from runner import mutants as model

from . import mutants


class Row(NamedTuple):
    """A mutant and one place where it must be found, as the table has it."""

    name: str
    mistake: str
    place: str  # where it was found, or must be: model, or as mutants.yaml has it
    found: bool | None  # None: not run here, or no check is to find it
    by: str  # what has found it, or why it is not
    executions: int | None
    seconds: float | None  # of wall time; with --guests also what was built for it
    good: bool

    @property
    def where(self) -> str:
        """A cell of the table."""
        if self.found is None:
            return "none" if self.place in ("none", "survives") else f"{self.place}: not run"
        return self.place if self.found else "NOT FOUND"


def of_model(outcome: model.Outcome) -> Row:
    """The Row of a mutant of the model."""
    mutant, result = outcome.mutant, outcome.result
    common = (mutant.name, model.mistake(mutant))
    if result is None:
        return Row(*common, "survives", None, f"survives: {mutant.survives}", None, outcome.seconds, outcome.good)
    by = f"{mutant.scenario}: {outcome.by}" if outcome.killed else f"not by {mutant.scenario}"
    return Row(*common, "model", outcome.killed, by, result.executions, outcome.seconds, outcome.good)


def of_booted(outcome: mutants.Outcome) -> Row:
    """The Row of a mutant that is booted."""
    mutant = outcome.mutant
    by = mutant.by if outcome.found else f"{outcome.why}: {mutant.by}"
    seconds = None if outcome.found is None else outcome.seconds
    said = mutant.mistake or model.mistake(mutant)
    return Row(mutant.name, said, mutant.place, outcome.found, by, None, seconds, outcome.good)


def table(rows: Sequence[Row]) -> Table:
    """The table of `rows`."""
    view = Table()
    for head in ("name", "mistake", "found in", "by"):
        view.add_column(head, overflow="fold")
    for head in ("executions", "s"):
        view.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        view.add_row(
            Text(row.name),
            Text(row.mistake),
            Text(row.where),
            Text(row.by),
            "" if row.executions is None else f"{row.executions:,}",
            "" if row.seconds is None else f"{row.seconds:.1f}",
        )
    return view


def summary(rows: Sequence[Row]) -> str:
    """A line: how many were found in each place, with the time; and how many were not run."""
    found = Counter(row.place for row in rows if row.found)
    seconds = {place: sum(row.seconds or 0 for row in rows if row.found and row.place == place) for place in found}
    parts = [f"{place} {count} in {seconds[place]:.0f} s" for place, count in sorted(found.items())]
    missed = sum(row.found is False for row in rows)
    others = Counter(row.where for row in rows if row.found is None)
    parts += [f"{where} {count}" for where, count in sorted(others.items())]
    return f"found in: {', '.join(parts) or 'nothing'}; not found: {missed}"
