"""TLB entries that a nested guest with 2 MiB of hot code and data fills again after each fault of the dirty log, in the
model of a TLB of tools-testing-selftests-kvm/tlb_refills.

The base of 7.3 invalidates all of the guest's stage 1 of the CPU, the series the VA that has faulted.  All are in `make
test-all` alone: see extra.quick().
"""

import functools
import re

import pytest

from checks import guests
from kvmseries.base import progress
from kvmseries.kernel import build
from kvmseries.source import catalog
from kvmseries.vm import machine, run as guest
from tlb_refills import tlbrefills

NAME = "v7.3"
pytestmark = [pytest.mark.boot, pytest.mark.slow, pytest.mark.reads(NAME)]
# In the series the faults of the first round take mmu_lock, since a read has mapped the pages; those of the others do not.
ROUNDS = 4
# What is hot, and the page that has faulted.
HOT = 512


@functools.cache
def _refills(label):
    """tlbrefills.Counts of tlb_refill_test on kernel `label`; all faults of the dirty log are counted, no others."""
    series = catalog.load(NAME)
    (point,) = catalog.points(series, label)
    kernel = build.kernel(series, point.count, "arm64")
    with progress.single("tlb-refills", f"TLB refills: {label}", 40) as note:
        result = guest.run(
            kernel,
            guests.initrd(name=NAME),
            machine.Machine("arm64", refills=True),
            [("refills", 300, ["/tests/tlb_refill_test", str(ROUNDS)])],
            f"tlb-refills-{label}",
            note,
        )
    (outcome,) = result.outcomes
    assert not result.splats and not outcome.status, outcome.why()
    faults, hot = map(int, re.findall(r"\d+", outcome.output.splitlines()[-1]))
    counts = tlbrefills.read(result.folder)
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
