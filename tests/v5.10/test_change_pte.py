"""change_pte that takes effect: pages that KSM merges and vCPUs only read take no fault, and nothing is
lost where pages are replaced, by change_pte_test.

Bounded: `SERIES_CHANGES=1000 make test-all CHECKS=scripts/checks/test_8_change_pte.py` has 1000
changes of each kind on the debug configuration.
"""

import os
import re

import pytest

from checks import guests
from kvmseries.data import parse

pytestmark = pytest.mark.reads("v5.10")

TEST = "change_pte_test"
# How KVM maps the memory: architecture and kernel parameters.
MMUS = {
    "arm64": ("arm64", ()),
    "x86_64": ("x86_64", ()),
    "x86_64-tdp_mmu": ("x86_64", ("kvm.tdp_mmu=1",)),
    "x86_64-shadow": ("x86_64", ("kvm_amd.npt=0",)),
}
WANTED = 100
CHANGES = int(os.environ.get("SERIES_CHANGES", str(WANTED)))
LONG = CHANGES > WANTED
# Pages that are replaced and write-protected without a fault; and changes while others invalidate
# something, which are fewer.
COUNTS = {"replaced": CHANGES, "protected": CHANGES, "overlapped": CHANGES / 20}
# Seconds for WANTED of each.
SECONDS = 6


def _run(kernel, name, seconds, *args, params=()):
    """(guest.Outcome, splats) of change_pte_test with a storm of `seconds`."""
    return guests.stress(
        kernel, f"change-pte-{name}", [f"/tests/{TEST}", "-t", str(seconds), *args], seconds, params=params
    )


def _figures(output):
    """{metric: last value} of what change_pte_test printed."""
    return {measure.metric: measure.value for measure in parse.parse(TEST, output)}


@pytest.mark.boot
@pytest.mark.parametrize("mmu", MMUS)
def test_what_is_merged_stays_mapped_and_nothing_is_lost(mmu):
    arch, params = MMUS[mmu]
    # What is promised of change_pte is checked with CONFIG_DEBUG_VM, by a patch that is not of the series.
    kernel = guests.planted("change-pte-check", arch=arch, configs=("debug",)) if LONG else guests.built("series", arch)
    seconds = SECONDS * CHANGES // WANTED

    def run():
        outcome, splats = _run(kernel, mmu, seconds, "-f", "-n", "-i", "1", "-b", "2M", params=params)
        assert not outcome.status, outcome.output
        assert not splats
        found = _figures(outcome.output)
        assert found["read_merged_exits_per_page"] < 0.02, outcome.output
        return {what: found[f"storm_kvm_change_pte_{what}"] for what in COUNTS}

    guests.races(COUNTS, 4, run)


@pytest.mark.boot
def test_negative_control_what_is_merged_is_unmapped_on_base():
    outcome, _ = _run(guests.built("base", "x86_64"), "base", 0, "-f", "-n", "-i", "1", "-b", "2M")
    assert outcome.status
    found = _figures(outcome.output.partition("==== Test Assertion")[0])
    assert found["read_merged_exits_per_page"] == pytest.approx(1, abs=0.1)


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_a_kernel_that_does_not_count_cannot_pass():
    outcome, _ = _run(guests.built("base"), "arm64-base", 0, "-f", "-n", "-i", "1", "-b", "2M")
    assert outcome.status == 4 and "KVM does not count what change_pte replaces" in outcome.output, outcome.output


@pytest.mark.boot
@pytest.mark.parametrize(
    "bug, args",
    [
        # An invalidation that was needed is skipped. Migration would take what vCPUs count in from under them, too,
        # and the test with it: then they do not get on, or it crashes.
        pytest.param("change-pte-skips-clear", ["-b", "4M", "-d", "migrate"], id="change-pte-skips-clear"),
        # A block is mapped when a page of it changes, and that is ignored.
        pytest.param(
            "change-pte-ignores-error",
            ["-s", "anonymous_thp", "-b", "4M", "-o", "write,fork,collapse"],
            id="change-pte-ignores-error",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_negative_control_an_old_page_is_noticed(bug, args):
    # It ends when the bug is noticed: in 17 runs after 1 to 45 s, in one not in 62 s (Documentation/method.md).
    outcome, _ = _run(guests.with_bugs(), bug, 240, "-i", "0", *args, params=(guests.bug(bug),))
    assert outcome.status
    assert re.search(r"(vCPU \d+|Host): page \d+ .*, word \d+", outcome.output), outcome.output
