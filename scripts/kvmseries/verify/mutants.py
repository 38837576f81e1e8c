"""Mutants: where each must be found (patches/mutants/mutants.yaml), and whether checks and litmus tests find it.

The model's own runner finds those of the model.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as xml

import yaml

from ..base import paths, proc
from ..base.errors import Fail
from ..source import catalog, trees
from . import litmus

FILE = paths.PATCHES / "mutants" / "mutants.yaml"
CHECKS = "tests"
# Where pytest runs what must find a mutant.
_BY_CHECK = ("selftest", "stress", "trace", "time", "migration")
_PLACES = (*_BY_CHECK, "litmus", "none")
_BOUNDS = ("1", "2", "3", "all")
_OF_MODEL = ("kind", "model", "bound", "milestone")


class Mutant(NamedTuple):
    """A row of the table."""

    series: str
    name: str
    kind: str = ""  # of a mutant of the model
    scenario: str = ""  # of the model, that must find it
    bound: str = "2"  # loom's there
    milestone: str = ""  # it is in the code of that one; "": of the whole series
    mistake: str = ""  # of one that is booted; "": of one of the model, as its patch says
    place: str = ""  # one of _PLACES
    by: str = ""  # there: the check's node id, or the litmus test; or why none finds it
    long: bool = False  # its check is only run if it is named

    @property
    def path(self) -> Path:
        """Its patch, unless that holds several."""
        own = FILE.parent / self.series / f"{self.name}.patch"
        return own if own.exists() else files(self.series, (self.name,)).get(self.name, own)

    @property
    def survives(self) -> str:
        """Why no scenario of the model finds a mutant of the model; "" if one does."""
        return "" if self.scenario or not self.kind else self.by

    @property
    def booted(self) -> bool:
        """Whether a kernel, or QEMU, has it."""
        return bool(self.place and (self.scenario or not self.kind))


class Outcome(NamedTuple):
    """What became of a Mutant that is booted."""

    mutant: Mutant
    found: bool | None  # None: not run here
    why: str = ""  # it was not found, or not run
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing says that it is missed."""
        return self.found is not False


def files(series: str, names: Collection[str], folder: Path = FILE.parent) -> dict[str, Path]:
    """The patches in `folder` of a series whose table has `names`, by their own.  A port takes those of the series that it
    is of, unless it has its own."""
    own = {path.stem: path for path in sorted((folder / series).glob("*.patch"))}
    port = catalog.load(series).port
    others = {path.stem: path for path in sorted((folder / port).glob("*.patch"))} if port else {}
    return {**{name: path for name, path in others.items() if name in names}, **own}


def held(patch: Path) -> set[str]:
    """The names that kvm.mutant= takes in a kernel with the patch and those below it; none where the patch is one mutant."""
    text = patch.read_text(encoding="utf-8")
    return {name.replace("_", "-") for name in re.findall(r"^\+\tmutant\((\w+)\)", text, re.M)}


