"""How long a guest has said nothing.

A busy host can keep QEMU from its CPUs for minutes.  A guest that does not run is not one that hangs, so the
time for which QEMU's threads waited for a CPU does not count.  Linux says how long a thread has waited in the
second number of /proc/PID/task/TID/schedstat, in ns (Documentation/scheduler/sched-stats.rst).  Where a kernel
does not have that file, all time counts.
"""

import time
from collections.abc import Callable
from pathlib import Path

# Seconds between two looks at the threads: QEMU has dozens.
_INTERVAL = 1.0


def waited(process: int, proc: Path = Path("/proc")) -> dict[str, int]:
    """For each thread of the process with this id: ns for which it has waited for a CPU, as {thread id: ns}."""
    found = {}
    for file in (proc / str(process) / "task").glob("*/schedstat"):
        try:
            found[file.parent.name] = int(file.read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return found


class Quiet:
    """A clock that stands still while QEMU waits for a CPU; heard() sets it to zero."""

    def __init__(self, process: int, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._process, self._proc, self._clock = process, proc, clock
        self._looked = clock()
        self._waited = waited(process, proc)
        self.heard()

    def heard(self) -> None:
        """The guest has said something."""
        self._look()
        self._since = self._clock()
        self._starved = 0.0

    def seconds(self) -> float:
        """Seconds since the guest was last heard, without those in which the longest-waiting thread had no CPU."""
        self._starved += self._look()
        return max(self._clock() - self._since - self._starved, 0.0)

    def _look(self) -> float:
        """Seconds of those since the last look in which that thread waited; 0.0 if that was just now."""
        passed = self._clock() - self._looked
        if passed < _INTERVAL:
            return 0.0
        self._looked += passed
        before, self._waited = self._waited, waited(self._process, self._proc)
        most = max((ns - before[thread] for thread, ns in self._waited.items() if thread in before), default=0)
        return min(max(most / 1e9, 0.0), passed)
