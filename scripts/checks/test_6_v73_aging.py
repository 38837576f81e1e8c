"""Milestone `aging` of patches/v7.3: aging that races loses nothing.

The kernel has delays and counts of races, patches/instruments/v7.3/aging-delays.patch, and one bug at most of
patches/mutants/v7.3/aging-mutants.patch.  All are in `make test-all` alone: see extra.quick().
"""

import functools
import re
from statistics import median

import pytest

from checks import guests
from kvmseries.base.errors import Fail
from kvmseries.kernel import build
from kvmseries.source import catalog

NAME = "v7.3"
pytestmark = [pytest.mark.boot, pytest.mark.slow, pytest.mark.reads(NAME)]

BUGS = ("mutants", "aging-delays", "aging-mutants")
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


def _run(which, command, delays=(0, 0), configs=(), params=()):
    """(guest.Outcome, splats) of a shell command with kvm.mutant=WHICH, or with nothing planted.

    delays: us for which walks that age wait, and for which entries that are broken stay locked."""
    delay_us, locked_us = delays
    script = f"echo {delay_us} > {FOLDER}/delay_us; echo {locked_us} > {FOLDER}/locked_us; {command}\nstatus=$?; cd {FOLDER}; grep . *; exit $status"
    outcomes, splats = guests.run_planted(
        BUGS,
        which,
        {"aging": ["sh", "-c", script]},
        3 * SECONDS + 120,
        "v73-aging",
        configs=configs,
        params=params,
        count=catalog.load(NAME).upto("aging"),
        name=NAME,
    )
    return outcomes["aging"], splats


def counts(output):
    """{race: times} that the command above has printed at its end."""
    return {race: int(times) for race, times in re.findall(r"^(\w+):(\d+)$", output, re.M)}


@pytest.mark.parametrize("what", RACES)
def test_aging_that_races_loses_nothing(what):
    command, delays, races = RACES[what]
    outcome, splats = _run("", command, delays)
    met = counts(outcome.output)
    print(what, met)
    assert not outcome.status, outcome.output
    assert not splats
    assert all(met[race] >= times for race, times in races.items()), met


def test_negative_control_aging_that_ends_at_a_lost_race():
    """The walk's caller warns, since a visitor that ages returns 0."""
    _, splats = _run("age-ends-early", *RACES["pages"][:2])
    assert any("kvm_pgtable_stage2_test_clear_young" in line for line in splats), splats


def test_negative_control_an_access_that_is_forgotten_is_noticed():
    outcome, _ = _run("age-forgets", ACCESS)
    assert re.search(r"\d+ pages were found idle, although vCPUs accessed them after a flush", outcome.output), (
        outcome.output
    )
    assert outcome.status


def _goes_wrong(which, what, delays, splat):
    """Whether a run of RACES[WHAT] with WHICH planted finds stale or lost data, or the kernel says so by `splat`, or goes
    down: what was freed may be its own by then."""
    # Here, so that a Fail below is the guest's end.
    guests.planted(*BUGS, count=catalog.load(NAME).upto("aging"), name=NAME)
    try:
        outcome, splats = _run(which, RACES[what][0], delays)
    except Fail as error:
        return "kernel panicked" in str(error)
    print(outcome.why(), splats)
    found = outcome.status and re.search(r"(stale|lost|wrong): |is not in the dirty log", outcome.output)
    return bool(found) or any(re.search(splat, line) for line in splats)


# {what is planted: (a key of RACES, us of delays, what a kernel reports that notices it itself)}
PLANTED = {
    "age-plain-store": ("punch", (2000, 0), "Bad page state|memory corruption"),
    # Write-protection waits for long enough to race, and too short for the ager to have done always.
    "wrprotect-gives-up": ("log", (50, 50), "(?!)"),
    "table-freed-at-once": ("punch", (2000, 0), "WARNING: .*stage2_delay_age|Bad page state"),
    "pgt-freed-at-once": ("killed", (20000, 0), "WARNING: .*stage2_delay_age|Bad page state"),
}


@pytest.mark.parametrize("which", PLANTED)
def test_negative_control_a_race_that_is_lost_is_noticed(which):
    what, delays, splat = PLANTED[which]
    assert any(_goes_wrong(which, what, delays, splat) for _ in range(3))


def test_negative_control_aging_outside_of_an_rcu_section():
    """By lockdep, in the debug configuration; nothing else can, since its callers hold a spinlock.  Where they hold a table
    of pages, they are in an RCU section of their own (pte_offset_map()), so the memory is huge pages of the host."""
    _, splats = _run(
        "age-outside-rcu",
        "/tests/access_tracking_stress_test -b 4M -i 1 -s anonymous_thp -k page_idle",
        configs=("debug",),
    )
    assert any("suspicious RCU usage" in line for line in splats), splats


@functools.cache
def _exit_us(label):
    """us of virtual time that a killed VM of 2 GiB takes to exit on the kernel `label`, three of them."""
    series = catalog.load(NAME)
    (point,) = catalog.points(series, label)
    kernel = build.kernel(series, point.count, "arm64")
    commands = [(str(at), 900, ["/tests/vm_killed_test", "-b", "2048"]) for at in range(3)]
    result = guests.virtual(kernel, f"killed-{label}", commands, 3, memory=4096, series=NAME)
    times = [
        int(us)
        for outcome in result.outcomes
        for us in re.findall(r"exit takes (\d+) us each; tables of -?\d+ KiB left", outcome.output)
    ]
    print(label, times)
    assert len(times) == 3
    return times


def test_a_killed_vm_exits_as_fast_as_on_base():
    """Whose tables go after a grace period; no table is left, or the test fails."""
    assert median(_exit_us("series")) <= 1.05 * median(_exit_us("base"))


VCPUS = 8


def _grace_periods(which):
    """How often the kernel waits for a grace period while a VM with two shadow page tables for each of VCPUS vCPUs comes
    and goes."""
    command = ["/tests/nested_destroy_test", str(VCPUS)]
    outcomes, splats = guests.run_planted(
        BUGS,
        which,
        {"destroy": list(guests.script("calls/calls.sh", *command))},
        900,
        "v73-grace-periods",
        configs=("kprobes",),
        params=("kvm-arm.mode=nested",),
        count=catalog.load(NAME).upto("aging"),
        name=NAME,
    )
    outcome = outcomes["destroy"]
    assert not outcome.status and not splats, outcome.why()
    found = re.search(r"^Calls: grace_period (\d+)$", outcome.output, re.M)
    assert found, outcome.output
    print(which or "nothing", found[1])
    return int(found[1])


def test_a_vm_that_goes_waits_for_one_grace_period():
    """All of its page tables together; a grace period for each is the planted bug."""
    assert _grace_periods("grace-period-each") >= _grace_periods("") + 2 * VCPUS
