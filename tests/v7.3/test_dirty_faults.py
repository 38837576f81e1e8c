"""Milestone `fast-path`: a write fault that only the dirty log has caused takes no lock, and no write is lost.

The mutants are in patches/mutants/SERIES/undo-mutants.patch."""

import functools
import re
from pathlib import Path

import pytest

from kvmseries.base.errors import Fail
from tests.lab import Lab, races, script

pytestmark = pytest.mark.boot
SERIES = Path(__file__).parent.name
SECONDS = 180
HUGE_PAGES = ("series.hugepages=520",)
MUTANTS = Lab(SERIES, params=HUGE_PAGES, patches=("mutants", "undo-mutants"), machine={"memory": 4096})
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
    "blocks": "/tests/dirty_log_perf_test -v 2 -b 8M -i 3 -m 3 -g -H 2000 -s anonymous_hugetlb_2mb".split(),
    "count": ["/tests/dirty_block_test"],
    "mask": ["/tests/dirty_mask_test"],
    "area": "/tests/migration_area_test -v 2 -w 100 -u 2000 -S 50000".split(),
    "punch": ["/tests/stage2_fault_stress_test", "-m", "get", "-t", "20", "-o", "log,punch"],
}
# {mutant: {the test that must find it: by what words}}
MUTANTS = {
    "undo-no-log": {"4k": _MISSING, "area": r"\d+ pages are not what the guest has"},
    "undo-log-first": {"busy": _MISSING},
    "undo-block": {"blocks": _MISSING},
    "undo-unlogged": {"count": "of these without mmu_lock: 512 faults, expected 0"},
    "mask-to-last-bit": {"mask": r"after a clear of 8000000000000001: 256 faults, expected 8"},
    "mask-one-table": {"mask": r"after a clear of f{16}: \d+ faults, expected 256"},
    "split-stays": {"count": "read all pages after logging: 0 faults, expected 1"},
    "split-read-only": {"count": "split it by a write: 2 faults, expected 1"},
}


def _run(which, commands):
    """The Ran of `commands`, {name: words}, with a mutant, or nothing."""
    return MUTANTS.but(mutant=which).run(commands, SECONDS, f"{SERIES}-dirty-faults-{which or 'nothing'}")


# 7.3 maps VMs at EL2 with "protected", and takes no fault without mmu_lock there.
@pytest.mark.parametrize("mode", ["vhe", *(["protected"] if SERIES == "v6.12" else [])])
def test_faults_are_as_many_as_they_must_be(mode):
    """On the series as it is, in no more than a boot."""
    commands = {name: TESTS[name] for name in ("count", "mask")}
    params = () if mode == "vhe" else (f"kvm-arm.mode={mode}",)
    Lab(SERIES, params=(*HUGE_PAGES, *params)).run(commands, SECONDS, f"{SERIES}-dirty-faults-count-{mode}").good()


@pytest.mark.slow
def test_nothing_is_lost():
    _run("", TESTS).good()


@pytest.mark.slow
@pytest.mark.parametrize("which", MUTANTS)
def test_negative_control_what_is_lost_is_noticed(which):
    ran = _run(which, {name: TESTS[name] for name in MUTANTS[which]})
    for name, words in MUTANTS[which].items():
        assert ran.found(words, name), ran.one(name).why()


# {what stage2_race_test races for: {race: times that it must be met}}
RACES = {
    "pages": {"set": 100, "lost_set": 50, "lost_aged": 10, "lost_accessed": 5, "lost_unmapped": 20}
    | {"wrprotected": 50, "unmapped": 10},
    "blocks": {"set": 50, "lost_aged": 20, "lost_accessed": 20, "table_gone": 20},
}
# Runs in which these are to be met; an idle host needs one.
MOST = 3


