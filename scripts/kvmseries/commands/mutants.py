"""scripts/series mutants"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from runner import build, mutants as model, prove

from ..base import files
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..data import results
from ..verify import mutants
from . import modeltree, show

HELP = "check that each mutant is found: a table of where, and how long it took"
SERIES = True
PROJECTS = ("linux",)
# Of the file that --json names.
SCHEMA = 1


class Row(NamedTuple):
    """A mutant and one place where it must be found, as the table and the file have it."""

    name: str
    mistake: str
    kind: str  # of a mutant of the model
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


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which tree, which mutants."""
    modeltree.add_arguments(parser)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only these of patches/mutants/mutants.yaml (default: all)"
    )
    parser.add_argument(
        "--guests",
        action="store_true",
        help="also run the checks that boot guests (hours; NAME chooses some). Those of virtual "
        "time are run only if NAME names them. Without --guests they are listed as not run",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the table to FILE")


def run(options: Namespace) -> None:
    """Print which are found; raise Fail if one is not, that must be."""
    own = bool(options.applied or options.upto or options.arch or options.tree)
    if options.guests and own:
        raise Usage("--guests excludes --applied, --upto, --arch and --tree: the checks are of the whole series")
    every = modeltree.mutants_of(options)
    booted = [] if own else [mutant for mutant in mutants.of_series(options.series.name) if mutant.booted]
    unknown = set(options.names) - {mutant.name for mutant in (*every, *booted)}
    if unknown:
        raise Usage(f"no mutant '{sorted(unknown)[0]}' of {options.series.name} in {mutants.FILE}")
    modeltree.check(options)
    if options.json:
        show.check_writable(options.json)
    chosen = [mutant for mutant in every if not options.names or mutant.name in options.names]
    booted = [mutant for mutant in booted if not options.names or mutant.name in options.names]
    rows: list[Row] = []
    if chosen:
        tree = modeltree.find(options)
        outcomes = model.judge_all(chosen, tree, build.checker(), lambda outcome: say(outcome.line))
        rows += [of_model(outcome) for outcome in outcomes]
    rows += [of_booted(outcome) for outcome in mutants.judge(booted, options.series, options.guests, options.names)]
    show.table(table(rows))
    if chosen:
        say(prove.summary(outcomes))
    say(summary(rows))
    if options.json:
        data = {
            "schema": SCHEMA,
            "series": options.series.name,
            "host": results.host_info(("gcc", "rustc")),
            "mutants": [row._asdict() for row in rows],
        }
        files.write(options.json, files.lines(data, "mutants"))
    bad = [row for row in rows if not row.good]
    if bad:
        raise Fail(f"{len(bad)} of {len(rows)} mutants are not found, the first: {bad[0].name}: {bad[0].by}")


def of_model(outcome: model.Outcome) -> Row:
    """The Row of a mutant of the model."""
    mutant, result = outcome.mutant, outcome.result
    common = (mutant.name, model.mistake(mutant), mutant.kind)
    if result is None:
        return Row(*common, "survives", None, f"survives: {mutant.survives}", None, outcome.seconds, outcome.good)
    by = f"{mutant.scenario}: {outcome.by}" if outcome.killed else f"not by {mutant.scenario}"
    return Row(*common, "model", outcome.killed, by, result.executions, outcome.seconds, outcome.good)


def of_booted(outcome: mutants.Outcome) -> Row:
    """The Row of a mutant that is booted."""
    mutant = outcome.mutant
    by = mutant.by if outcome.found else f"{outcome.why}: {mutant.by}"
    seconds = None if outcome.found is None else outcome.seconds
    return Row(mutant.name, mutant.mistake, "", mutant.place, outcome.found, by, None, seconds, outcome.good)


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
