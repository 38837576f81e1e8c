"""Litmus tests (the rooms' litmus/) and herd7, which says of each whether its condition can be met.

A test carries its verdict (`Result: Never` or `Sometimes`).  X+no-Y.litmus is the twin of X.litmus
that lacks Y: the same condition, and it can be met.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..base import debian, paths, proc
from ..base.errors import Fail
from ..base.progress import say

FOLDERS = tuple(paths.ROOT / room / "litmus" for room in ("arch-arm64-kvm", "arch-x86-kvm-mmu", "virt-kvm"))
# herd7 and its libraries for amd64: package, version, sha256 of the .deb; and Debian's suites that have had them.
_PACKAGES = (
    ("herdtools7", "7.58-2", "97a6e2bfbc2c516cd9816e8c87c3acc412953479a3351b308d139e0af9550672"),
    ("libc6", "2.43-7", "5c71715c51103beb4fbba9fe9f8dff604af6610dfa71c70bff342f54a7860803"),
    ("libgmp10", "2:6.3.0+dfsg-5+b2", "032743c787f0e1e644e4dcfbdb38f01be8cb150cb9633f8be5e79aba6938f349"),
)
_SUITES = "forky sid"
# What linux 7.3's memory model asks for; older ones get on with it.
_OLDEST = (7, 58)
# CPU seconds for one test.
_LIMIT = 60
# By a test's first word: whose rules it is about.
MODELS = {"C": "LKMM", "AArch64": "AArch64"}
# All CPUs are in one inner shareable domain; so they are under linux.
_EXPECTED_FLAGS = {"Assuming-common-inner-shareable-domain"}


@dataclass(frozen=True)
class Test:
    """A litmus test, as its file says."""

    path: Path
    model: str  # "LKMM" or "AArch64"
    result: str  # "Never" or "Sometimes"
    initial: str  # the initial state
    condition: str

    @property
    def name(self) -> str:
        """The test's name, as herd7 and the file have it."""
        return self.path.name[: -len(".litmus")]

    @property
    def twin_of(self) -> str:
        """The name of the test that this one is a twin of, "" if it is none."""
        return self.name.partition("+no-")[0] if "+no-" in self.name else ""


class Verdict(NamedTuple):
    """What herd7 found."""

    result: str  # "Never", "Sometimes" or "Always"
    flags: frozenset[str]  # what it warns of: data-race, requires-BBM
    seconds: float


class Herd(NamedTuple):
    """A herd7 that runs here."""

    line: tuple[str, ...]  # its command line, to which a test is added
    version: str


def load(path: str | Path) -> Test:
    """The Test in the file `path`; Fail if it is not as a test of this project must be."""
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    first = re.match(r"(\w+) (\S+)\n", text)
    if not first or first[1] not in MODELS or f"{first[2]}.litmus" != path.name:
        raise Fail(f"{path.name}: its first line is not a model ({', '.join(MODELS)}) and its name")
    results = re.findall(r"^ \* Result: (\w+)$", text, re.M)
    if results not in (["Never"], ["Sometimes"]):
        raise Fail(f"{path.name}: it needs one line ' * Result: Never' or ' * Result: Sometimes'")
    initial = re.search(r"^\{(.*?)\}$", text, re.M | re.S)
    condition = re.search(r"^(?:filter|exists)\b.*", text, re.M | re.S)
    if not initial or not condition:
        raise Fail(f"{path.name}: it needs an initial state and a line that begins with 'exists'")
    return Test(path, MODELS[first[1]], results[0], initial[1].strip(), condition[0].strip())


def tests() -> list[Test]:
    """All tests of all rooms, each followed by its twins."""
    found = [load(path) for folder in FOLDERS for path in folder.glob("*.litmus")]
    return sorted(found, key=lambda test: (test.twin_of or test.name, test.twin_of != "", test.name))


def unpaired(found: Iterable[Test]) -> list[str]:
    """What is wrong with the pairs among the Tests `found`, a line each: a claim must have a twin
    that fails, in which nothing but the code differs."""
    lines = []
    by_name = {test.name: test for test in found}
    for test in found:
        twins = [other for other in found if other.twin_of == test.name]
        if not test.twin_of:
            if test.result != "Never":
                lines.append(f"{test.name}: a claim is about what happens never")
            if not twins:
                lines.append(f"{test.name}: no twin {test.name}+no-*.litmus shows what it rests on")
        elif test.twin_of not in by_name:
            lines.append(f"{test.name}: there is no {test.twin_of}.litmus that it would be a twin of")
        else:
            base = by_name[test.twin_of]
            if test.result != "Sometimes":
                lines.append(f"{test.name}: a twin must fail sometimes")
            if (test.model, test.initial, test.condition) != (base.model, base.initial, base.condition):
                lines.append(f"{test.name}: another model, initial state or condition than {base.name}")
    return lines


