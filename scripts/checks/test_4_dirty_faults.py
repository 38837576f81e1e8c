"""Milestone `fast-path` of patches/v7.3: a write fault that only the dirty log has caused takes no lock, and no write is lost.

What is planted is in patches/debug/v7.3-undo-planted.patch.  All are in `make test-all` alone: see extra.quick().
"""

import re

import pytest

from checks import guests
from kvmseries.base import progress
from kvmseries.base.errors import Fail
from kvmseries.guest import image, machine, run as guest
from kvmseries.kernel import selftests
from kvmseries.source import catalog

NAME = "v7.3"
pytestmark = [pytest.mark.boot, pytest.mark.slow]
SECONDS = 180
HUGE_PAGES = "series.hugepages=520"
# What a test says when a write is missing in the log.
_MISSING = r"(Dirty|Clear) page \d+ value|writes are missing in the log|which no harvest reported"


def _log(memory, mode="dirty-log"):
    return ["/tests/dirty_log_test", "-M", mode, "-m", "3", "-i", "4", "-I", "50", "-s", memory]


# {name: command}
TESTS = {"4k": _log("anonymous"), "hugetlb": _log("anonymous_hugetlb_2mb"), "ring": _log("anonymous_hugetlb_2mb", "dirty-ring"),
         "busy": ["/tests/dirty_harvest_test", "busy", "20"],
         # Which has blocks when the log is turned on, and checks that all is reported.
         "blocks": ["/tests/dirty_log_perf_test", "-v", "2", "-b", "8M", "-i", "3", "-m", "3", "-g", "-H", "2000",
                    "-s", "anonymous_hugetlb_2mb"],
         "punch": ["/tests/stage2_fault_stress_test", "-m", "get", "-t", "20", "-o", "log,punch"]}
# {what is planted: {the test that must find it: by what words}}
PLANTED = {"undo-no-log": {"4k": _MISSING}, "undo-log-first": {"busy": _MISSING},
           "undo-block": {"blocks": _MISSING}}


def _run(which, names):
    """({name: guest.Outcome}, splats) of TESTS[name] for `names`, with kvm.planted=WHICH or, if it is "", nothing planted."""
    kernel = guests.planted("planted", "undo-planted", name=NAME)
    archive = image.base("arm64", selftests.build(catalog.load(NAME), "arm64"))
    params = (HUGE_PAGES, f"kvm.planted={which}") if which else (HUGE_PAGES,)
    name = f"dirty-faults-{which or 'nothing'}"
    with progress.single("dirty-faults", name, 60) as note:
        result = guest.run(kernel, archive, machine.Machine("arm64", memory=4096, params=params),
                           [(test, SECONDS, TESTS[test]) for test in names], name, note)
    return dict(zip(names, result.outcomes)), result.splats


def test_nothing_is_lost():
    outcomes, splats = _run("", TESTS)
    assert not splats
    assert not any(outcome.status for outcome in outcomes.values()), {name: outcome.why() for name, outcome in outcomes.items()}


@pytest.mark.parametrize("which", PLANTED)
def test_negative_control_what_is_lost_is_noticed(which):
    outcomes, _ = _run(which, PLANTED[which])
    for name, words in PLANTED[which].items():
        assert outcomes[name].status not in (0, 4, 124) and re.search(words, outcomes[name].output), outcomes[name].why()


def _unmapped_is_written_to(seed):
    """Whether a run of stage2_fault_stress_test sees it, or the kernel goes down: the memory may be its own by then."""
    TESTS[f"punch-{seed}"] = [*TESTS["punch"], "-r", str(seed)]
    # Here, so that a Fail below is the guest's end.
    guests.planted("planted", "undo-planted", name=NAME)
    try:
        outcomes, splats = _run("undo-plain-store", [f"punch-{seed}"])
    except Fail:
        return True
    outcome = outcomes[f"punch-{seed}"]
    return bool(splats) or outcome.status != 0 and re.search(r"(stale|lost|wrong): ", outcome.output)


def test_negative_control_memory_that_was_unmapped_is_written_to():
    """It takes a race, so several runs."""
    assert any(_unmapped_is_written_to(seed) for seed in range(1, 7))
