"""Bugs of patches/debug, where each must be found, and whether it is.

patches/debug/planted.yaml says where, and what its keys mean (planted.schema.json is its form); README.md there says what
the bug is.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as xml

import yaml

from ..base import paths, proc
from ..base.errors import Fail
from ..data import schema
from ..source import catalog, trees
from . import litmus

FOLDER = paths.ROOT / "patches/debug"
FILE = FOLDER / "planted.yaml"
CHECKS = "scripts/checks"
FORM = FOLDER / "planted.schema.json"


class Control(NamedTuple):
    """A bug that a patch of patches/debug plants."""

    patch: str  # the file's name
    name: str
    mistake: str  # as README.md says it
    place: str  # as planted.yaml has it
    check: str = ""  # node id of pytest
    test: str = ""  # name of a litmus test, with "litmus"
    why: str = ""  # no check finds it, with "none"
    model: str = ""  # the same mistake in model/mutants
    long: bool = False  # only run if it is named

    @property
    def by(self) -> str:
        """What must find it: a check, a litmus test; or why none does."""
        return self.check or self.test or self.why


class Outcome(NamedTuple):
    """What became of a Control."""

    control: Control
    found: bool | None  # None: not run here
    why: str = ""  # it was not found, or not run
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing says that it is missed."""
        return self.found is not False


def bugs(patch: Path) -> set[str]:
    """The names that kvm.planted= takes in a kernel with the patch and those below it; none where the patch is one bug."""
    text = patch.read_text(encoding="utf-8")
    return {name.replace("_", "-") for name in re.findall(r"^\+\tbug\((\w+)\)", text, re.M)}


def tables(text: str) -> list[dict[str, str]]:
    """The tables of a README whose first cells are names in backquotes: {name: the second cell}."""
    found = []
    for rows in re.findall(r"^\|[-|]+\n((?:\|.*\n)+)", text, re.M):
        cells = re.findall(r"^\| `([^`]+)` \| (.*?) \|", rows, re.M)
        if len(cells) == rows.count("\n"):
            if len(dict(cells)) != len(cells):
                raise Fail(f"{FOLDER.name}/README.md: a table has a name twice")
            found.append(dict(cells))
    return found


def load(file: Path = FILE) -> list[Control]:
    """All Controls; Fail, in one line, if the file is not of its form, or disagrees with the patches and README.md beside it."""
    try:
        data = yaml.load(file.read_text(encoding="utf-8"), Loader=_Strict)
    except yaml.YAMLError as error:
        raise Fail(f"{file.name} is no YAML: {' '.join(str(error).split())}") from None
    schema.check(data, file.name, FORM)
    known = tables((file.parent / "README.md").read_text(encoding="utf-8"))
    patches = next((table for table in known if any(name.endswith(".patch") for name in table)), {})
    found = []
    for patch, rows in data.items():
        path = file.parent / patch
        if not path.is_file():
            raise Fail(f"{file.name}: there is no {patch}")
        planted = bugs(path)
        # The table of a patch is the one that has names of its bugs alone.
        texts: Mapping[str, str] = next((table for table in known if planted and set(table) <= planted), {})
        if not planted:
            series = next(name for name in catalog.names() if patch.startswith(f"{name}-"))
            texts = {patch[len(series) + 1 : -len(".patch")]: patches.get(patch, "").partition("bug: ")[2]}
        if set(rows) != set(texts):
            wrong = sorted(map(str, set(rows) ^ set(texts)))[0]
            where = file.name if wrong in texts else "README.md's table"
            raise Fail(f"{file.name}: {patch} and README.md do not agree: '{wrong}' is not in {where}")
        found += [_control(patch, name, texts[name], rows[name]) for name in rows]
    missing = [
        (path.name, name)
        for path in sorted(file.parent.glob("*.patch"))
        for name in sorted(bugs(path))
        # A patch on top of another one writes the last line of its list again.
        if name not in {c.name for c in found if c.patch.partition("-")[0] == path.name.partition("-")[0]}
    ]
    if missing:
        raise Fail(f"{file.name}: '{missing[0][1]}', which {missing[0][0]} plants, is not there")
    alone = [name for name, text in patches.items() if text.startswith("bug: ") and name not in data]
    if alone:
        raise Fail(f"{file.name}: {alone[0]}, which is a bug, is not there")
    return found


