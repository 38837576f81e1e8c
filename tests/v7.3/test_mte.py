"""The tags of a guest's memory with MTE, patches/v7.3: the test passes on the series, and fails without the fix for THP and
without that for HugeTLB."""

import functools
import re

import pytest

from kvmseries.source import catalog
from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]
SECONDS = 240
FIX = "KVM-arm64-Initialise-the-tags-of-a-block"
MEMORY = {"anonymous_thp", "anonymous_hugetlb_2mb"}


@functools.cache
def _tags(which):
    """{memory: tags that the guest finds and has not set} of "base", of "series", and of the patches up to the fix
    for THP."""
    patches = catalog.load("v7.3").patches
    thp = next(at for at, patch in enumerate(patches, 1) if FIX in patch.name)
    lab = Lab("v7.3", f"upto:{thp}" if which == "thp" else which, ("series.hugepages=16",), configs=("mte",))
    ran = lab.but(machine={"mte": True}).run(["/tests/arm64/mte_block_test"], SECONDS, f"mte-{which}")
    assert not ran.splats
    found = re.findall(r"^(\w+): \d+ pages had tags before, the guest finds (\d+) of", ran.output, re.M)
    tags = {memory: int(count) for memory, count in found}
    assert tags and (ran.status == 0) == (not any(tags.values())), ran.one().why()
    return tags


def test_the_guest_finds_no_tag_that_it_has_not_set():
    assert _tags("series") == dict.fromkeys(MEMORY, 0)


def test_negative_control_base_leaves_tags_in_a_block():
    # The test ends at the first memory in which there are some.
    assert _tags("base")["anonymous_thp"]


def test_negative_control_the_dirty_log_leaves_tags_in_hugetlb():
    tags = _tags("thp")
    assert not tags["anonymous_thp"] and tags["anonymous_hugetlb_2mb"]
