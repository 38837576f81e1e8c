"""Shadow page tables of x86-64: a guest's INVLPG maps nothing that the host takes away meanwhile, by
tools-testing-selftests-kvm/tests/invlpg_test.c."""

import re

import pytest

from tests.lab import MMUS, with_mutants

pytestmark = [pytest.mark.boot, pytest.mark.slow]

LAB = with_mutants("v5.10", "x86_64").but(params=MMUS["shadow"])
# Base was found within 46 rounds; a round takes a tenth of a second or two.
SECONDS, MOST = 15, 120


def test_invlpg_maps_nothing_that_is_being_unmapped():
    ran = LAB.stress(["/tests/invlpg_test", SECONDS], SECONDS, "shadow-invlpg").good()
    assert int(re.search(r"^rounds (\d+), INVLPGs \d+: 0 pages", ran.output, re.M)[1]) >= 10, ran.output


def test_negative_control_a_page_that_invlpg_maps_is_noticed():
    mutant = "x86-invlpg-maps-in-range"
    ran = LAB.but(mutant=mutant).stress(["/tests/invlpg_test", MOST], MOST, f"shadow-{mutant}")
    # Or the host's kernel sees a page that is freed with the guest's writes in it.
    assert "the guest has access to pages that were taken away" in ran.output or any(
        "Bad page state" in splat for splat in ran.splats
    ), ran.output
