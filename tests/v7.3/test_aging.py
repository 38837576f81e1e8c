"""Milestone `aging`: aging that races loses nothing.

The kernel has delays and counts of races, patches/instruments/SERIES/aging-delays.patch, and one bug at most of
patches/mutants/SERIES/aging-mutants.patch."""

import functools
import re
from pathlib import Path
from statistics import median

import pytest

from kvmseries.base.errors import Fail
from tests import aging
from tests.lab import delayed, Lab, script, with_mutants

pytestmark = pytest.mark.boot
SERIES = Path(__file__).parent.name

FOLDER = "/sys/kernel/debug/stage2_ages"
SECONDS = 60
STRESS = f"/tests/stage2_fault_stress_test -m get -n 1000000 -r 3 -v 2 -i 1000 -b 8M -t {SECONDS} -s anonymous_thp"
# What races with aging: {run: (command, us of delays as for _run(), {race: times that it must be met})}.
RACES = {
    # Verifies what is read and logged.
    "log": (f"{STRESS} -o log,rally,age", (2000, 500), {"lost": 1, "replaced": 1, "locked": 1}),
    "punch": (f"{STRESS} -o punch,age", (2000, 0), {"unmapped": 1}),
    # As often as they can.
    "pages": (f"/tests/stage2_race_test pages {SECONDS}", (5000, 0), {"lost": 100, "unmapped": 10}),
    "unmap": (f"/tests/stage2_race_test unmap {SECONDS}", (20000, 0), {"unmapped": 100}),
    "split": (f"/tests/stage2_race_test split {SECONDS}", (4000, 0), {"replaced": 50}),
    "blocks": (f"/tests/stage2_race_test blocks {SECONDS}", (0, 2000), {"locked": 10}),
    # VMs that another process ages until they are killed.
    "killed": ("/tests/vm_killed_test -a -n 20 -b 2", (20000, 0), {"late": 200, "overtaken": 10}),
}
ACCESS = "/tests/access_tracking_stress_test -b 512K -i 1"


def _delayed(command, delays=(0, 0)):
    """The words of a shell command that is run with delays, us for which walks that age wait, and for which entries that
    are broken stay locked; it ends with counts of races."""
    delay_us, locked_us = delays
    return delayed(FOLDER, "Walks that age", command, delay_us=delay_us, locked_us=locked_us)


def _run(which, command, delays=(0, 0), configs=(), params=()):
    """The Ran of a shell command with `which` planted, or with nothing planted; delays as for _delayed()."""
    lab = with_mutants(SERIES, configs=configs).but(mutant=which, params=params)
    return lab.run(_delayed(command, delays), 3 * SECONDS + 120, f"{SERIES}-aging-{which or 'nothing'}")


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=() if what == "log" else pytest.mark.slow) for what in RACES]
)
def test_aging_that_races_loses_nothing(what):
    command, delays, races = RACES[what]
    ran = _run("", command, delays)
    met = ran.counts()
    print(what, dict(met))
    ran.good()
    assert all(met[f"walks_that_age.{race}"] >= times for race, times in races.items()), met


@pytest.mark.slow
@pytest.mark.skipif(SERIES == "v6.12", reason="6.12's walks go on after -EAGAIN")
def test_negative_control_aging_that_ends_at_a_lost_race():
    """The walk's caller warns, since a visitor that ages returns 0."""
    splats = _run("age-ends-early", *RACES["pages"][:2]).splats
    assert any("kvm_pgtable_stage2_test_clear_young" in line for line in splats), splats


def test_negative_control_an_access_that_is_forgotten_is_noticed():
    lab = with_mutants(SERIES).but(mutant="age-forgets")
    aging.forgets(lab, _delayed(ACCESS), f"{SERIES}-aging-age-forgets")


