"""TLB entries that a nested guest with 2 MiB of hot code and data fills again after each fault of the dirty log, in the
model of a TLB of tools-testing-selftests-kvm/tlb_refills.

The base of 7.3 invalidates all of the guest's stage 1 of the CPU, the series the VA that has faulted."""

import functools
import re
from pathlib import Path

import pytest

from tests.lab import Lab
from tlb_refills import tlbrefills

pytestmark = [pytest.mark.boot, pytest.mark.slow]
SERIES = Path(__file__).parent.name
# In the series the faults of the first round take mmu_lock, since a read has mapped the pages; those of the others do not.
ROUNDS = 4
# What is hot, and the page that has faulted.
HOT = 512
# What is hot besides, in the block of the guest's stage 1 that the logged pages are in; its address.
IN_BLOCK, BLOCK = 448, 64 << 30


@functools.cache
def _refills(label, block=False, mutant=""):
    """tlbrefills.Counts of tlb_refill_test on kernel `label`; all faults of the dirty log are counted, no others.

    block: a block of the guest's stage 1 maps the logged pages.  mutant: its name."""
    machine = {"refills": True, "block": BLOCK if block else None}
    lab = Lab(SERIES, label, patches=("mutants", "tlb-mutants") if mutant else (), mutant=mutant, machine=machine)
    name = f"{SERIES}-tlb-refills-{mutant or label}{'-block' if block else ''}"
    words = ["/tests/tlb_refill_test", ROUNDS, *(["block"] if block else [])]
    ran = lab.run(words, 300, name).good()
    faults, hot = map(int, re.findall(r"\d+", ran.output.splitlines()[-1]))
    counts = tlbrefills.read(ran.folder)
    print(f"{name}: {counts.per_fault:.2f} refills for each fault of the dirty log: {counts}")
    assert hot == HOT and (mutant or counts.write_faults == faults)
    return counts


def test_a_fault_of_the_dirty_log_has_two_entries_filled_again_at_most():
    counts = _refills("series")
    assert 1 <= counts.per_fault and counts.most_of_a_fault <= 2
    # By the TLBI of the VA alone, and the harvests' TLBIs are seen.
    assert (counts.tlbis_page, counts.tlbis_all) == (counts.write_faults, 0)
    assert counts.refills_no_fault >= (ROUNDS - 1) * HOT


def test_negative_control_on_base_all_that_is_hot_is_filled_again():
    counts = _refills("base")
    assert counts.least_of_a_fault >= HOT
    assert (counts.tlbis_page, counts.tlbis_all) == (0, counts.write_faults)


def test_of_a_block_of_stage_1_all_is_filled_again_and_nothing_else():
    counts = _refills("series", block=True)
    assert IN_BLOCK <= counts.least_of_a_fault and counts.most_of_a_fault <= 512
    assert (counts.tlbis_page, counts.tlbis_all) == (counts.write_faults, 0)
    assert _refills("base", block=True).least_of_a_fault >= HOT + IN_BLOCK


def test_negative_control_the_page_of_another_va_is_noticed():
    """The page that has faulted is not filled again.  On a CPU that keeps its TLB it would fault once more."""
    counts = _refills("series", mutant="tlb-wrong-va")
    assert counts.per_fault == 0
    assert counts.tlbis_page == counts.write_faults
