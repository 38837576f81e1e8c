"""The model on all its scenarios: calibration, loom, shuttle, and what is said of them."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kvmseries.base.errors import Usage
from kvmseries.source import catalog

from . import runs
from .mutants import Outcome

# What the engine must see of relaxed memory, and what it must not: the model's calibration. Load buffering is
# allowed by the kernel's memory model, and never seen: what rests on it is for herd7.
SEEN = "SB MP MP+rel S 2+2W RMW-RMW failed-CAS-stale readers-not-ordered free-switch".split()
NOT_SEEN = (
    "SB+mbs MP+rel+rmb MP+wmb+rmb 2+2W+mbs R+mbs RWC+mbs WRC+rel CoRR xchg-xchg RMW-atomicity CAS-atomicity"
    " writer-orders RCU-MP LB"
).split()
# What has no thread, and must not be said to hold.
EMPTY = ("no-thread",)
# Those that are run with a preemption bound.
_BOUNDS = {"free-switch": ("bound=1",)}


def known(names: Collection[str], arches: Collection[str]) -> None:
    """Raise Usage if one of `names` is no scenario of `arches`, names of Archs.  Builds nothing."""
    every = [name for name, its in runs.declared().items() if set(its) & set(arches)]
    unknown = [name for name in names if name not in every]
    if unknown:
        near = difflib.get_close_matches(unknown[0], every, 5, 0)
        raise Usage(f"no scenario '{unknown[0]}': the model has {', '.join(near)} and more, see model/README.md")


def _chosen(
    program: Path, names: Collection[str], kinds: Collection[str], arches: Collection[str]
) -> list[tuple[runs.Scenario, str]]:
    """Pairs of a Scenario and the name of an Arch that it is of."""
    return [
        (s, arch)
        for s in runs.scenarios(program)
        if (s.name in names if names else s.kind in kinds)
        for arch in s.arches
        if arch in arches
    ]


def loom(
    program: Path,
    libraries: Mapping[str, Path],
    names: Collection[str],
    bound: str | None,
    told: Callable[[str], object],
    large: tuple[str, ...] = (),
) -> list[runs.Result]:
    """The Results of loom on the scenarios named (default: all short ones), with the preemption bound given or
    each one's own, which is at most 2 for names that begin as in `large`; `told` gets a line for each."""

    def one(chosen: tuple[runs.Scenario, str]) -> tuple[runs.Result, str]:
        scenario, arch = chosen
        limit = bound or (scenario.bound if scenario.bound == "1" or not scenario.name.startswith(large) else "2")
        return runs.run(program, libraries[arch], scenario.name, "loom", *runs.bounded(limit)), limit

    results = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result, limit in pool.map(one, _chosen(program, names, ("short",), libraries)):
            told(f"{result.line}, {_limited(limit)}" if result.good else result.line)
            results.append(result)
    return results


def shuttle(
    program: Path,
    libraries: Mapping[str, Path],
    names: Collection[str],
    engine: str,
    schedules: int,
    seed: int,
    told: Callable[[str], object],
) -> list[runs.Result]:
    """The Results of shuttle on the scenarios named (default: all long ones)."""
    results = []
    for scenario, arch in _chosen(program, names, ("long",), libraries):
        results.append(runs.run(program, libraries[arch], scenario.name, engine, f"limit={schedules}", f"seed={seed}"))
        told(f"{results[-1].line}, {engine}, seed {seed}")
    return results


def calibration(program: Path, library: Path) -> list[str]:
    """What is not as SEEN, NOT_SEEN and EMPTY say of the engine, a line each; the library is one of arm64, and its code is not run."""
    complaints = []
    for names, wanted in ((SEEN, "found"), (NOT_SEEN, "holds"), (EMPTY, "nothing")):
        for name in names:
            verdict = runs.run(program, library, name, "loom", *_BOUNDS.get(name, ())).verdict
            if verdict != wanted:
                complaints.append(f"{name}: {verdict}, not {wanted}")
    return complaints


