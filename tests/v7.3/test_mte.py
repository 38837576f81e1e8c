"""The tags of a guest's memory with MTE, patches/v7.3: the test passes on the series, and fails without the fix for THP and
without that for HugeTLB.

All are in `make test-all` alone: see extra.quick().
"""

import functools
import re

import pytest

from kvmseries.base import progress
from kvmseries.kernel import build, selftests
from kvmseries.source import catalog
from kvmseries.vm import image, machine, run as guest

NAME = "v7.3"
ARCH = "arm64"
pytestmark = [pytest.mark.boot, pytest.mark.slow, pytest.mark.reads(NAME)]
SECONDS = 240
FIX = "KVM-arm64-Initialise-the-tags-of-a-block"
MEMORY = {"anonymous_thp", "anonymous_hugetlb_2mb"}


@functools.cache
def _tags(which):
    """{memory: tags that the guest finds and has not set} of "base", of "series", and of the patches up to the fix
    for THP."""
    series = catalog.load(NAME)
    count = {
        "base": 0,
        "thp": next(at for at, patch in enumerate(series.patches, 1) if FIX in patch.name),
        "series": len(series.patches),
    }[which]
    kernel = build.kernel(series, count, ARCH, ("mte",))
    initrd = image.base(ARCH, selftests.build(series, ARCH))
    with progress.single("mte", f"MTE's test on {which} of {NAME}", 30) as note:
        result = guest.run(
            kernel,
            initrd,
            machine.Machine(ARCH, mte=True, params=("series.hugepages=16",)),
            [("mte_block_test", SECONDS, ["/tests/arm64/mte_block_test"])],
            f"mte-{which}",
            note,
        )
    assert not result.splats
    (outcome,) = result.outcomes
    found = re.findall(r"^(\w+): \d+ pages had tags before, the guest finds (\d+) of", outcome.output, re.M)
    tags = {memory: int(count) for memory, count in found}
    assert tags and (outcome.status == 0) == (not any(tags.values())), outcome.why()
    return tags


def test_the_guest_finds_no_tag_that_it_has_not_set():
    assert _tags("series") == dict.fromkeys(MEMORY, 0)


def test_negative_control_base_leaves_tags_in_a_block():
    # The test ends at the first memory in which there are some.
    assert _tags("base")["anonymous_thp"]


def test_negative_control_the_dirty_log_leaves_tags_in_hugetlb():
    tags = _tags("thp")
    assert not tags["anonymous_thp"] and tags["anonymous_hugetlb_2mb"]
