"""The virtual clock (scripts/vtime) tells the time that arithmetic does, whatever the host does.

Without a kernel: loops whose instructions are counted, and arithmetic, which is in scripts/vtime/selftest/expected.py.  Of
KVM: v5.10/test_vtime.py.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from kvmseries.base import paths, proc
from kvmseries.kernel import toolchain
from tests.lab import SLICE
from tests.load import loaded
from vtime import vtime
from vtime.selftest import expected

PROGRAM = vtime.SOURCE / "selftest"


class Loop(NamedTuple):
    """A self-test: what expected.py calls its words."""

    test: str
    iterations: int
    length: int
    gap: int = 2


# Lengths for which the bounds are narrow, see the README.
LIKE = ("independent", "tlbi", "tlbi_local", "atomic", "atomic_shared", "exception", "dc", "store", "store_shared")
LOOPS = {name: Loop(name, 300, 1000) for name in LIKE} | {
    loop.test: loop
    for loop in (
        Loop("imbalance", 50, 1000),
        Loop("spinlock", 50, 20000, 2000),
        Loop("spinlock_poll", 20, 4000, 2000),
        Loop("ticket", 50, 20000, 2000),
        Loop("readers", 100, 4000, 4000),
        Loop("ring", 100, 1000),
        Loop("ipi", 200, 1000),
        Loop("sleep", 20, 20000),
        Loop("wfe", 100, 1000),
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


def _bounds(loop, cpus, costs):
    params = {"wfe_limit" if name == "wfe" else name: ns for name, ns in costs.items()}
    return expected.expected(loop.test, cpus, loop.iterations, loop.length, params, loop.gap)


def _complaint(loop, cpus, costs, measured):
    """Why `measured` ns is not what the loop must take; "" if it is."""
    bounds = _bounds(loop, cpus, costs)
    if expected.holds(measured, bounds, expected.tolerance(loop.test, cpus)):
        return ""
    return f"{loop} on {cpus} CPUs: {measured} ns, not {bounds[0]:.0f} to {bounds[1]:.0f}"


@pytest.fixture(scope="module", name="measure")
def _measure():
    """A function: (loop, cpus, costs in ns, slice in ns, marked) to the ns that the loop took.  marked: the
    code of the test store counts as writing page tables."""
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

    def measure(loop, cpus, costs, slice_ns=SLICE, marked=True):
        options = ",".join(f"{name}={round(ns * 1000)}" for name, ns in costs.items())
        words = (expected.NUMBERS[loop.test], cpus, loop.iterations, loop.length, loop.gap)
        machine = f"-M virt,gic-version=3 -cpu {vtime.CPUS['arm64']} -smp {cpus} -m 256 -nodefaults".split()
        machine += "-display none -serial stdio -accel tcg,thread=multi".split()
        plugin = f"{library},{options},slice={slice_ns * 1000}" + f",marks={marks}" * marked
        line = ["timeout", "120", *program, *machine, "-kernel", str(folder / "selftest.elf"), "-plugin", plugin]
        for number, word in enumerate(words):
            line += ["-device", f"loader,addr={0x41000000 + 8 * number},data={word},data-len=8"]
        text = proc.run(line, f"{loop} on {cpus} CPUs")
        found = re.search(rf"^selftest {loop.test} .* ns=(\d+)\r?$", text, re.M)
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
    _check_loop(measure, [(loop, 2, _costs())])


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_loop_takes_what_arithmetic_says_of_all_cpus_and_other_costs(measure, loop):
    _check_loop(measure, [(loop, cpus, costs) for costs in (_costs(), OTHER) for cpus in _cpus(loop)])


def _cpus(loop):
    """Numbers of CPUs that a loop is run on."""
    # Who polls runs in step with the others, instruction by instruction: slow.
    return (1, 2, 4) if loop.test == "spinlock_poll" else (1, 2, 4, 8)


def _check_loop(measure, rows):
    """Each of `rows`, (loop, CPUs, costs), takes what arithmetic says, which is narrow."""
    for row in rows:
        low, high = _bounds(*row)
        assert high <= NARROW * low, row
    _check(rows, _all(measure, rows))


def _check(rows, found):
    """Each of `rows`, (loop, CPUs, costs, ...), has taken what arithmetic says: the ns that are `found`."""
    complaints = [_complaint(*row[:3], ns) for row, ns in zip(rows, found)]
    assert not any(complaints), "\n".join(filter(None, complaints))


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("cpus", (16, 64))
def test_many_cpus_take_what_arithmetic_says(measure, cpus):
    iterations = {"independent": 64, "atomic_shared": 64, "tlbi": 32, "ring": 4, "ipi": 4}
    rows = [(Loop(name, number, 1000), cpus, _costs()) for name, number in iterations.items()]
    _check(rows, _all(measure, rows))


# Parameter, a loop that shows it, CPUs.
SHOWN = (
    ("insn", Loop("independent", 300, 1000), 2),
    ("exception", Loop("exception", 500, 100), 2),
    ("atomic", Loop("atomic", 2000, 100), 2),
    ("line", Loop("ring", 200, 100), 2),
    ("tlbi", Loop("tlbi_local", 2000, 100), 2),
    ("dsb", Loop("tlbi_local", 2000, 100), 2),
    ("dc", Loop("dc", 2000, 100), 2),
    ("dvm_sync", Loop("tlbi", 300, 100), 1),
    ("dvm_busy", Loop("tlbi", 300, 100), 8),
    ("wfe", Loop("wfe", 100, 100), 1),
)


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_every_parameter_shows(measure):
    """Doubled, it gives what arithmetic says of the double, and not what it says of the model."""
    assert {row[0] for row in SHOWN} == set(_costs())
    rows = [(loop, cpus, _costs(f"{name}*2")) for name, loop, cpus in SHOWN]
    for row, measured in zip(rows, _all(measure, rows)):
        assert not _complaint(*row, measured)
        assert _complaint(row[0], row[1], _costs(), measured)


@pytest.mark.boot
def test_negative_control_stores_cost_where_page_tables_are_written_only(measure):
    shared, own = LOOPS["store_shared"], LOOPS["store"]
    plain = measure(shared, 4, _costs(), marked=False)
    assert _complaint(shared, 4, _costs(), plain)
    assert not _complaint(own, 4, _costs(), plain)


@pytest.mark.boot
@pytest.mark.slow
def test_the_slice_does_not_matter(measure):
    """What CPUs can see of each other happens in order, however long they run between."""
    slices = (100, SLICE, 2000, 20000)
    rows = [(LOOPS[test], cpus, _costs(), ns) for test in CONTENDED for cpus in (2, 4) for ns in slices]
    found = _all(measure, rows)
    _check(rows, found)
    for at in range(0, len(rows), len(slices)):
        some = found[at : at + len(slices)]
        assert max(some) <= (1 + expected.CONTENDED) * min(some), (rows[at], some)


@pytest.mark.boot
@pytest.mark.slow
def test_the_load_of_the_host_does_not_matter(measure):
    rows = [(LOOPS[test], cpus, _costs()) for test in ("independent", *CONTENDED) for cpus in (2, 4)]
    idle = _all(measure, rows)
    with loaded():
        busy = _all(measure, rows)
    for row, one, other in zip(rows, idle, busy):
        assert other == pytest.approx(one, rel=expected.tolerance(row[0].test, row[1])), row
