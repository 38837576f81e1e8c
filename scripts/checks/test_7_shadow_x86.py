"""Shadow page tables of x86-64: a guest's INVLPG maps nothing that the host takes away meanwhile, by
tools-testing-selftests-kvm/tests/invlpg_test.c."""

import re

import pytest

from checks import guests

pytestmark = pytest.mark.reads("v5.10")

TEST = "invlpg_test"
SHADOW = "kvm_amd.npt=0"
# Base was found within 46 rounds; a round takes a tenth of a second or two.
SECONDS, MOST = 15, 120


def _run(name, seconds, *params):
    """(guest.Outcome, splats) of the test."""
    return guests.stress(
        guests.with_bugs("x86_64"),
        f"shadow-{name}",
        [f"/tests/{TEST}", str(seconds)],
        seconds,
        params=(SHADOW, *params),
    )


@pytest.mark.boot
def test_invlpg_maps_nothing_that_is_being_unmapped():
    outcome, splats = _run("invlpg", SECONDS)
    assert not outcome.status and not splats, outcome.output
    assert int(re.search(r"^rounds (\d+), INVLPGs \d+: 0 pages", outcome.output, re.M)[1]) >= 10, outcome.output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_a_page_that_invlpg_maps_is_noticed():
    outcome, splats = _run("invlpg-maps-in-range", MOST, guests.bug("x86-invlpg-maps-in-range"))
    # Or the host's kernel sees a page that is freed with the guest's writes in it.
    assert "the guest has access to pages that were taken away" in outcome.output or any(
        "Bad page state" in splat for splat in splats
    ), outcome.output
