"""Milestone `retry-gfn`: a fault maps no page that is being invalidated, and waits for no other range.

The kernel has delays and counts of races, patches/instruments/SERIES/retry-delays.patch."""

import re
from pathlib import Path

import pytest

from kvmseries.base.errors import Fail
from tests.lab import delayed, Lab, races

pytestmark = [pytest.mark.boot, pytest.mark.slow]
SERIES = Path(__file__).parent.name

LAB = Lab(SERIES, patches=("mutants", "retry-delays"))
FOLDER = "/sys/kernel/debug/stage2_retries"
SECONDS = 60
# us
DELAY, LINGER = 2000, 2000
# {what a fault finds: times that it must be met}, in so many runs at most: an idle host needs one.
RACES = {"at_look": 1000, "in_range": 1000, "ended": 200, "beside": 1000}
MOST = 4
PAGES = "-m get -n 1000000 -r 3 -v 2 -i 1000 -b 4M -t"


def _run(which, memory):
    """The Ran of stage2_fault_stress_test, which verifies what is read, while holes are punched in `memory`."""
    test = f"/tests/stage2_fault_stress_test {PAGES} {SECONDS} -s {memory} -o punch"
    words = delayed(FOLDER, "Faults that map", test, delay_us=DELAY, linger_us=LINGER)
    return LAB.but(mutant=which).run(words, 3 * SECONDS + 120, f"{SERIES}-retry-{memory}-{which or 'nothing'}")


@pytest.mark.parametrize("memory", ["anonymous", "anonymous_thp"])
def test_faults_that_race_map_nothing_that_is_invalidated(memory):
    def run():
        met = _run("", memory).good().counts()
        print(memory, dict(met))
        return met

    races({f"faults_that_map.{race}": times for race, times in RACES.items()}, MOST, run)


def test_negative_control_memory_that_was_unmapped_is_used():
    # Here, so that a Fail below is the guest's end: the memory may be the kernel's own by then.
    LAB.built()
    # On a busy host the guest seldom comes back to a page before it is unmapped again.
    for _ in range(MOST):
        try:
            ran = _run("retry-another-page", "anonymous")
        except Fail:
            return
        if ran.splats or ran.status and re.search(r"(stale|lost|wrong): ", ran.output):
            return
    pytest.fail(ran.one().why())
