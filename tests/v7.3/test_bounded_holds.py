"""Milestone `bounded`: mmu_lock is not held for write for long, and nothing is lost where it is released.

The mutants are in patches/mutants/SERIES/mutants.patch."""

import functools
import re
from pathlib import Path

import pytest

from tests import claims
from tests.lab import Lab

pytestmark = pytest.mark.boot
SERIES = Path(__file__).parent.name
SECONDS = 300
MUTANTS = Lab(SERIES, patches=("mutants",))


def _harvests(arch, which, idle=100, busy=20):
    """The Ran of so many rounds of dirty_harvest_test."""
    commands = {name: ["/tests/dirty_harvest_test", name, n] for name, n in (("idle", idle), ("busy", busy))}
    return MUTANTS.but(arch=arch, mutant=which).run(commands, SECONDS, f"{SERIES}-bounded-{which or 'nothing'}-{arch}")


@pytest.mark.parametrize(
    "arch, which",
    [
        pytest.param("arm64", "", marks=pytest.mark.slow),
        pytest.param("arm64", "gap-after-bit", marks=pytest.mark.slow),
        ("x86_64", "gap-after-bit"),
    ],
)
def test_nothing_is_lost(arch, which):
    """Nor is anything lost if the lock is released, for 200 us, between the bit of each word and its write permission."""
    _harvests(arch, which).good()


@pytest.mark.parametrize(
    "arch, which, tests",
    [
        pytest.param("arm64", "bit-cleared-last", {"busy"}, id="bit-cleared-last", marks=pytest.mark.slow),
        pytest.param("x86_64", "bit-cleared-last", {"busy"}, id="bit-cleared-last-x86_64"),
        pytest.param("arm64", "gap-without-flush", {"idle"}, id="gap-without-flush", marks=pytest.mark.slow),
    ],
)
def test_negative_control_what_is_lost_is_noticed(arch, which, tests):
    # A write is lost by its TLB entry only if nothing interrupts the guest meanwhile, and by its bit only if it comes between
    # two instructions: seldom on a busy host.
    ran = _harvests(arch, which, idle=500 if "idle" in tests else 100, busy=1000 if "busy" in tests else 20)
    assert ran.finders(r"(Dirty|Clear) page \d+ value|writes are missing in the log") >= tests


# A VM that dies with a block of 1 GiB in the topmost table.
ONE_PAGE = ("hugepagesz=1G", "hugepages=1", "default_hugepagesz=2M")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["", "destroy-small-chunks"])
def test_a_block_is_freed_once(which):
    """And negative control: a block that is visited in parts drops its table's reference each time."""
    lab = MUTANTS.but(mutant=which, params=ONE_PAGE, machine={"memory": 4096})
    ran = lab.run(["/tests/gigantic_page_test"], SECONDS, f"{SERIES}-bounded-1g-{which or 'nothing'}")
    assert not ran.status, ran.output
    assert any(re.search(r"WARNING: .* at kvm_s2_put_page", line) for line in ran.splats) == bool(which), ran.splats


# --- how long the lock is held, in virtual time ---

VCPUS = 8


@functools.cache
def _measured(which, mutant="", sizes=claims.SIZES):
    """Runs, as of a results file, of dirty_hold_test with memslots of `sizes`, on "base" or the milestone "bounded", in
    virtual time.  Later, vCPUs do not wait for a clear any more, so there the lock is held for all of it.
    mutant: a patch on top."""
    kernel = "base" if which == "base" else f"upto:{which}"
    commands = {f"hold-{size}": ["/tests/spread", "/tests/dirty_hold_test", "-v", VCPUS, "-b", size] for size in sizes}
    lab = Lab(SERIES, kernel, patches=("hold-times", *([mutant] if mutant else []))).virtual(VCPUS + 2)
    ran = lab.run(commands, 1200, f"{SERIES}-vtime-bounded-{mutant or which}", silence=900).good()
    return [
        {"kernel": which, "args": f"-b {size}", "metric": found.metric, "samples": [found.value]}
        for size in sizes
        for found in ran.measures(f"hold-{size}", count=False)
    ]


@pytest.mark.slow
def test_nobody_holds_the_lock_for_long():
    """While the log is cleared and vCPUs wait; and while 64 MiB are unmapped, as if somebody waited."""
    measured = _measured("base") + _measured("bounded")
    lines = (f"{run['kernel']} {run['args']} {run['metric']} {run['samples'][0]}" for run in measured)
    print("mmu_lock held for write:", *lines, sep="\n")
    assert not claims.bounded_holds(measured, "bounded")
    # And negative control: base is not so.
    assert claims.bounded_holds(measured, "base")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["asks-needbreak"] if SERIES == "v6.12" else [])
def test_negative_control_a_lock_that_nobody_is_seen_to_wait_for_is_kept(mutant):
    """7.3's question is never answered by yes with PREEMPT_VOLUNTARY, which 6.12 is built with."""
    measured = _measured("bounded", mutant, claims.SIZES[:1])
    (hold,) = (run["samples"][0] for run in measured if run["metric"] == "clear_busy_hold")
    print(f"{mutant}: longest hold of a clear {hold}")
    assert hold > claims.CLEARED
