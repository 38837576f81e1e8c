"""The virtual clock (scripts/vtime) tells the time that arithmetic does, whatever the host does.

Without a kernel: loops whose instructions are counted, and arithmetic, which is in scripts/vtime/selftest/expected.py.  Of
KVM: v5.10/test_vtime.py.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from kvmseries.base import paths, proc
from kvmseries.kernel import toolchain
from tests.lab import SLICE
from tests.load import loaded
from vtime import vtime
from vtime.selftest import expected
from vtime.selftest.expected import Run

PROGRAM = vtime.SOURCE / "selftest"
# Lengths for which the bounds are narrow, see the README.
LIKE = ("independent", "tlbi", "tlbi_local", "atomic", "atomic_shared", "exception", "dc", "store", "store_shared")
LOOPS = {name: Run(name, 300, 1000) for name in LIKE} | {
    run.test: run
    for run in (
        Run("imbalance", 50, 1000),
        Run("spinlock", 50, 20000, 2000),
        Run("spinlock_poll", 20, 4000, 2000),
        Run("ticket", 50, 20000, 2000),
        Run("readers", 100, 4000, 4000),
        Run("ring", 100, 1000),
        Run("ipi", 200, 1000),
        Run("sleep", 20, 20000),
        Run("wfe", 100, 1000),
    )
}
# How far apart the bounds may be: a wide one lets anything pass.
NARROW = 1.25
CONTENDED = ("spinlock", "ticket", "readers", "tlbi", "atomic_shared", "store_shared", "ring", "ipi")
# ns: other relations between the costs than the model's.
OTHER = {"insn": 1, "exception": 150, "atomic": 20, "line": 120, "dsb": 40, "dc": 30, "wfe": 800}
OTHER |= {"tlbi": 50, "dvm_sync": 1500, "dvm_busy": 600}


def _costs(variant=vtime.NOMINAL):
    """ns by name, of the model."""
    return {name: entry["ns"] for name, entry in vtime.parameters("arm64", variant).items()}


def _complaint(run, measured):
    """Why `measured` ns is not what the loop must take; "" if it is."""
    low, high = expected.bounds(run)
    return "" if expected.holds(measured, run) else f"{run}: {measured} ns, not {low:.0f} to {high:.0f}"


@pytest.fixture(scope="module", name="measure")
def _measure():
    """A function: (expected.Run, slice in ns, marked) to the ns that the loop took.  marked: the code of the test store
    counts as writing page tables."""
    toolchain.install("arm64")
    folder = paths.out("selftests", "vtime")
    with paths.locked("vtime-selftest"):
        folder.mkdir(exist_ok=True)
        proc.run(["make", "-f", str(PROGRAM / "Makefile"), f"O={folder}/"], "building scripts/vtime/selftest")
    program, library = vtime.prefix("arm64"), vtime.library()
    symbols = proc.run([f"{toolchain.prefix('arm64')}nm", str(folder / "selftest.elf")], "nm")
    address = {words[2]: words[0] for words in map(str.split, symbols.splitlines())}
    marks = folder / "marks"
    marks.write_text(f"tables_from {address['loop_store']}\ntables_to {address['loop_store_end']}\n", encoding="utf-8")

    def measure(run, slice_ns=SLICE, marked=True):
        options = ",".join(f"{name}={round(ns * 1000)}" for name, ns in run.cost.items())
        words = (expected.NUMBERS[run.test], run.cpus, run.iterations, run.length, run.gap)
        machine = f"-M virt,gic-version=3 -cpu {vtime.CPUS['arm64']} -smp {run.cpus} -m 256 -nodefaults".split()
        machine += "-display none -serial stdio -accel tcg,thread=multi".split()
        plugin = f"{library},{options},slice={slice_ns * 1000}" + f",marks={marks}" * marked
        line = ["timeout", "120", *program, *machine, "-kernel", str(folder / "selftest.elf"), "-plugin", plugin]
        for number, word in enumerate(words):
            line += ["-device", f"loader,addr={0x41000000 + 8 * number},data={word},data-len=8"]
        text = proc.run(line, str(run))
        found = re.search(rf"^selftest {run.test} .* ns=(\d+)\r?$", text, re.M)
        assert found, text
        return int(found[1])

    return measure


def _all(function, rows):
    """[function(*row)] with as many at once as the host has CPUs."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda row: function(*row), rows))


