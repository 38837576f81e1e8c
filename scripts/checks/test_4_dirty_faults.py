"""Milestone `fast-path` of patches/v7.3: a write fault that only the dirty log has caused takes no lock, and no write is lost.

What is planted is in patches/debug/v7.3-undo-planted.patch.  All are in `make test-all` alone: see extra.quick().
"""

import re

import pytest

from checks import guests
from kvmseries.base.errors import Fail

NAME = "v7.3"
pytestmark = [pytest.mark.boot, pytest.mark.slow, pytest.mark.reads(NAME)]
SECONDS = 180
HUGE_PAGES = ("series.hugepages=520",)
BUGS = ("planted", "undo-planted")
# What a test says when a write is missing in the log.
_MISSING = r"(Dirty|Clear) page \d+ value|writes are missing in the log|which no harvest reported"


def _log(memory, mode="dirty-log"):
    return ["/tests/dirty_log_test", "-M", mode, "-m", "3", "-i", "4", "-I", "50", "-s", memory]


# {name: command}
TESTS = {
    "4k": _log("anonymous"),
    "hugetlb": _log("anonymous_hugetlb_2mb"),
    "ring": _log("anonymous_hugetlb_2mb", "dirty-ring"),
    "busy": ["/tests/dirty_harvest_test", "busy", "20"],
    # Which has blocks when the log is turned on, and checks that all is reported.
    "blocks": [
        "/tests/dirty_log_perf_test",
        "-v",
        "2",
        "-b",
        "8M",
        "-i",
        "3",
        "-m",
        "3",
        "-g",
        "-H",
        "2000",
        "-s",
        "anonymous_hugetlb_2mb",
    ],
    "count": ["/tests/dirty_block_test"],
    "punch": ["/tests/stage2_fault_stress_test", "-m", "get", "-t", "20", "-o", "log,punch"],
}
# {what is planted: {the test that must find it: by what words}}
PLANTED = {
    "undo-no-log": {"4k": _MISSING},
    "undo-log-first": {"busy": _MISSING},
    "undo-block": {"blocks": _MISSING},
    "undo-unlogged": {"count": "write to all pages after logging: 512 faults, expected 1"},
    "split-read-only": {"count": "split it by a write: 2 faults, expected 1"},
}


def _run(which, commands):
    """({name: guest.Outcome}, splats) of `commands`, {name: words}, with what is planted, or nothing."""
    return guests.run_planted(BUGS, which, commands, SECONDS, "dirty-faults", params=HUGE_PAGES, memory=4096, name=NAME)


def test_nothing_is_lost():
    outcomes, splats = _run("", TESTS)
    assert not splats
    assert not any(outcome.status for outcome in outcomes.values()), {
        name: outcome.why() for name, outcome in outcomes.items()
    }


@pytest.mark.parametrize("which", PLANTED)
def test_negative_control_what_is_lost_is_noticed(which):
    outcomes, _ = _run(which, {name: TESTS[name] for name in PLANTED[which]})
    for name, words in PLANTED[which].items():
        assert outcomes[name].status not in (0, 4, 124) and re.search(words, outcomes[name].output), outcomes[
            name
        ].why()


def _unmapped_is_written_to(seed):
    """Whether a run of stage2_fault_stress_test sees it, or the kernel goes down: the memory may be its own by then."""
    # Here, so that a Fail below is the guest's end.
    guests.planted(*BUGS, name=NAME)
    try:
        outcomes, splats = _run("undo-plain-store", {"punch": [*TESTS["punch"], "-r", str(seed)]})
    except Fail:
        return True
    outcome = outcomes["punch"]
    return bool(splats) or outcome.status != 0 and re.search(r"(stale|lost|wrong): ", outcome.output)


def test_negative_control_memory_that_was_unmapped_is_written_to():
    """It takes a race, so several runs."""
    assert any(_unmapped_is_written_to(seed) for seed in range(1, 7))


def _swap(which):
    """(guest.Outcome, splats) of dirty_log_swap_test, with swap on a loop device, and what is planted, or nothing."""
    outcomes, splats = guests.run_planted(
        BUGS,
        which,
        {"swap": ["/tests/dirty_log_swap_test", "-d", "/tmp/swap"]},
        SECONDS,
        "dirty-swap",
        configs=("loop",),
        name=NAME,
    )
    return outcomes["swap"], splats


def test_a_write_to_logged_memory_survives_swap():
    outcome, splats = _swap("")
    # Or nothing was swapped: the test is skipped without swap that keeps clean pages.
    assert not outcome.status and not splats, outcome.why()


def test_negative_control_a_clean_page_that_the_guest_writes_to_is_dropped():
    outcome, _ = _swap("undo-clean")
    found = re.search(
        r"(\d+) of \d+ pages are not as round 2 wrote them; page \d+ has what round 1 wrote", outcome.output
    )
    assert outcome.status == 254 and found and int(found[1]) > 1000, outcome.why()
