"""What runs, and how long is left: the lines that long work prints.

On a terminal the current step has a running clock; elsewhere (CI, a file) each step is a line
when it begins and a line when it ends.  How long a step takes is remembered in out/times.json
and used as the estimate next time; before that it is the estimate of the plan.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Callable

from rich.console import Console

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
        line = f"[{self.total - len(self.left) + 1}/{self.total}] {title}"
        begin, left = time.monotonic(), self._remaining()
        first = f"{line} (about {clock(left)} left)"
        if console.is_terminal and not Steps.live:
            Steps.live = True
            try:
                with console.status(first) as status:
                    yield _note(line, begin, left, status.update, 0)
            finally:
                Steps.live = False
        else:
            say(first)
            yield _note(line, begin, left, say, 30)
        seconds = time.monotonic() - begin
        self.left.pop(0)
        say(f"{line}: {clock(seconds)}")
        self._remember(key, seconds)

    def _remember(self, key: str, seconds: float) -> None:
        # A step that found its work done says nothing about how long the work takes.
        if seconds > 2:
            with contextlib.suppress(OSError):
                text = json.dumps({**_times(), key: round(seconds, 1)}, indent=1)
                paths.out("times.json").write_text(text, encoding="utf-8")


def _note(line: str, begin: float, left: float, show: Note, pause: float) -> Note:
    """What lets a step say where it is, by `show`, at most once in `pause` seconds."""
    shown = begin

    def note(text: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= pause:
            shown = now
            show(f"{line}: {text} (about {clock(max(0, left - (now - begin)))} left)")

    return note


def single(key: str, title: str, seconds: float) -> AbstractContextManager[Note]:
    """A plan of one step, as a context manager that yields its note function."""
    return Steps([(key, title, seconds)]).step(key)
