"""Aging without a lock on x86-64, in each of the ways in which 5.10 maps memory: that faults do not hold
it up, and that nothing is lost where it races, by stage2_fault_stress_test on a kernel on which aging
waits for its SPTE to change (patches/instruments/v5.10/x86-delays.patch).

Bounded, and so with the normal configuration and without lock counts, which take kernels of their own:
`SERIES_AGES=200 make test-all CHECKS=scripts/checks/test_7_aging_x86.py` has 200 of each race on the
debug configuration, and counts locks.
"""

import os
import re

import pytest

from checks import aging, claims, guests

pytestmark = pytest.mark.reads("v5.10")

# By default SPTEs are direct and found by rmaps; so are shadow page tables, with npt=0.
MMUS = {"default": (), "tdp_mmu": ("kvm.tdp_mmu=1",), "shadow": ("kvm_amd.npt=0",)}

# For lock counts: pages of a vCPU that are aged, and as many that are faulted in; passes over idle vCPUs.
PAGES, PASSES = 64, 4
# How many walks that age must race; above WANTED with the debug configuration.
WANTED = 8
AGES = int(os.environ.get("SERIES_AGES", str(WANTED)))
LONG = AGES > WANTED
# What can change an SPTE that was found accessed. A huge page is replaced by the others' kernel, too, but
# seldom while somebody ages it.
RACES = ("lost", "zapped")
# Seconds for WANTED of each, with two CPUs that are busy otherwise; a debug kernel takes five times that.
SECONDS = 24
# Huge pages are split and collapsed as dirty logging goes on and off.
LINE = (
    "/tests/stage2_fault_stress_test",
    "-m",
    "get",
    "-n",
    "1000000",
    "-r",
    "3",
    "-i",
    "1000",
    "-v",
    "1",
    "-o",
    "log,punch,age",
    "-s",
    "anonymous_thp",
    "-b",
    "16M",
)
DELAY_US = 5000
FREED_US = 20000
# What says that aging was in a page table that is free: its own check, or what the memory is used for next. Of the TDP
# MMU a root is freed at once, too. Then aging goes from it to the next one, whose address was overwritten.
FREED = {"shadow": "WARNING: .* at kvm_mmu_delay_age|Bad page state"}
FREED["tdp_mmu"] = (
    FREED["shadow"] + r"|RIP: \S+:tdp_mmu_root_handle_hva_range\+(?:.*\n)+?.* kvm_tdp_mmu_age_hva_range\+"
)
# How long the TDP MMU waits before it zaps what is below a page table, of which there are a few; how often all page
# tables are zapped; and how often it is tried to be in between with what looks for pages that are idle.
ZAP_US, ZAPS_US, TRIES = 10000, 50000, 4
# In virtual time
VCPUS = 8


@pytest.fixture(scope="module", name="delayed")
def _delayed():
    """The kernel with delays and no bug."""
    return guests.with_bugs("x86_64", ("debug",) if LONG else ())


@pytest.mark.boot
@pytest.mark.parametrize("mmu", MMUS)
def test_aging_that_races_loses_nothing(mmu, delayed):
    seconds = SECONDS * AGES // WANTED * (5 if LONG else 1)
    aging.races(
        delayed, f"x86-{mmu}", (*LINE, "-t", seconds), seconds, DELAY_US, dict.fromkeys(RACES, AGES), 4, MMUS[mmu]
    )


def _wreck(bug, mmu, delay_us, zap_us=None):
    """What is seen of a kernel with `bug`, which stops at the first mistake that it finds."""
    command = (*LINE, "-t", "60")
    if zap_us:
        command = guests.script("zaps.sh", zap_us, *command)
    return aging.wreck(
        guests.with_bugs("x86_64"), bug, command, delay_us, (*MMUS[mmu], guests.bug(bug), "panic_on_warn=1")
    )


@pytest.mark.boot
def test_negative_control_an_spte_that_was_zapped_comes_back():
    found = _wreck("x86-age-not-atomic", "shadow", DELAY_US)
    assert re.search(r"WARNING: .* at spte_age|Kernel BUG at (rmap|pte_list)", found), found


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize(
    "bug, mmu", [("x86-rmap-no-lock-bit", "shadow"), ("x86-tdp-table-freed-without-rcu", "tdp_mmu")]
)
def test_negative_control_freed_under_aging(bug, mmu):
    found = _wreck(bug, mmu, FREED_US, 20000)
    assert re.search(FREED[mmu], found), found


def _while_zapped(name, *params):
    """(guest.Outcome, splats) of access_tracking_stress_test with the TDP MMU, whose page tables are zapped
    slowly all the while."""
    command = guests.script("zaps.sh", ZAPS_US, f"/tests/{aging.ACCESS}", "-v", "2", "-b", "1M", "-i", "4")
    slowly = f'echo {ZAP_US} > /sys/kernel/debug/kvm/mmu_delay_zap_us && "$@"'
    return guests.stress(
        guests.with_bugs("x86_64"),
        f"aging-x86-{name}",
        ("sh", "-c", slowly, "sh", *command),
        100,
        params=(*MMUS["tdp_mmu"], *params),
    )


@pytest.mark.boot
@pytest.mark.slow
def test_what_is_being_zapped_does_not_look_idle():
    outcome, splats = _while_zapped("zapped")
    assert not outcome.status and not splats, outcome.output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_what_is_zapped_behind_its_table_looks_idle():
    for _ in range(TRIES):
        outcome, _ = _while_zapped("zap-top-first", guests.bug("x86-tdp-zap-top-first"))
        if re.search(r"\d+ pages were found idle, although vCPUs accessed them after a flush", outcome.output):
            return
    raise AssertionError(outcome.output)


def _figures(label, mmu):
    """aging.hot() with so many vCPUs that fault memory in and access what is aged."""
    return aging.hot(label, "x86_64", "-i 2 -n 8", VCPUS, 240, f"x86-{label}-{mmu}", MMUS[mmu])


@pytest.mark.boot
@pytest.mark.parametrize("mmu", ("tdp_mmu", pytest.param("shadow", marks=pytest.mark.slow)))
def test_faults_do_not_slow_aging_down(mmu):
    figures = _figures("series", mmu)
    found, none = figures["aging"], figures["no-aging"]
    aging.found_young(found, VCPUS)
    assert found["pass_median.running"] <= aging.BESIDE * found["pass_median.idle"]
    assert found["fault_memory_time"] <= aging.SLOWER * none["fault_memory_time"]


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_faults_slow_aging_down_on_base():
    found = _figures("base", "tdp_mmu")["aging"]
    aging.found_young(found, VCPUS)
    assert found["pass_median.running"] > 2 * found["pass_median.idle"]


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="kernels of its own, see above")
@pytest.mark.parametrize("mmu", MMUS)
def test_aging_takes_no_lock(mmu):
    counts = guests.lock_counts(
        aging.ACCESS,
        f"-p -S- -b {PAGES * 4}K -B {PAGES * 4}K -i 2 -n {PASSES}",
        (2,),
        "base,series",
        arch="x86_64",
        params=MMUS[mmu],
    )
    assert not claims.lockless_aging(counts, "series", PAGES)
    # As it is on base.
    assert claims.lockless_aging(counts, "base", PAGES)
    assert not claims.locked_aging(counts, "base", PAGES, PASSES)