def test_every_self_test_is_run():
    assert set(LOOPS) == set(expected.NUMBERS)


@pytest.mark.boot
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_loop_takes_what_arithmetic_says(measure, loop):
    _check_narrow(measure, [loop._replace(cost=_costs())])


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_loop_takes_what_arithmetic_says_of_all_cpus_and_other_costs(measure, loop):
    # Who polls runs in step with the others, instruction by instruction: slow.
    numbers = (1, 2, 4) if loop.test == "spinlock_poll" else (1, 2, 4, 8)
    _check_narrow(measure, [loop._replace(cpus=cpus, cost=cost) for cost in (_costs(), OTHER) for cpus in numbers])


def _check_narrow(measure, runs):
    """Each of `runs` takes what arithmetic says, which is narrow."""
    for run in runs:
        low, high = expected.bounds(run)
        assert high <= NARROW * low, run
    _check(runs, _all(measure, [(run,) for run in runs]))


def _check(runs, found):
    """Each of `runs` has taken what arithmetic says: the ns that are `found`."""
    complaints = [_complaint(run, ns) for run, ns in zip(runs, found)]
    assert not any(complaints), "\n".join(filter(None, complaints))


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("cpus", (16, 64))
def test_many_cpus_take_what_arithmetic_says(measure, cpus):
    iterations = {"independent": 64, "atomic_shared": 64, "tlbi": 32, "ring": 4, "ipi": 4}
    runs = [Run(name, number, 1000, cpus=cpus, cost=_costs()) for name, number in iterations.items()]
    _check(runs, _all(measure, [(run,) for run in runs]))


# A loop that shows each parameter.
SHOWN = {
    "insn": Run("independent", 300, 1000),
    "exception": Run("exception", 500, 100),
    "atomic": Run("atomic", 2000, 100),
    "line": Run("ring", 200, 100),
    "tlbi": Run("tlbi_local", 2000, 100),
    "dsb": Run("tlbi_local", 2000, 100),
    "dc": Run("dc", 2000, 100),
    "dvm_sync": Run("tlbi", 300, 100, cpus=1),
    "dvm_busy": Run("tlbi", 300, 100, cpus=8),
    "wfe": Run("wfe", 100, 100, cpus=1),
}


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_every_parameter_shows(measure):
    """Doubled, it gives what arithmetic says of the double, and not what it says of the model."""
    assert SHOWN.keys() == _costs().keys()
    runs = [run._replace(cost=_costs(f"{name}*2")) for name, run in SHOWN.items()]
    for run, measured in zip(runs, _all(measure, [(run,) for run in runs])):
        assert not _complaint(run, measured)
        assert _complaint(run._replace(cost=_costs()), measured)


@pytest.mark.boot
def test_negative_control_stores_cost_where_page_tables_are_written_only(measure):
    shared, own = (LOOPS[name]._replace(cpus=4, cost=_costs()) for name in ("store_shared", "store"))
    plain = measure(shared, marked=False)
    assert _complaint(shared, plain)
    assert not _complaint(own, plain)


@pytest.mark.boot
@pytest.mark.slow
def test_the_slice_does_not_matter(measure):
    """What CPUs can see of each other happens in order, however long they run between."""
    slices = (100, SLICE, 2000, 20000)
    for run in (LOOPS[test]._replace(cpus=cpus, cost=_costs()) for test in CONTENDED for cpus in (2, 4)):
        found = _all(measure, [(run, ns) for ns in slices])
        _check([run] * len(slices), found)
        assert max(found) <= (1 + expected.CONTENDED) * min(found), (run, found)


@pytest.mark.boot
@pytest.mark.slow
def test_the_load_of_the_host_does_not_matter(measure):
    rows = [
        (LOOPS[test]._replace(cpus=cpus, cost=_costs()),) for test in ("independent", *CONTENDED) for cpus in (2, 4)
    ]
    idle = _all(measure, rows)
    with loaded():
        busy = _all(measure, rows)
    for (run,), one, other in zip(rows, idle, busy):
        assert other == pytest.approx(one, rel=expected.tolerance(run)), run
