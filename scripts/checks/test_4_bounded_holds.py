"""Milestone `bounded` of patches/v7.3: mmu_lock is not held for write for long, and nothing is lost where it is released.

What is planted is in patches/mutants/v7.3/mutants.patch.  All are in `make test-all` alone: see extra.quick().
"""

import functools
import re

import pytest

from checks import claims, guests
from kvmseries.base import progress
from kvmseries.data import parse
from kvmseries.source import catalog
from kvmseries.vm import machine, run as guest
from vtime import vtime

NAME = "v7.3"
pytestmark = [pytest.mark.boot, pytest.mark.slow, pytest.mark.reads(NAME)]
SECONDS = 300


# --- what is lost, and what is not ---


def _planted(which, commands, arch="arm64", **machine_options):
    return guests.run_planted(("mutants",), which, commands, SECONDS, "bounded", arch, **machine_options)


def harvests(idle=100, busy=20):
    """Commands for so many rounds of dirty_harvest_test."""
    return {name: ["/tests/dirty_harvest_test", name, str(n)] for name, n in (("idle", idle), ("busy", busy))}


@pytest.mark.parametrize("arch, which", [("arm64", ""), ("arm64", "gap-after-bit"), ("x86_64", "gap-after-bit")])
def test_nothing_is_lost(arch, which):
    """Nor is anything lost if the lock is released, for 200 us, between the bit of each word and its write permission."""
    outcomes, splats = _planted(which, harvests(), arch)
    assert not splats
    assert not any(outcome.status for outcome in outcomes.values()), {
        name: outcome.why() for name, outcome in outcomes.items()
    }


def lost(outcomes):
    """The names of those that say that a write is missing in the log; each other one must have passed."""
    words = r"(Dirty|Clear) page \d+ value|writes are missing in the log"
    found = {
        name
        for name, outcome in outcomes.items()
        if outcome.status not in (0, 4, 124) and re.search(words, outcome.output)
    }
    bad = {name: outcome.why() for name, outcome in outcomes.items() if name not in found and outcome.status}
    assert not bad, bad
    return found


@pytest.mark.parametrize("which, tests", [("bit-cleared-last", {"busy"}), ("gap-without-flush", {"idle"})])
def test_negative_control_what_is_lost_is_noticed(which, tests):
    # A write is lost by its TLB entry only if nothing interrupts the guest meanwhile: seldom on a busy host.
    outcomes, _ = _planted(which, harvests(idle=500))
    assert lost(outcomes) >= tests


# A VM that dies with a block of 1 GiB in the topmost table.
GIGANTIC = {"1g": ["/tests/gigantic_page_test"]}
ONE_PAGE = ("hugepagesz=1G", "hugepages=1", "default_hugepagesz=2M")


@pytest.mark.parametrize("which", ["", "destroy-small-chunks"])
def test_a_block_is_freed_once(which):
    """And negative control: a block that is visited in parts drops its table's reference each time."""
    outcomes, splats = _planted(which, GIGANTIC, params=ONE_PAGE, memory=4096)
    assert not outcomes["1g"].status, outcomes["1g"].output
    assert any(re.search(r"WARNING: .* at kvm_s2_put_page", line) for line in splats) == bool(which), splats


# --- how long the lock is held, in virtual time ---

VCPUS = 8


def runs(kernel, size, output):
    """The runs, as of a results file, of what dirty_hold_test has printed of a memslot of `size` MiB."""
    return [
        {"kernel": kernel, "args": f"-b {size}", "metric": found.metric, "samples": [found.value]}
        for found in parse.parse("dirty_hold_test", output)
    ]


@functools.cache
def _measured(which):
    """runs() of all claims.SIZES on "base" or the milestone "bounded", in virtual time.  Later, vCPUs do not wait for a
    clear any more, so there the lock is held for all of it."""
    count = {"base": 0, "bounded": catalog.load(NAME).upto("bounded")}[which]
    kernel = guests.planted("hold-times", name=NAME, count=count)
    commands = [
        (f"hold-{size}", 1200, ["/tests/spread", "/tests/dirty_hold_test", "-v", str(VCPUS), "-b", str(size)])
        for size in claims.SIZES
    ]
    archive = guests.initrd(name=NAME)
    with progress.single("vtime-bounded", f"virtual time: holds on {which}", 300) as note:
        emulated = machine.Machine("arm64", vtime.CPUS["arm64"], cpus=VCPUS + 2, clock="virtual", slice_ns=guests.SLICE)
        result = guest.run(kernel, archive, emulated, commands, f"vtime-bounded-{which}", note, silence=900)
    assert not result.splats
    assert not any(outcome.status for outcome in result.outcomes), result.folder
    return [run for size, outcome in zip(claims.SIZES, result.outcomes) for run in runs(which, size, outcome.output)]


def test_nobody_holds_the_lock_for_long():
    """While the log is cleared and vCPUs wait; and while 64 MiB are unmapped, as if somebody waited."""
    measured = _measured("base") + _measured("bounded")
    print(
        "mmu_lock held for write:",
        *(f"{run['kernel']} {run['args']} {run['metric']} {run['samples'][0]}" for run in measured),
        sep="\n",
    )
    assert not claims.bounded_holds(measured, "bounded")
    # And negative control: base is not so.
    assert claims.bounded_holds(measured, "base")
