"""Aging without a lock on x86-64, in each of the ways in which 5.10 maps memory: that faults do not hold
it up, and that nothing is lost where it races, by stage2_fault_stress_test on a kernel on which aging
waits for its SPTE to change (patches/instruments/v5.10/x86-delays.patch).

With lockdep and KASAN, for hours: make soak.
"""

import re

import pytest

from tests import aging, claims
from tests.lab import Lab, MMUS, script, with_mutants

pytestmark = pytest.mark.boot

DELAYED = with_mutants("v5.10", "x86_64")
# What can change an SPTE that was found accessed. A huge page is replaced by the others' kernel, too, but
# seldom while somebody ages it.
RACES = ("lost", "zapped")
# How many walks that age must race, and seconds for them with two CPUs that are busy otherwise.
WANTED, SECONDS = 8, 24
# Huge pages are split and collapsed as dirty logging goes on and off.
LINE = (
    *"/tests/stage2_fault_stress_test -m get -n 1000000 -r 3 -i 1000 -v 1".split(),
    *"-o log,punch,age -s anonymous_thp -b 16M".split(),
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


@pytest.mark.parametrize("mmu", [pytest.param(mmu, marks=() if mmu == "tdp_mmu" else pytest.mark.slow) for mmu in MMUS])
def test_aging_that_races_loses_nothing(mmu):
    lab, line = DELAYED.but(params=MMUS[mmu]), (*LINE, "-t", SECONDS)
    aging.lose_nothing(lab, f"x86-{mmu}", line, SECONDS, DELAY_US, dict.fromkeys(RACES, WANTED), 4)


def _wreck(mutant, mmu, delay_us, zap_us=None):
    """What is seen of a kernel with `mutant`, which stops at the first mistake that it finds."""
    command = (*LINE, "-t", "60")
    if zap_us:
        command = script("zaps.sh", zap_us, *command)
    lab = DELAYED.but(params=(*MMUS[mmu], "panic_on_warn=1"), mutant=mutant)
    return lab.wreck(aging.ages(delay_us, command), 60, f"aging-{mutant}")


def test_negative_control_an_spte_that_was_zapped_comes_back():
    found = _wreck("x86-age-not-atomic", "shadow", DELAY_US)
    assert re.search(r"WARNING: .* at spte_age|Kernel BUG at (rmap|pte_list)", found), found


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant, mmu", [("x86-rmap-no-lock-bit", "shadow"), ("x86-tdp-table-freed-without-rcu", "tdp_mmu")]
)
def test_negative_control_freed_under_aging(mutant, mmu):
    found = _wreck(mutant, mmu, FREED_US, 20000)
    assert re.search(FREED[mmu], found), found


def _while_zapped(name, mutant=""):
    """The Ran of access_tracking_stress_test with the TDP MMU, whose page tables are zapped slowly all the while."""
    command = script("zaps.sh", ZAPS_US, f"/tests/{aging.ACCESS}", "-v", "2", "-b", "1M", "-i", "4")
    slowly = f'echo {ZAP_US} > /sys/kernel/debug/kvm/mmu_delay_zap_us && "$@"'
    lab = DELAYED.but(params=MMUS["tdp_mmu"], mutant=mutant)
    return lab.stress(("sh", "-c", slowly, "sh", *command), 100, f"aging-x86-{name}")


@pytest.mark.slow
def test_what_is_being_zapped_does_not_look_idle():
    _while_zapped("zapped").good()


@pytest.mark.slow
def test_negative_control_what_is_zapped_behind_its_table_looks_idle():
    for _ in range(TRIES):
        ran = _while_zapped("zap-top-first", "x86-tdp-zap-top-first")
        if re.search(aging.FORGOTTEN, ran.output):
            return
    raise AssertionError(ran.output)


def _hot(label, mmu):
    """aging.hot() with so many vCPUs that fault memory in and access what is aged."""
    lab = Lab("v5.10", label, MMUS[mmu], "x86_64")
    return aging.hot(lab, "-i 2 -n 8", VCPUS, 240, f"x86-{label}-{mmu}")


@pytest.mark.slow
@pytest.mark.parametrize("mmu", ("tdp_mmu", "shadow"))
def test_faults_do_not_slow_aging_down(mmu):
    ran = _hot("series", mmu)
    aging.found_young(ran, VCPUS)
    assert aging.beside(ran) <= aging.BESIDE
    assert aging.with_aging(ran, "fault_memory_time") <= aging.SLOWER


@pytest.mark.slow
def test_negative_control_faults_slow_aging_down_on_base():
    ran = _hot("base", "tdp_mmu")
    aging.found_young(ran, VCPUS)
    assert aging.beside(ran) > 2


@pytest.mark.slow
@pytest.mark.parametrize("mmu", MMUS)
def test_aging_takes_no_lock(mmu):
    lab = Lab("v5.10", params=MMUS[mmu], arch="x86_64", configs=("lockstat",), machine={"cpus": 4})
    counts = aging.lock_counts(lab, "lockstat-{}-" + mmu)
    assert not claims.lockless_aging(counts, "series", aging.PAGES)
    # As it is on base.
    assert claims.lockless_aging(counts, "base", aging.PAGES)
    assert not claims.locked_aging(counts, "base", aging.PAGES, aging.PASSES)