def load(file: Path = FILE) -> list[Mutant]:
    """All Mutants; Fail, in one line, if the table is none, or does not agree with the patches beside it."""
    try:
        data = yaml.load(file.read_text(encoding="utf-8"), Loader=_Strict)
    except yaml.YAMLError as error:
        raise Fail(f"{file.name} is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise Fail(f"{file.name}: it has no series")
    found = []
    for series, rows in data.items():
        if series not in catalog.names() or not isinstance(rows, dict):
            raise Fail(f"{file.name}: {series} is no series, or has no mutants")
        of_series = [_mutant(file, series, name, row) for name, row in rows.items() if row is not None]
        _compare(file, series, of_series)
        found += of_series
    return found


def _mutant(file: Path, series: str, name: str, row: Any) -> Mutant:
    """The Mutant of a row of the table; Fail if the row is not as the head of the file says."""
    if not isinstance(row, dict):
        raise Fail(f"{file.name}: {series}: {name}: it is no mapping")
    long = row.get("long", False)
    row = {key: str(value) for key, value in row.items() if key != "long"}
    places = [key for key in row if key in _PLACES]
    bound = row.get("bound", "2")
    for wrong, what in (
        (long not in (True, False), "long is true, or not there"),
        *((key not in (*_OF_MODEL, "mistake", *_PLACES), f"'{key}' is not known") for key in row),
        *((not value.strip(), f"'{key}' says nothing") for key, value in row.items()),
        (len(places) > 1, f"it has two places to boot it: {' and '.join(places)}"),
        (
            not places and "model" not in row,
            "it has no place where it must be found: a scenario of the model, a check, a litmus test, or 'none' and why",
        ),
        (
            "kind" not in row and set(_OF_MODEL) & set(row),
            "model, bound and milestone are for a mutant of the model, which has a kind",
        ),
        (
            "kind" in row and "model" not in row and places != ["none"],
            "a mutant of the model needs a scenario, or 'none' and why",
        ),
        (
            "mistake" in row
            and (not places or "kind" in row and "model" not in row)
            or not {"kind", "mistake"} & set(row),
            "what is booted, and that alone, has a mistake and a place; the patch of one of the model may say the mistake",
        ),
        (bound not in _BOUNDS, f"bound is one of {', '.join(_BOUNDS)}"),
        (long and not set(places) & set(_BY_CHECK), "long is for checks"),
    ):
        if wrong:
            raise Fail(f"{file.name}: {series}: {name}: {what}")
    place = "".join(places)
    by = row.get(place, "")
    if place in _BY_CHECK:
        by = f"{CHECKS}/{series}/{by.replace('[]', f'[{name}]')}"
    kind, scenario, milestone = (row.get(key, "") for key in ("kind", "model", "milestone"))
    return Mutant(series, name, kind, scenario, bound, milestone, row.get("mistake", ""), place, by, long)


def _compare(file: Path, series: str, mutants: Collection[Mutant]) -> None:
    """Raise Fail if a mutant has no patch, or a patch has no mutant."""
    known = {mutant.name for mutant in mutants}
    found = {name: held(path) for name, path in files(series, known, file.parent).items()}
    several = {name for names in found.values() for name in names}
    alone = {name for name, names in found.items() if not names}
    of_model = {mutant.name for mutant in mutants if mutant.kind}
    # One of the model may be in a kernel as well.
    needed = {mutant.name for mutant in mutants if mutant.booted and mutant.name not in alone - of_model}
    for names, where in (
        (alone - known, f"{file.name} does not have it"),
        (several - needed, f"{file.name} does not have it as one that is booted"),
        (of_model - alone, f"there is no {series}/NAME.patch of it"),
        (needed - several, "no patch plants it"),
    ):
        if names:
            raise Fail(f"mutant '{sorted(names)[0]}' of {series}: {where}")


class _Strict(yaml.SafeLoader):
    """YAML in which no key is there twice, but for those of << that are given anew."""


def _mapping(loader: _Strict, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [key.value for key, _ in node.value]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise Fail(f"{FILE.name}: '{twice[0]}' is there twice")
    loader.flatten_mapping(node)
    return {str(loader.construct_object(key)): loader.construct_object(value, deep=True) for key, value in node.value}


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def of_series(name: str) -> list[Mutant]:
    """The Mutants of a series."""
    return [mutant for mutant in load(FILE) if mutant.series == name]


def patches(series: str) -> list[Path]:
    """All patches for the kernels of a series, or for QEMU, that are no part of it: mutants that are booted, and instruments."""
    rows = of_series(series)
    of_model = {mutant.name for mutant in rows if mutant.kind}
    mutants = files(series, {mutant.name for mutant in rows})
    instruments = sorted((paths.PATCHES / "instruments" / series).glob("*.patch"))
    return [*(path for name, path in mutants.items() if name not in of_model), *instruments]


def judge(mutants: Iterable[Mutant], series: catalog.Series, guests: bool, named: Iterable[str]) -> list[Outcome]:
    """The Outcomes of `mutants`; checks by pytest are run if `guests` is true, those that are long if they are `named`.
    Litmus tests are run at once."""
    named = set(named)
    seen: dict[str, Outcome] = {}
    outcomes = []
    for mutant in mutants:
        if mutant.place == "none":
            outcomes.append(Outcome(mutant, None, "no check finds it"))
        elif mutant.place == "litmus":
            outcomes.append(_by_litmus(mutant, series))
        elif not guests or (mutant.long and mutant.name not in named):
            outcomes.append(Outcome(mutant, None, "not run here"))
        else:
            if mutant.by not in seen:
                seen[mutant.by] = by_pytest(mutant)
            outcomes.append(seen[mutant.by]._replace(mutant=mutant))
    return outcomes


@cache
def _herd() -> litmus.Herd | str:
    """herd7, or why it cannot be had."""
    try:
        return litmus.herd()
    except Fail as error:
        return str(error)


def _by_litmus(mutant: Mutant, series: catalog.Series) -> Outcome:
    """Whether herd7 says that the litmus test without what the mutant takes away can be met."""
    program = _herd()
    if isinstance(program, str):
        return Outcome(mutant, None, f"not run here: {program}")
    test = next(test for test in litmus.tests() if test.name == mutant.by)
    begun = time.monotonic()
    verdict = litmus.run(program, test, trees.base(series).path / "tools/memory-model")
    why = litmus.complaint(test, verdict)
    return Outcome(mutant, not why, why, time.monotonic() - begun)


def by_pytest(mutant: Mutant) -> Outcome:
    """Whether the check of a Mutant passes: it does if the mutant is found."""
    report = paths.out("mutants", "junit.xml")
    report.parent.mkdir(parents=True, exist_ok=True)
    paths.remove(report)
    begun = time.monotonic()
    _, text = proc.attempt(
        [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", mutant.by], "pytest", cwd=paths.ROOT
    )
    seconds = time.monotonic() - begun
    if not report.exists():
        raise Fail(f"{mutant.by}: pytest has no result: {proc.reason(text)}")
    found, why = verdict(report.read_text(encoding="utf-8"))
    return Outcome(mutant, found, why, seconds)


def verdict(junit: str) -> tuple[bool | None, str]:
    """(found or not, None if the check was skipped; why) in JUnit's XML of one check. No check is a mutant that is not found."""
    cases = list(xml.fromstring(junit).iter("testcase"))
    for case in cases:
        for child in case:
            if child.tag in ("failure", "error"):
                lines = child.get("message", "").splitlines()
                return False, lines[0] if lines else child.tag
            if child.tag == "skipped":
                return None, f"skipped: {child.get('message', '')}"
    return (True, "") if cases else (False, "there is no such check")
