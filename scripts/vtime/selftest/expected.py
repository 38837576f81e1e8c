"""How long each self-test takes in virtual time, from the cost model and the instruction counts.

    bounds(Run("ticket", 1000, 2000, cpus=4, cost=cost)) -> (low, high) in ns

Pure arithmetic; nothing here is measured. Counts and test numbers come from counts.h; loops.S
says what each test does. Where the model leaves one answer, low == high; elsewhere (in which order waiting
CPUs get a line) the bounds are the best and the worst order.
"""

import re
from pathlib import Path
from typing import Callable, NamedTuple

Bounds = tuple[float, float]

_COUNTS = {
    name: int(value, 0)
    for name, value in re.findall(r"^#define (\w+) (\w+)$", Path(__file__).with_name("counts.h").read_text(), re.M)
}
NUMBERS = {name[len("TEST_") :].lower(): value for name, value in _COUNTS.items() if name.startswith("TEST_")}
# ns: CNTFRQ_EL0 is 62.5 MHz.
TICK = 16
# By how much a measured time may lie outside of the bounds.
UNCONTENDED, CONTENDED = 0.02, 0.05
_CONTENDED = {"spinlock", "spinlock_poll", "ticket", "readers", "atomic_shared", "store_shared", "ring", "tlbi"}
# Tests whose CPUs share nothing, and what an iteration costs beside its instructions.  A line or a page table of one's own
# is all that atomic and store write.
_ALONE = {
    "independent": (),
    "tlbi_local": ("tlbi", "dsb"),
    "atomic": ("atomic",),
    "store": (),
    "exception": ("exception",),
    "dc": ("dc",),
}


class Run(NamedTuple):
    """What the words say, the costs in ns, and what most tests need of both."""

    test: str
    iterations: int
    length: int  # instructions, but for "sleep": ns
    gap: int = 2  # instructions
    cpus: int = 2
    cost: dict[str, float] = {}  # ns by name of model.yaml; `atomic` is no more than `line`, which a move takes

    def count(self, part: str) -> int:
        """Instructions: counts.h's LOOP, HELD or WAKE of this test."""
        return _COUNTS[f"{self.test.upper()}_{part}"]

    def insns(self, count: int) -> float:
        """ns of so many instructions."""
        return count * self.cost["insn"]

    @property
    def work(self) -> int:
        """Instructions of `work length`: its loop runs at least once, which takes 2."""
        return max(2, self.length)

    @property
    def outside(self) -> int:
        """Instructions of `work gap`."""
        return max(2, self.gap)


def bounds(run: Run) -> Bounds:
    """(low, high) in ns, from the common start to the end of the last CPU."""
    return _TESTS[run.test](run)


def tolerance(run: Run) -> float:
    """The part of a bound by which a measured time may lie outside of it."""
    return CONTENDED if run.cpus > 1 and run.test in _CONTENDED else UNCONTENDED


def holds(measured: float, run: Run) -> bool:
    """Whether `measured` ns lies within the bounds widened by tolerance() of each."""
    (low, high), part = bounds(run), tolerance(run)
    return low * (1 - part) <= measured <= high * (1 + part)


def _each(run: Run, extra: float = 0) -> Bounds:
    """CPUs that share nothing: one loop's instructions and `extra` ns, per iteration."""
    ns = run.iterations * (run.insns(run.count("LOOP") + run.work) + extra)
    return ns, ns


def _alone(run: Run) -> Bounds:
    """A test of _ALONE: iterations x loop, whatever the number of CPUs."""
    return _each(run, sum(run.cost[name] for name in _ALONE[run.test]))


def imbalance(run: Run) -> Bounds:
    """The loop of independent; CPU 0 has the factor's times the work and is the last."""
    factor = _COUNTS["IMBALANCE_FACTOR"]
    return _alone(run._replace(test="independent", iterations=run.iterations * factor))


def tlbi(run: Run) -> Bounds:
    """Each DSB takes dvm_sync and keeps the one interconnect for dvm_busy.

    The CPUs' loops overlap until their busy parts alone fill an iteration.
    """
    alone = run.insns(run.count("LOOP") + run.work) + run.cost["tlbi"] + run.cost["dvm_sync"]
    full = run.cpus * run.cost["dvm_busy"]
    low = run.iterations * max(alone, full)
    # all arrive together first: the last one's first start is put off by the others' busy parts
    return low, low + min(alone, (run.cpus - 1) * run.cost["dvm_busy"])


def _shared(run: Run) -> Bounds:
    """One line for all: each RMW, or store to a page table, moves it, and it moves to one CPU at a time."""
    run = run._replace(test=run.test[: -len("_shared")])
    if run.cpus == 1:
        return _alone(run)
    line = run.cost["line"]
    alone = run.insns(run.count("LOOP") + run.work) + line
    # the CPUs take turns: each asks for the line again only after all others asked for it
    low = run.iterations * max(alone, run.cpus * line)
    return low, low + run.cpus * line