class _Strict(yaml.SafeLoader):
    """YAML in which no key is there twice."""


def _mapping(loader: _Strict, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise Fail(f"{FILE.name}: '{twice[0]}' is there twice")
    return {str(key): loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value)}


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _control(patch: str, name: str, mistake: str, row: dict[str, Any]) -> Control:
    """The Control of a row of the file."""
    more = {**row, **({"check": f"{CHECKS}/{row['check']}"} if "check" in row else {})}
    return Control(patch, name, mistake.removeprefix("bug: "), **more)


def of_series(name: str) -> list[Control]:
    """The Controls for a series."""
    return [control for control in load() if control.patch.startswith(f"{name}-")]


def judge(controls: Iterable[Control], series: catalog.Series, guests: bool, named: Iterable[str]) -> list[Outcome]:
    """The Outcomes of `controls`; checks by pytest are run if `guests` is true, those that are long if they are `named`.
    Litmus tests are run at once."""
    named = set(named)
    seen: dict[str, Outcome] = {}
    outcomes = []
    for control in controls:
        if control.place == "none":
            outcomes.append(Outcome(control, None, "no check finds it"))
        elif control.place == "litmus":
            outcomes.append(_by_litmus(control, series))
        elif not guests or (control.long and control.name not in named):
            outcomes.append(Outcome(control, None, "not run here"))
        else:
            if control.check not in seen:
                seen[control.check] = by_pytest(control)
            outcomes.append(seen[control.check]._replace(control=control))
    return outcomes


@cache
def _herd() -> litmus.Herd | str:
    """herd7, or why it cannot be had."""
    try:
        return litmus.herd()
    except Fail as error:
        return str(error)


def _by_litmus(control: Control, series: catalog.Series) -> Outcome:
    """Whether herd7 says that the litmus test without what the bug takes away can be met."""
    program = _herd()
    if isinstance(program, str):
        return Outcome(control, None, f"not run here: {program}")
    test = next(test for test in litmus.tests() if test.name == control.test)
    begun = time.monotonic()
    verdict = litmus.run(program, test, trees.base(series).path / "tools/memory-model")
    why = litmus.complaint(test, verdict)
    return Outcome(control, not why, why, time.monotonic() - begun)


def by_pytest(control: Control) -> Outcome:
    """Whether the check of a Control passes: it does if the bug is found."""
    report = paths.out("controls", "junit.xml")
    report.parent.mkdir(parents=True, exist_ok=True)
    paths.remove(report)
    begun = time.monotonic()
    _, text = proc.run(
        [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", control.check],
        "pytest",
        cwd=paths.ROOT,
        env={"PYTHONPATH": os.pathsep.join(filter(None, [str(paths.ROOT / "scripts"), os.environ.get("PYTHONPATH")]))},
        check=False,
    )
    seconds = time.monotonic() - begun
    if not report.exists():
        raise Fail(f"{control.check}: pytest has no result: {proc.reason(text)}")
    found, why = verdict(report.read_text(encoding="utf-8"))
    return Outcome(control, found, why, seconds)


def verdict(junit: str) -> tuple[bool | None, str]:
    """(found or not, None if the check was skipped; why) in JUnit's XML of one check. No check is a bug that is not found."""
    cases = list(xml.fromstring(junit).iter("testcase"))
    for case in cases:
        for child in case:
            if child.tag in ("failure", "error"):
                lines = child.get("message", "").splitlines()
                return False, lines[0] if lines else child.tag
            if child.tag == "skipped":
                return None, f"skipped: {child.get('message', '')}"
    return (True, "") if cases else (False, "there is no such check")
