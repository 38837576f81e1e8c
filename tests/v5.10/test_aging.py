"""Aging without a lock: that it takes none, that vCPUs that fault and who ages do not slow each other
down where the pages that are aged are young, and that no access is forgotten, all by
access_tracking_stress_test.  And aging that races:
stage2_fault_stress_test on a kernel whose faults, unmapping and write protection wait for aging to be
there (patches/instruments/v5.10/delays.patch).

A walk that ages counts once, however many leaves of it raced.  With lockdep and KASAN, for hours: make soak.
"""

import functools
import re

import pytest

from tests import aging, claims
from tests.lab import Lab, with_mutants

pytestmark = [pytest.mark.boot, pytest.mark.slow]

# In virtual time: vCPUs, and iterations, of which the first warms up.
VCPUS, ITERATIONS = 16, 3

# How many of each race there must be, and seconds of each run.  Measured with two CPUs that are busy otherwise: one takes
# 0.25 s, and 0.06 for what is unmapped.
WANTED, SECONDS = 20, 20
DELAYED = with_mutants("v5.10")

PROGRAM = "/tests/stage2_fault_stress_test"
# Never so many of everything that it stops before its time.  No vCPU stays at a word.
LINE = (PROGRAM, "-m", "get", "-n", "1000000", "-r", "3", "-i", "1000", "-v", "1")
# All who make aging race, and some who age by themselves
ALL = (*LINE, "-v", "3", "-b", "8M", "-o", "log,punch,rally,age")
# Who makes what race, over what memory: blocks are split and collapsed as logging goes on and off.
RACES = {"log": (("lost", "replaced"), "anonymous_thp", "16M"), "punch": (("unmapped",), "anonymous", "8M")}
DELAY_US, LATE_US = 5000, 20000
# With a long wait write protection goes on while the walk that ages waits, so the walk loses.  With a short one either
# may be first.  Measured with wrprotect-gives-up, 60 s at most: 5000 us found it in 2 of 5 runs, 50 us in 10 of 10,
# after 3 to 46 s.
EITHER_US = 50
KILLED = 6
# An oops of who walks the page table, and of nobody else.
OOPS = r"Unable to handle kernel[^\0]*?\bpc : (stage2_|__kvm_pgtable_)"


@pytest.fixture(scope="module", name="counts")
def _counts():
    """Aged while vCPUs fault in memory that is new to the host, too."""
    return aging.lock_counts(Lab("v5.10", patches=("hold-times",)).virtual(2 + 2), "counts-{}-" + aging.ACCESS)


def test_aging_takes_no_lock(counts):
    assert not claims.lockless_aging(counts, "series")


def test_negative_control_base_takes_the_lock_to_age(counts):
    assert not claims.locked_aging(counts, "base", aging.PAGES, aging.PASSES)
    assert claims.lockless_aging(counts, "base")


@functools.cache
def _hot(label):
    """aging.hot() with so many vCPUs that fault memory in and access what is aged."""
    return aging.hot(Lab("v5.10", label), f"-i {ITERATIONS}", VCPUS, 120, label)


def test_faults_do_not_slow_aging_down():
    aging.found_young(_hot("series"), VCPUS)
    assert aging.beside(_hot("series")) <= aging.BESIDE


def test_negative_control_faults_slow_aging_down_on_base():
    aging.found_young(_hot("base"), VCPUS)
    assert aging.beside(_hot("base")) > 5


def test_aging_does_not_slow_faults_down():
    assert aging.with_aging(_hot("series"), "instructions_per_fault.fault") == pytest.approx(1, rel=0.05)
    assert aging.with_aging(_hot("series"), "fault_memory_time") <= aging.SLOWER


def test_negative_control_an_access_that_is_forgotten_is_noticed():
    command = [f"/tests/{aging.ACCESS}", "-b", "512K", "-i", "1"]
    aging.forgets(DELAYED.but(mutant="age-forgets"), command, "aging-age-forgets")


def _killing(vms, seconds):
    """The command that has so many VMs killed while they are aged."""
    line = (PROGRAM, "-m", "get", "-n", "1000000", "-r", "3", "-i", "300", "-v", "2", "-b", "4M", "-o", "punch,age")
    return (*line, "-K", "-k", vms, "-t", seconds)


@pytest.mark.parametrize("helper", RACES)
def test_aging_that_races_loses_nothing(helper):
    races, memory, size = RACES[helper]
    command = (*LINE, "-o", helper, "-s", memory, "-b", size, "-t", SECONDS)
    aging.lose_nothing(DELAYED, helper, command, SECONDS, DELAY_US, dict.fromkeys(races, WANTED), 3)


def test_vms_are_killed_while_they_are_aged():
    ran = DELAYED.stress(aging.ages(LATE_US, _killing(KILLED, 2 * KILLED)), 3 * KILLED, "aging-late").good()
    assert ran.counts()["walks_that_age.late"] >= 1, ran.output


def _wreck(mutant, command, delay_us):
    return DELAYED.but(mutant=mutant).wreck(aging.ages(delay_us, command), 60, f"aging-{mutant}")


def test_negative_control_what_is_unmapped_comes_back():
    found = _wreck("age-without-cmpxchg", (*ALL, "-t", "60"), DELAY_US)
    assert re.search(
        r": (stale|lost|wrong): |is not in the dirty log|"
        rf"WARNING: .* at (stage2_|__kvm_pgtable_)|{OOPS}",
        found,
    ), found


def test_negative_control_write_protection_that_gives_up():
    found = _wreck("wrprotect-gives-up", (*LINE, "-o", "log", "-b", "8M", "-t", "180"), EITHER_US)
    assert "is not in the dirty log" in found, found


FREED = {"pgt-freed-without-rcu": _killing(10, 20), "age-table-freed-without-rcu": (*ALL, "-t", "45")}


@pytest.mark.parametrize("mutant", FREED)
def test_negative_control_freed_under_aging(mutant):
    found = _wreck(mutant, FREED[mutant], LATE_US)
    assert re.search(f"WARNING: .*(stage2_age|__kvm_pgtable_walk)|Bad page state|{OOPS}", found), found
