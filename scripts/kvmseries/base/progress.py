"""What runs, and how long is left: the lines that long work prints.

On a terminal the current step has a running clock; elsewhere (CI, a file) each step is a line
when it begins and a line when it ends.  How long a step takes is remembered in out/times.json
and used as the estimate next time; before that it is the estimate of the plan.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Callable

from rich.console import Console
from rich.status import Status

from . import paths

# What a step, and whatever takes long within it, is told of where it is.
Note = Callable[[str], object]
# Key, title, seconds: see Steps.
Step = tuple[str, str, float]

console = Console(stderr=True, highlight=False)


def clock(seconds: float) -> str:
    """Seconds as m:ss."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def say(text: str) -> None:
    """One line about what happens, on standard error."""
    console.print(text, markup=False, soft_wrap=True)


def _times() -> dict[str, float]:
    try:
        return json.loads(paths.out("times.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


class Steps:
    """The steps of a piece of work, with estimates.

    plan: list of (key, title, seconds): the key names the kind of step across runs; seconds is
    what it takes on 2 cores when nothing is known.  Steps run in the order of the plan; one that
    turns out not to be needed just ends at once.
    """

    # Whether a running clock is on the terminal: there is room for one, the outermost step's.
    live = False

    def __init__(self, plan: Sequence[Step]) -> None:
        self.left = list(plan)
        self.total = len(self.left)
        self.times = _times()

    def _remaining(self) -> float:
        return sum(self.times.get(key, seconds) for key, _, seconds in self.left)

    @contextlib.contextmanager
    def step(self, key: str) -> Iterator[Note]:
        """Run the next step, which must be `key`: a plan that lies about what is left is a bug."""
        planned, title, _ = self.left[0]
        assert planned == key, (planned, key)
        number = self.total - len(self.left) + 1
        left = self._remaining()
        line = f"[{number}/{self.total}] {title}"
        begin = time.monotonic()
        if console.is_terminal and not Steps.live:
            Steps.live = True
            try:
                with console.status(f"{line} (about {clock(left)} left)") as status:
                    yield _Note(status, line, begin, left)
            finally:
                Steps.live = False
        else:
            say(f"{line} (about {clock(left)} left)")
            yield _Note(None, line, begin, left)
        seconds = time.monotonic() - begin
        self.left.pop(0)
        say(f"{line}: {clock(seconds)}")
        self._remember(key, seconds)

    def _remember(self, key: str, seconds: float) -> None:
        times = _times()
        # A step that found its work done says nothing about how long the work takes.
        if seconds > 2:
            times[key] = round(seconds, 1)
            with contextlib.suppress(OSError):
                paths.out("times.json").write_text(json.dumps(times, indent=1), encoding="utf-8")


class _Note:
    """Lets a step say where it is."""

    def __init__(self, status: Status | None, line: str, begin: float, left: float) -> None:
        self.status, self.line, self.begin, self.left = status, line, begin, left
        self.shown = begin

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        left = max(0, self.left - (now - self.begin))
        if self.status:
            self.status.update(f"{self.line}: {text} (about {clock(left)} left)")
        elif now - self.shown > 30:
            self.shown = now
            say(f"{self.line}: {text} (about {clock(left)} left)")
        sys.stderr.flush()


def single(key: str, title: str, seconds: float) -> AbstractContextManager[Note]:
    """A plan of one step, as a context manager that yields its note function."""
    return Steps([(key, title, seconds)]).step(key)
