"""TLB entries that a nested guest with 2 MiB of hot code and data fills again after each fault of the dirty log, in the
model of a TLB of tools-testing-selftests-kvm/tlb_refills.

The base of 7.3 invalidates all of the guest's stage 1 of the CPU, the series the VA that has faulted."""

import functools
import re

import pytest

from tests.lab import Lab
from tlb_refills import tlbrefills

pytestmark = [pytest.mark.boot, pytest.mark.slow]
# In the series the faults of the first round take mmu_lock, since a read has mapped the pages; those of the others do not.
ROUNDS = 4
# What is hot, and the page that has faulted.
HOT = 512


@functools.cache
def _refills(label):
    """tlbrefills.Counts of tlb_refill_test on kernel `label`; all faults of the dirty log are counted, no others."""
    lab = Lab("v7.3", label, machine={"refills": True})
    ran = lab.run(["/tests/tlb_refill_test", ROUNDS], 300, f"tlb-refills-{label}").good()
    faults, hot = map(int, re.findall(r"\d+", ran.output.splitlines()[-1]))
    counts = tlbrefills.read(ran.folder)
    print(f"{label}: {counts.per_fault:.2f} refills for each fault of the dirty log: {counts}")
    assert hot == HOT and counts.write_faults == faults
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