def _goes_wrong(which, what, delays, splat):
    """Whether a run of RACES[WHAT] with WHICH planted finds stale or lost data, or the kernel says so by `splat`, or goes
    down: what was freed may be its own by then."""
    # Here, so that a Fail below is the guest's end.
    with_mutants(SERIES).built()
    try:
        ran = _run(which, RACES[what][0], delays)
    except Fail as error:
        return "kernel panicked" in str(error)
    print(ran.one().why(), ran.splats)
    found = ran.status and re.search(r"(stale|lost|wrong): |is not in the dirty log", ran.output)
    return bool(found) or any(re.search(splat, line) for line in ran.splats)


# {mutant: (a key of RACES, us of delays, what a kernel reports that notices it itself)}
MUTANTS = {
    "age-plain-store": ("punch", (2000, 0), "Bad page state|memory corruption"),
    # Write-protection waits for long enough to race, and too short for the ager to have done always.
    "mask-gives-up": ("log", (50, 50), "(?!)"),
    "table-freed-at-once": ("punch", (2000, 0), "WARNING: .*stage2_delay_age|Bad page state"),
    "pgt-freed-at-once": ("killed", (20000, 0), "WARNING: .*stage2_delay_age|Bad page state"),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", MUTANTS)
def test_negative_control_a_race_that_is_lost_is_noticed(which):
    what, delays, splat = MUTANTS[which]
    assert any(_goes_wrong(which, what, delays, splat) for _ in range(3))


@pytest.mark.slow
def test_negative_control_aging_outside_of_an_rcu_section():
    """By lockdep, in the debug configuration; nothing else can, since its callers hold a spinlock.  Where they hold a table
    of pages, they are in an RCU section of their own (pte_offset_map()), so the memory is huge pages of the host."""
    command = "/tests/access_tracking_stress_test -b 4M -i 1 -s anonymous_thp -k page_idle"
    splats = _run("age-outside-rcu", command, configs=("debug",)).splats
    assert any("suspicious RCU usage" in line for line in splats), splats


@functools.cache
def _exit_us(label):
    """us of virtual time that a killed VM of 2 GiB takes to exit on the kernel `label`, three of them."""
    lab = Lab(SERIES, label, machine={"memory": 4096}).virtual(3)
    commands = {str(at): ["/tests/vm_killed_test", "-b", "2048"] for at in range(3)}
    times = [
        int(us)
        for outcome in lab.run(commands, 900, f"{SERIES}-vtime-killed-{label}").good().outcomes.values()
        for us in re.findall(r"exit takes (\d+) us; tables of -?\d+ KiB left", outcome.output)
    ]
    print(label, times)
    assert len(times) == 3
    return times


@pytest.mark.slow
def test_a_killed_vm_exits_as_fast_as_on_base():
    """Whose tables go after a grace period; no table is left, or the test fails."""
    assert median(_exit_us("series")) <= 1.05 * median(_exit_us("base"))


VCPUS = 8


def _grace_periods(lab, name):
    """How often the kernel waits for a grace period while a VM with two shadow page tables for each of VCPUS vCPUs comes
    and goes."""
    lab = lab.but(configs=("kprobes",), params=("kvm-arm.mode=nested",))
    ran = lab.run(
        script("calls/calls.sh", "/tests/nested_destroy_test", VCPUS), 900, f"{SERIES}-grace-periods-{name}"
    ).good()
    found = re.search(r"^Calls: grace_period (\d+)$", ran.output, re.M)
    assert found, ran.output
    print(name, found[1])
    return int(found[1])


@pytest.mark.slow
@pytest.mark.skipif(SERIES == "v6.12", reason="6.12's selftests cannot make a VM with shadow page tables")
def test_a_vm_that_goes_waits_for_no_grace_period():
    """As on base; a grace period for each of its page tables is the mutant."""
    series = _grace_periods(with_mutants(SERIES), "series")
    assert series <= _grace_periods(Lab(SERIES, "base"), "base")
    assert _grace_periods(with_mutants(SERIES).but(mutant="grace-period-each"), "each") >= series + 2 * VCPUS