def readers(run: Run) -> Bounds:
    """Two RMWs of the one line that counts readers, however few instructions lie between.

    full: the line never rests. Before each of the two a CPU may have to let all others have the
    line, which hides behind the instructions before it. Low: a CPU may also find that the line
    is still its own, when acquires and releases of different CPUs pair up.
    """
    line, atomic_ = run.cost["line"], run.cost["atomic"]
    inside = run.insns(run.count("HELD") + run.work)
    outside = run.insns(run.count("LOOP") - run.count("HELD") + run.outside)
    if run.cpus == 1:
        ns = run.iterations * (inside + outside + 2 * atomic_)
        return ns, ns
    others = (run.cpus - 1) * line
    full = 2 * run.cpus * line
    high = max(inside, others) + max(outside, others) + 2 * line
    if min(inside, outside) >= others:
        low = inside + outside + 2 * line
    else:
        low = max(inside + outside + line + atomic_, full)
    return run.iterations * low, run.iterations * high + run.cpus * line


def _spin(run: Run, wake: int) -> Bounds:
    """Test and test-and-set with `wake` instructions between a wait and the next look."""
    line, atomic_ = run.cost["line"], run.cost["atomic"]
    loop = run.insns(run.count("LOOP") + run.work + run.outside)
    if run.cpus == 1:
        ns = run.iterations * (loop + atomic_)
        return ns, ns
    held = run.insns(run.count("HELD") + run.work)
    alone = loop + 2 * line  # LDAXR shares it, SWP takes it
    # from unlock to unlock: the posted release, all waiters' LDAXR, the SWP of the first of them
    longest = held + run.insns(wake) + (run.cpus + 1) * line
    # then the SWPs that fail, each of which sends all who lost before back to look: behind them
    # queues the next release when they take longer than the lock is held
    losers = run.cpus - 2
    longest += max(0, (losers + losers * (losers + 1) / 2) * line - held)
    back = run.insns(run.count("LOOP") - run.count("HELD") + run.outside)
    again = back < longest - held  # who unlocks may be back before a waiter has the line
    shortest = held + (atomic_ if again else 3 * line)
    low = run.iterations * max(loop if again else alone, run.cpus * shortest)
    if run.cpus * longest < alone:
        return low, run.iterations * alone + run.cpus * longest
    # not fair: at worst the last CPU is left to run with nobody to hide its time outside
    return low, run.iterations * max(alone, run.cpus * longest) + run.iterations * min(back, alone)


def spinlock(run: Run) -> Bounds:
    """Waiting in WFE; a waiter that is just looking has no `wake` to execute."""
    return _spin(run, run.count("WAKE"))


def spinlock_poll(run: Run) -> Bounds:
    """Waiting in LDAXR, CBNZ: a look may just have been missed, by one instruction."""
    return _spin(run, 1)


def ticket(run: Run) -> Bounds:
    """First come, first served: what differs is when the next owner gets to look."""
    line, atomic_ = run.cost["line"], run.cost["atomic"]
    loop = run.insns(run.count("LOOP") + run.work + run.outside)
    if run.cpus == 1:
        ns = run.iterations * (loop + atomic_)
        return ns, ns
    held = run.insns(run.count("HELD") + run.work)
    alone = loop + 2 * line  # the ticket's line, the owner's line
    # the posted release; the next owner looks first, or after the cpus - 2 other waiters
    longest = held + run.insns(run.count("WAKE")) + run.cpus * line
    # looks that are still under way at the next unlock may see it without another move
    shortest = held + (2 * line if held >= run.cpus * line else 0)
    low = run.iterations * max(alone, run.cpus * shortest)
    return low, run.iterations * max(alone, run.cpus * longest) + alone


def ring(run: Run) -> Bounds:
    """A hop: the posted release, the waiter's LDAXR, HELD. All hops are in one chain."""
    if run.cpus == 1:
        return _each(run)
    hop = run.insns(run.count("HELD") + run.work) + 2 * run.cost["line"]
    hops = run.iterations * run.cpus
    return hops * hop, hops * (hop + run.insns(run.count("WAKE")))


def sleep(run: Run) -> Bounds:
    """`length` ns until WFI ends, and what is executed until the next deadline is set.

    Both ends are read in ticks, and the sleep is rounded up to whole ones.
    """
    return (run.iterations * run.length, run.iterations * (run.length + 2 * TICK + run.insns(run.count("LOOP"))))


def ipi(run: Run) -> Bounds:
    """A ring of interrupts: whoever wakes goes on from the sender's clock, at no cost."""
    if run.cpus == 1:
        return _each(run)
    ns = run.iterations * run.cpus * run.insns(run.count("HELD") + run.work)
    return ns, ns


def wfe(run: Run) -> Bounds:
    """Nobody writes the line: each WFE lasts until its limit."""
    return (run.iterations * run.cost["wfe"], run.iterations * (run.cost["wfe"] + run.insns(run.count("LOOP"))))


_TESTS: dict[str, Callable[[Run], Bounds]] = {
    **dict.fromkeys(_ALONE, _alone),
    **dict.fromkeys(("atomic_shared", "store_shared"), _shared),
    **{one.__name__: one for one in (imbalance, tlbi, readers, spinlock, spinlock_poll, ticket, ring, sleep, ipi, wfe)},
}
