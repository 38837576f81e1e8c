"""patches/<series>/: the base that a series applies to, its patches and its milestones."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.parser import HeaderParser
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ..base import paths
from ..base.errors import Fail, Usage
from .projects import PROJECTS

ARCHES = ("arm64", "x86_64")
# The milestone whose patches are each on their own on the base.
FIXES = "fixes"
T = TypeVar("T")


@dataclass(frozen=True)
class Version:
    """A base that the series is known to apply to, as Debian packages it."""

    kernel: str  # "5.10.262"; `release` in the file where the base is none
    package: str  # binary package that holds the source tarball, or source package
    version: str  # the package's version
    suite: str  # "bullseye-security": where to look for it
    sha256: str  # of the .deb, or of `file`
    file: str = ""  # the tarball, of a source package
    # What is built of it (arch, "tests", "suite") to the id of that, see ids.py; may be empty.
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The package's version as part of a file's name: without its epoch, whose colon make and
        search paths take for something else."""
        return self.version.rpartition(":")[2]


@dataclass(frozen=True)
class Part:
    """A milestone: its patches, and those that it needs below them.  Paths, in order."""

    name: str
    needed: tuple[Path, ...]
    patches: tuple[Path, ...]


@dataclass(frozen=True)
class Steps:
    """What the file `milestones` says."""

    ends: dict[str, int]  # milestone -> number of its last patch
    on: dict[str, tuple[str, ...]]  # milestone -> those that it is on, or ("base",); others are on the one before
    needs: dict[int, tuple[int, ...]]  # number of a fix -> numbers of the patches that it needs


@dataclass(frozen=True)
class Series:
    """One directory of patches/."""

    name: str
    path: Path
    kernel: str  # version of the base, "5.10.262" (linux) or "10.0.13" (QEMU)
    tag: str  # upstream's git tag of the base
    versions: tuple[Version, ...]  # of Version; the first is the one that is fetched
    arches: tuple[str, ...]  # arches that it is built and tested for
    patches: tuple[Path, ...]  # paths of 0001-*.patch ... in order
    project: str = "linux"  # or "qemu"
    port: str = ""  # the series that it is a port of, see verify/port.py

    @cached_property
    def _steps(self) -> Steps:
        # Not read by load(): export must work for a file that names what only the new patches have.
        return steps(self.path / "milestones", [subject(patch) for patch in self.patches])

    @property
    def milestones(self) -> dict[str, int]:
        """The milestones, each to the number of its last patch."""
        return self._steps.ends

    @property
    def on(self) -> dict[str, tuple[str, ...]]:
        """See Steps."""
        return self._steps.on

    @property
    def needs(self) -> dict[int, tuple[int, ...]]:
        """See Steps."""
        return self._steps.needs

    @property
    def cover(self) -> Path:
        """Path of the cover letter."""
        return self.path / "0000-cover-letter.patch"

    def letter(self, milestone: str) -> Path:
        """Path of the letter of a milestone, which may not be there."""
        return self.path / "letters" / f"{milestone}.txt"

    def milestone(self, name: str) -> Part:
        """The Part of the series that the milestone `name` is.  Raises Usage if there is none."""
        if name not in self.milestones:
            raise Usage(f"{self.name} has no milestone '{name}' (milestones: {', '.join(self.milestones) or 'none'})")
        whole = self._whole(name)
        own = self._own(name)
        return Part(name, tuple(patch for patch in self.patches if patch in whole and patch not in own), own)

    def _before(self, milestone: str) -> str:
        """The milestone that ends before `milestone` does, or "base"."""
        ends = [(count, name) for name, count in self.milestones.items() if count < self.milestones[milestone]]
        return max(ends)[1] if ends else "base"

    def _own(self, milestone: str) -> tuple[Path, ...]:
        """The patches of one milestone."""
        return self.patches[self.milestones.get(self._before(milestone), 0) : self.milestones[milestone]]

    def _whole(self, milestone: str) -> frozenset[Path]:
        """The patches of a milestone, or of "base", and of all that it needs."""
        if milestone == "base":
            return frozenset()
        below = self.on.get(milestone, (self._before(milestone),))
        return frozenset(self._own(milestone)).union(*map(self._whole, below))

    def alone(self, number: int) -> tuple[Path, ...]:
        """The patches that fix `number` is applied with to the base: those that it needs, in order, and itself."""
        below = {patch for one in self.needs.get(number, ()) for patch in self.alone(one)}
        return (*sorted(below), self.patches[number - 1])

    @property
    def fixes(self) -> tuple[int, ...]:
        """Numbers of the patches of the milestone FIXES; none if there is no such."""
        if FIXES not in self.milestones:
            return ()
        return tuple(self.patches.index(patch) + 1 for patch in self.milestone(FIXES).patches)

    def upto(self, text: str) -> int:
        """The number of patches meant by `text`: a number (0 is the base) or a milestone."""
        if text in self.milestones:
            text = str(self.milestones[text])
        if not re.fullmatch(r"\d+", text):
            names = ", ".join(self.milestones) or "none"
            last = len(self.patches)
            raise Usage(f"{self.name} has no milestone '{text}' (milestones: {names}; or a number from 0 to {last})")
        if int(text) > len(self.patches):
            raise Usage(f"--upto {text} is beyond the end: {self.name} has {len(self.patches)} patches")
        return int(text)

    def patches_id(self, count: int) -> str:
        """A short hash of the first `count` patches: names a tree that has them, with their messages."""
        return _hash(patch.read_bytes() for patch in self.patches[:count])

    def diffs_id(self, count: int) -> str:
        """A short hash of what the first `count` patches change: a message that is worded anew keeps it."""
        return _hash(patch.read_bytes().partition(b"\ndiff --git ")[2] for patch in self.patches[:count])