# Scenarios that do not hold before a milestone, of each series. v5.10: base stores attributes over an access flag that the CPU has
# just set. Before lockless no blocks come back. Aging of base takes one page, and does not look at the memslot's flags. Before
# change-pte an unlock and a lock stand between the stores to the PTE and to mmu_notifier_seq. The kernel orders stores by such a
# pair, and loom does not.
# v7.3 and v6.12: base stores attributes over an access flag that the CPU has just set. It ages memslots that go away. Before
# `split` the table that replaces a block is empty.
NOT_BEFORE: dict[str, dict[str, tuple[str, ...]]] = {
    "v5.10": {
        "fast-path": ("age-harvest",),
        "lockless": ("join-write", "join-read", "join-read-other", "join-age", "join-unmap"),
        "aging": ("age-two", "age-slot-last", "age-invalid"),
        "change-pte": ("ksm-map", "join-protect", "join-merge", "join-other", "x86-ksm-map", "x86-tdp-ksm-map"),
    },
    "v7.3": {"tables": ("age-harvest",), "aging": ("age-invalid",), "split": ("split-age-other", "split-keeps")},
}
NOT_BEFORE["v6.12"] = NOT_BEFORE["v7.3"]


def later(series: catalog.Series, count: int) -> set[str]:
    """The names of the scenarios that need not hold with the first `count` patches of the series."""
    steps = NOT_BEFORE[series.name].items()
    return {
        name
        for milestone, names in steps
        if milestone not in series.milestones or series.upto(milestone) > count
        for name in names
    }


def large(series: catalog.Series, count: int) -> tuple[str, ...]:
    """How the names of scenarios begin that take minutes with more than 2 preemptions, with the first `count` patches of the
    series. v5.10 before `change-pte`: a page whose PTE changes is unmapped, and mapped again by faults."""
    return (
        ("ksm-", "cow-", "uprobe-", "x86-ksm-write")
        if series.name == "v5.10" and count < series.upto("change-pte")
        else ()
    )


def summary(outcomes: Sequence[Outcome]) -> str:
    """Mutants found by kind, and those that are known to survive: a few lines."""
    kinds = Counter(outcome.mutant.kind for outcome in outcomes)
    killed = Counter(outcome.mutant.kind for outcome in outcomes if outcome.killed)
    text = ", ".join(f"{kind} {killed[kind]}/{count}" for kind, count in sorted(kinds.items()))
    return f"{sum(killed.values())} of {len(outcomes)} mutants found: {text}"


def screen(
    scenarios: Iterable[runs.Scenario],
    results: list[runs.Result],
    random: list[runs.Result],
    outcomes: Sequence[Outcome],
    complaints: Sequence[str],
    covered: Sequence[str],
) -> str:
    """What `make proof` ends with: one screen of text; `covered` are lines about coverage."""
    bounds = {scenario.name: scenario.bound for scenario in scenarios}
    limits = Counter(bounds[result.name] for result in results)
    complete = limits.pop("all", 0)
    arms = {arm for result in results + random for arm in result.arms}
    lost = {arm for result in results for arm in result.arms if arm.startswith("lost cmpxchg")}
    wrong = len(complaints) or "none"
    parts: list[tuple[str, Sequence[str]]] = [
        (
            "calibration",
            [f"{len(SEEN) + len(NOT_SEEN)} litmus tests, {wrong} not as expected; load buffering is not seen"],
        ),
        (
            "loom",
            [
                _ran(results, "executions"),
                f"{complete} complete; " + ", ".join(f"{n} {_limited(bound)}" for bound, n in sorted(limits.items())),
            ],
        ),
        ("shuttle", [_ran(random, "random schedules")]),
        ("arms", [f"{len(arms)} reached, {len(lost)} of them a cmpxchg that is lost"]),
        ("coverage", covered),
        ("mutants", [summary(outcomes), *(outcome.line for outcome in outcomes if not outcome.killed)]),
    ]
    lines = [f"{'' if at else title:14}{line}" for title, texts in parts for at, line in enumerate(texts)]
    lines.append(
        "Every execution of these scenarios under the engine's memory model: what that leaves out is in model/README.md."
    )
    return "\n".join(lines)


def _limited(bound: str) -> str:
    """How far loom goes with a preemption bound."""
    return "complete" if bound == "all" else f"up to {bound} preemption{'s' * (bound != '1')}"


def _ran(results: Sequence[runs.Result], what: str) -> str:
    """How many scenarios ran, and hold."""
    executions, good = sum(result.executions for result in results), sum(result.good for result in results)
    return f"{len(results)} scenarios, {executions:,} {what}, {good} hold"