@pytest.mark.slow
@pytest.mark.parametrize("what", RACES)
def test_a_fault_that_races_is_right(what):
    """By the kernel's own checks, with delays: patches/instruments/SERIES/undo-delays.patch."""
    # Delays in us: of walks that age, of entries that are locked, of faults that undo, of their walks.
    command = script("soak/stage2-races.sh", 1, 2000, 2000, 0, "/tests/stage2_race_test", what, 60)
    lab = Lab(SERIES, patches=("mutants", "aging-delays", "undo-delays"))

    def run():
        met = lab.run(command, SECONDS, f"{SERIES}-undo-races-{what}").good().counts()
        print(what, dict(met))
        return met

    races({f"faults_that_undo.{race}": times for race, times in RACES[what].items()}, MOST, run)


# Iterations of dirty_log_perf_test, in all but the first of which each page has one fault of the dirty log.
FEW, MANY, PAGES = 2, 10, 512


@functools.cache
def _calls(label):
    """{name: calls for each fault of the dirty log} of what calls.sh counts, on kernel `label` of the series."""
    command = "/tests/dirty_log_perf_test -v 1 -b 2M -m 3 -g -s anonymous_hugetlb_2mb -i".split()
    commands = {str(count): script("calls/calls.sh", *command, count) for count in (FEW, MANY)}
    ran = Lab(SERIES, label, HUGE_PAGES, configs=("kprobes",)).run(commands, SECONDS, f"{SERIES}-calls-{label}").good()
    few, many = (
        {name: int(calls) for name, calls in re.findall(r"^Calls: (\w+) (\d+)$", outcome.output, re.M)}
        for outcome in ran.outcomes.values()
    )
    assert few.keys() == many.keys() >= {"mmap_lock", "gup_fast", "gup_slow"}
    calls = {name: (many[name] - few[name]) / ((MANY - FEW) * PAGES) for name in few}
    print(label, calls)
    return calls


@pytest.mark.slow
def test_a_fault_asks_nothing_of_the_host():
    calls = _calls("series")
    assert all(calls[name] < 0.01 for name in ("mmap_lock", "gup_fast", "gup_slow"))


@pytest.mark.slow
def test_negative_control_base_asks_for_each_page():
    calls = _calls("base")
    assert calls["mmap_lock"] > 0.99 and calls["gup_fast"] + calls["gup_slow"] > 0.99


def _unmapped_is_written_to(seed):
    """Whether a run of stage2_fault_stress_test sees it, or the kernel goes down: the memory may be its own by then."""
    # Here, so that a Fail below is the guest's end.
    MUTANTS.built()
    try:
        ran = _run("undo-plain-store", {"punch": [*TESTS["punch"], "-r", seed]})
    except Fail:
        return True
    return bool(ran.splats) or ran.status != 0 and re.search(r"(stale|lost|wrong): ", ran.output)


@pytest.mark.slow
def test_negative_control_memory_that_was_unmapped_is_written_to():
    """It takes a race, so several runs."""
    assert any(_unmapped_is_written_to(seed) for seed in range(1, 7))


def _swap(which):
    """The Ran of dirty_log_swap_test, with swap on a loop device, and a mutant, or nothing."""
    lab = Lab(SERIES, patches=MUTANTS.patches, mutant=which, configs=("loop",))
    return lab.run(
        ["/tests/dirty_log_swap_test", "-d", "/tmp/swap"], SECONDS, f"{SERIES}-dirty-swap-{which or 'nothing'}"
    )


@pytest.mark.slow
def test_a_write_to_logged_memory_survives_swap():
    # Or nothing was swapped: the test is skipped without swap that keeps clean pages.
    _swap("").good()


@pytest.mark.slow
def test_negative_control_a_clean_page_that_the_guest_writes_to_is_dropped():
    ran = _swap("undo-clean")
    found = re.search(r"(\d+) of \d+ pages are not as round 2 wrote them; page \d+ has what round 1 wrote", ran.output)
    assert ran.status == 254 and found and int(found[1]) > 1000, ran.one().why()