def _hash(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


@dataclass(frozen=True)
class Point:
    """A kernel to measure: "base", "series", "upto:NAME", or another series' "NAME:base"."""

    label: str
    count: int  # of patches
    series: Series


def names() -> list[str]:
    """Names of all series, sorted."""
    return sorted(path.parent.name for path in paths.PATCHES.glob("*/base"))


def load(name: str) -> Series:
    """The Series `name`.  Raises Usage if there is none, Fail if its files are not right."""
    if name not in names():
        raise Usage(f"unknown series '{name}': there is {', '.join(names()) or 'none'}")
    path = paths.PATCHES / name
    try:
        base = yaml.safe_load((path / "base").read_text(encoding="utf-8"))
        project = base["project"] if "project" in base else "linux"
        if project not in PROJECTS:
            raise Fail(f"{path / 'base'}: unknown project '{project}': there is {', '.join(PROJECTS)}")
        release = "kernel" if project == "linux" else "release"
        versions = tuple(
            Version(kernel=entry[release], **{key: value for key, value in entry.items() if key != release})
            for entry in base["versions"]
        )
        patches = tuple(sorted(p for p in path.glob("[0-9]*.patch") if not p.name.startswith("0000-")))
        arches, port = tuple(base["arches"]), base.get("port", "")
        series = Series(name, path, base[release], base["tag"], versions, arches, patches, project, port)
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise Fail(f"{path / 'base'} is not right: {error!r}") from None
    for number, patch in enumerate(patches, 1):
        if not patch.name.startswith(f"{number:04d}-"):
            raise Fail(f"{path}: patch {number} is missing ({patch.name} is in its place)")
    return series


def steps(file: Path, subjects: Sequence[str]) -> Steps:
    """What `file` says of patches with these subjects.  Raises Fail if it is not right; it may be missing."""

    def number(where: str, wanted: str) -> int:
        if subjects.count(wanted) != 1:
            many = "several patches have" if wanted in subjects else "no patch has"
            raise Fail(f"{file}: {where}: {many} the subject '{wanted}': write one that there is once")
        return subjects.index(wanted) + 1

    data = _parts(file)
    ends = {name: number(f"milestones, {name}", last) for name, last in data["milestones"].items()}
    needs = {
        number("needs", fix): tuple(number(f"needs, {fix}", one) for one in below)
        for fix, below in data["needs"].items()
    }
    on = {name: tuple(below) for name, below in data["based-on"].items()}
    for fixing, numbers in needs.items():
        _check_fix(file, ends, fixing, numbers, subjects)
    for name, below in on.items():
        _check_milestone(file, ends, name, below)
    return Steps(ends, on, needs)


def mapping(file: Path) -> dict[Any, Any]:
    """The mapping that a file in YAML is; {} if it is empty.  Raises Fail for anything else."""
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Fail(f"{file} is not right: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict) and data is not None:
        raise Fail(f"{file} is not right: it is no mapping")
    return data or {}


def _parts(file: Path) -> dict[str, Any]:
    """The file `milestones`: {"milestones": {name: subject}, "based-on": {name: [name]}, "needs": {subject: [subject]}}."""
    parts: dict[str, Any] = {"milestones": {}, "based-on": {}, "needs": {}}
    if not file.exists():
        return parts
    data = mapping(file)
    if not set(data) <= set(parts):
        raise Fail(f"{file}: it has {', '.join(parts)}, and nothing else")
    for part, entries in data.items():
        for key, value in entries.items() if isinstance(entries, dict) else ((part, None),):
            words = [value] if part == "milestones" else value
            named = part == "needs" or re.fullmatch(r"[a-z][a-z0-9-]*", str(key))
            if not named or not isinstance(words, list) or not all(isinstance(w, str) for w in (key, *words)):
                what = {"milestones": "NAME: SUBJECT", "based-on": "NAME: [NAME]", "needs": "SUBJECT: [SUBJECT]"}
                raise Fail(f"{file}: {part}: '{key}' is not of the form {what[part]}")
    return {**parts, **data}


def _check_fix(
    file: Path, milestones: Mapping[str, int], fix: int, below: Sequence[int], subjects: Sequence[str]
) -> None:
    """Raise Fail unless `fix`, which needs `below`, is a patch of the milestone FIXES, and they are earlier ones."""
    last = milestones.get(FIXES, 0)
    first = max([count for count in milestones.values() if count < last], default=0)
    if not first < fix <= last or not all(0 < number < fix for number in below):
        takes = f"it takes a patch of the milestone {FIXES}, and patches before it"
        raise Fail(f"{file}: needs, {subjects[fix - 1]}: {takes}")


def _check_milestone(file: Path, milestones: Mapping[str, int], name: str, below: Sequence[str]) -> None:
    """Raise Fail unless `name` is a milestone and `below` are earlier ones, or base alone."""
    earlier = [other for other, count in milestones.items() if count < milestones.get(name, 0)]
    if name not in milestones or tuple(below) != ("base",) and not (below and set(below) <= set(earlier)):
        takes = "it takes a milestone, and an earlier one or base, or several earlier ones"
        raise Fail(f"{file}: based-on, {name}: [{', '.join(below)}]: {takes}")


def subject(patch: Path) -> str:
    """Subject of a patch file, without [PATCH n/m]."""
    found = HeaderParser().parsestr(patch.read_text(encoding="utf-8"))["Subject"]
    if found is None:
        raise Fail(f"{patch} has no subject: it is not a patch made by scripts/series export")
    return re.sub(r"^\s*\[[^]]*\]\s*", "", found.replace("\n", "")).strip()


def check_arch(series: Series, arch: str) -> None:
    """Raise Usage unless `series` is built for `arch`."""
    if arch not in series.arches:
        raise Usage(f"unknown arch '{arch}': {series.name} is built for {', '.join(series.arches)}")


def points(series: Series, text: str) -> tuple[Point, ...]:
    """Points from "base,series,upto:fast-path,v7.3:base", the value of --kernels."""
    found = []
    for label in text.split(","):
        if label == "base":
            found.append(Point(label, 0, series))
        elif label == "series":
            found.append(Point(label, len(series.patches), series))
        elif label.startswith("upto:"):
            found.append(Point(label, series.upto(label[len("upto:") :]), series))
        elif label.endswith(":base"):
            other = load(label[: -len(":base")])
            if (own := series.project) != other.project:
                raise Usage(f"--kernels {text}: {other.name} is for {other.project}, {series.name} for {own}")
            found.append(Point(label, 0, other))
        else:
            kinds = "base, series, upto:MILESTONE or OTHER:base, the base of another series"
            raise Usage(f"unknown kernel '{label}': it is {kinds}")
    if len({point.label for point in found}) != len(found):
        raise Usage(f"--kernels {text} names a kernel twice")
    return tuple(found)


def in_turn(points_: Sequence[T], number: int) -> Sequence[T]:
    """The order of `points_` in round `number`: every other round the other way round, so that what drifts hits all
    alike."""
    return points_[::-1] if number % 2 else points_