def herd() -> Herd:
    """A Herd: the machine's own if it is new enough, else _PACKAGES, unpacked in the cache directory
    and not installed.  Raises Fail if neither can be had."""
    own = _runs(("herd7",)) if shutil.which("herd7") else None
    if own:
        return own
    need = f"the litmus tests need herd7 {_OLDEST[0]}.{_OLDEST[1]} or newer"
    pins = hashlib.sha256(repr(_PACKAGES).encode()).hexdigest()[:8]
    folder = paths.cache(f"herd7-{_PACKAGES[0][1]}-{pins}")
    with paths.locked(folder.name, say, shared=True):
        if not folder.exists():
            say("fetching herd7, the memory model simulator")
            try:
                _unpack(folder)
            except Fail as error:
                # What apt's users do about it is said there for kernels.
                reason = re.split(r"[:;,] (?:or )?give your own", str(error))[0]
                raise Fail(
                    f"{need}, and none can be had: {reason}; install herdtools7, or put the .debs that "
                    f"litmus.py names, from an archive of Debian's old ones, into {paths.cache('deb')} as "
                    "PACKAGE_VERSION.deb"
                ) from None
        # Its own C library, too: the machine's may be older than what it was built with.
        loader = next(iter(sorted(folder.glob("lib/*/ld-linux*"))), folder)
        libraries = ("--library-path", str(loader.parent))
        found = _runs((str(loader), *libraries, str(folder / "bin/herd7"), "-set-libdir", str(folder / "herd")))
        if not found:
            paths.remove(folder)
            raise Fail(f"{need}, and Debian's for amd64 does not run here: install herdtools7")
    return found


def _runs(line: Iterable[str]) -> Herd | None:
    """The Herd with this command line; None if it does not run or is too old."""
    try:
        status, text = proc.attempt([*line, "-version"], "herd7")
    except Fail:
        return None
    match = re.match(r"(\d+)\.(\d+)", text)
    if status or not match or (int(match[1]), int(match[2])) < _OLDEST:
        return None
    return Herd(tuple(line), match[0])


def _unpack(folder: Path) -> None:
    proc.need("dpkg-deb")
    with paths.whole(folder) as part:
        everything = part / "all"
        everything.mkdir()
        for package, version, sha256 in _PACKAGES:
            deb = debian.fetch_pinned(package, version, _SUITES, sha256)
            proc.run(["dpkg-deb", "-x", str(deb), str(everything)], "dpkg-deb")
        # A tenth of it.
        (part / "bin").mkdir()
        for old, new in (("bin/herd7", "bin/herd7"), ("share/herdtools7/herd", "herd"), ("lib", "lib")):
            (everything / "usr" / old).rename(part / new)
        paths.remove(everything)


def run(program: Herd, test: Test, model: Path) -> Verdict:
    """The Verdict of the Herd `program` on `test`; `model` is the tools/memory-model of a kernel."""
    line = [*program.line, "-timeout", str(_LIMIT)]
    if test.model == "LKMM":
        line += ["-conf", "linux-kernel.cfg"]
    _, text = proc.attempt([*line, str(test.path)], "herd7", cwd=model)
    found = re.search(rf"^Observation {re.escape(test.name)} (Never|Sometimes|Always) ", text, re.M)
    if not found or re.search(r"^Warning: ", text, re.M):
        raise Fail(f"herd7 has no verdict on {test.name}: {proc.reason(text)}")
    seconds = re.search(rf"^Time {re.escape(test.name)} ([\d.]+)", text, re.M)
    return Verdict(found[1], frozenset(re.findall(r"^Flag (\S+)", text, re.M)), float(seconds[1]) if seconds else 0)


def complaint(test: Test, verdict: Verdict) -> str:
    """Why `verdict` is not what the test says; "" if it is."""
    if verdict.result != test.result:
        return f"{test.name}: {verdict.result}, not {test.result}"
    flags = sorted(verdict.flags - _EXPECTED_FLAGS)
    if flags and test.result == "Never":
        return f"{test.name}: {test.result}, but with {', '.join(flags)}"
    return ""
