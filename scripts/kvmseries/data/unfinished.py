"""What a benchmark that breaks off has measured: a results file of its own, from which the same command goes on.

NAME.unfinished.json is next to NAME.json and goes when that is written.  Its `made` has one more key, `unfinished`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ..base import paths
from ..base.errors import Fail
from ..base.progress import say
from . import results, shape
from .shape import Host, Ids, Made, Part, Run, Trace, Unfinished

Boot = TypeVar("Boot")


@dataclass
class Taken:
    """What has been measured so far."""

    parts: list[Part] = field(default_factory=list)  # names (lists of text and numbers) of the boots that are done
    table: dict[tuple[str, ...], Run] = field(default_factory=dict)  # runs, by shape.key()
    versions: dict[str, str] = field(default_factory=dict)  # of kernels, for results.host_info()
    traces: list[Trace] = field(default_factory=list)  # of migrations
    complaints: list[str] = field(default_factory=list)  # lines

    @property
    def runs(self) -> list[Run]:
        """The runs for results.save()."""
        return list(self.table.values())

    def left(self, boots: Iterable[Boot], name: Callable[[Boot], Part]) -> list[Boot]:
        """Those of `boots` that are not done; name(boot) is its name in `parts`."""
        return [boot for boot in boots if name(boot) not in self.parts]

    def each(self, left: Sequence[Boot], name: Callable[[Boot], Part], keep: Callable[[int], object]) -> Iterator[Boot]:
        """Yields each of `left`.  One is done when the next is asked for: keep(how many are left) is called then.  One
        that breaks off is not."""
        for number, boot in enumerate(left, 1):
            yield boot
            self.parts.append(name(boot))
            keep(len(left) - number)


class Keeper:
    """Keeps what a benchmark has measured after each boot.  The benchmark puts it into `taken`, which has what an
    earlier one with the same `what` has left.

    target: path of the results file.  what: all that the figures follow from, for JSON.  about: called with versions;
    returns (host, ids) for results.save().  command: the command line.
    """

    def __init__(
        self, target: str | Path, what: object, about: Callable[[dict[str, str]], tuple[Host, Ids]], command: str
    ) -> None:
        self.target = Path(target)
        self.path = self.target.with_name(f"{self.target.stem}.unfinished.json")
        self.about, self.command = about, command
        self.key = hashlib.sha256(json.dumps(what, default=str).encode()).hexdigest()[:16]
        self.begin, self.seconds, self.left = time.monotonic(), 0, 0
        self.taken = Taken()
        if self.path.exists():
            self._load()

    def _load(self) -> None:
        data = results.load(self.path)
        found = data["made"].get("unfinished", {})
        if found.get("key") != self.key:
            say(f"{self.path} is of another measurement or state: this one begins anew, and replaces it")
            return
        self.taken = Taken(
            [list(part) for part in found["parts"]],
            {shape.key(run): run for run in data["runs"]},
            dict(data["host"].get("kernels", {})),
            data.get("traces", []),
            found["complaints"],
        )
        self.seconds, self.left = data["made"]["seconds"], found["left"]
        say(f"going on with the {len(self.taken.parts)} boots of {self.path}; remove it to begin anew")

    def keep(self, left: int) -> None:
        """Write what is in `taken`; left: how many boots are still to be done."""
        self.left = left
        host, ids = self.about(self.taken.versions)
        rest: Unfinished = {
            "key": self.key,
            "parts": self.taken.parts,
            "left": left,
            "complaints": self.taken.complaints,
        }
        results.save(self.path, host, self.taken.runs, {**self._made(ids), "unfinished": rest}, self.taken.traces)

    def save(self, host: Host, ids: Ids, runs: Iterable[Run]) -> None:
        """Write the results file; what was kept goes."""
        results.save(self.target, host, runs, self._made(ids), self.taken.traces)
        paths.remove(self.path)

    def _made(self, ids: Ids) -> Made:
        seconds = self.seconds + round(time.monotonic() - self.begin)
        return {"ids": ids, "command": self.command, "seconds": seconds}

    def failed(self, error: Fail) -> Fail:
        """The Fail for `error`, with where what was measured is."""
        if not self.path.exists() or not self.taken.parts:
            return error
        return Fail(
            f"{error}; {len(self.taken.parts)} boots of {len(self.taken.parts) + self.left} are kept in {self.path}: "
            "the same command goes on with them",
            error.status,
        )
