"""Milestone `aging` of patches/v7.3: aging that races loses nothing.

The kernel has delays and counts of races, patches/debug/v7.3-aging-delays.patch, and one bug at most of
v7.3-aging-planted.patch.  All are in `make test-all` alone: see extra.quick().
"""

import re

import pytest

from checks import guests
from kvmseries.source import catalog

NAME = "v7.3"
pytestmark = [pytest.mark.boot, pytest.mark.slow, pytest.mark.reads(NAME)]

FOLDER = "/sys/kernel/debug/stage2_ages"
SECONDS, DELAY_US = 60, 2000
STRESS = f"/tests/stage2_fault_stress_test -m get -n 1000000 -r 3 -v 2 -i 1000 -b 8M -t {SECONDS}"
# What races with aging: {run: (command, races that it must meet)}.
RACES = {
    "log": (f"{STRESS} -s anonymous_thp -o log,rally,age", ("lost", "replaced", "locked")),
    "punch": (f"{STRESS} -v 1 -s anonymous -o punch,age", ("unmapped",)),
}
ACCESS = "/tests/access_tracking_stress_test -b 512K -i 1"


def _run(which, command, delay_us=DELAY_US):
    """(guest.Outcome, splats) of a shell command with kvm.planted=WHICH, or with nothing planted."""
    script = f"echo {delay_us} > {FOLDER}/delay_us; {command}\nstatus=$?; cd {FOLDER}; grep . *; exit $status"
    outcomes, splats = guests.run_planted(
        ("planted", "aging-delays", "aging-planted"),
        which,
        {"aging": ["sh", "-c", script]},
        3 * SECONDS + 120,
        "v73-aging",
        count=catalog.load(NAME).upto("aging"),
        name=NAME,
    )
    return outcomes["aging"], splats


def counts(output):
    """{race: times} that the command above has printed at its end."""
    return {race: int(times) for race, times in re.findall(r"^(\w+):(\d+)$", output, re.M)}


@pytest.mark.parametrize("what", RACES)
def test_aging_that_races_loses_nothing(what):
    command, races = RACES[what]
    outcome, splats = _run("", command)
    met = counts(outcome.output)
    print(what, met)
    assert not outcome.status, outcome.output
    assert not splats
    assert all(met[race] for race in races), met


def test_negative_control_aging_that_ends_at_a_lost_race():
    """The walk's caller warns, since a visitor that ages returns 0."""
    _, splats = _run("age-ends-early", RACES["log"][0])
    assert any("kvm_pgtable_stage2_test_clear_young" in line for line in splats), splats


def test_negative_control_an_access_that_is_forgotten_is_noticed():
    outcome, _ = _run("age-forgets", ACCESS, 0)
    assert re.search(r"\d+ pages were found idle, although vCPUs accessed them after a flush", outcome.output), (
        outcome.output
    )
    assert outcome.status
