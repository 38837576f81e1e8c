"""The tags of a guest's memory with MTE: the test passes on the series, and fails without the fix for THP and
without that for HugeTLB. Without the latter's companion the kernel warns."""

import functools
import re
from pathlib import Path

import pytest

from kvmseries.source import catalog
from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]
SERIES = Path(__file__).parent.name
SECONDS = 240
ARM64 = "aarch64" if SERIES == "v6.12" else "arm64"
FIX = "KVM-arm64-Initialise-the-tags-of-a-block"
hugetlb = pytest.mark.skipif(SERIES == "v6.12", reason="6.12 gives the pages of a HugeTLB page their tags one by one")
MEMORY = {"anonymous_thp"} if SERIES == "v6.12" else {"anonymous_thp", "anonymous_hugetlb_2mb"}


@functools.cache
def _run(which):
    """{memory: tags that the guest finds and has not set}, and what the kernel reports, of "base", of "series", and of the
    patches up to the fix for THP ("thp")."""
    patches = catalog.load(SERIES).patches
    thp = next(at for at, patch in enumerate(patches, 1) if FIX in patch.name)
    kernel = f"upto:{thp}" if which == "thp" else which
    lab = Lab(SERIES, kernel, ("series.hugepages=16",), patches=("mte-warnings",), configs=("mte",))
    ran = lab.but(machine={"mte": True}).run([f"/tests/{ARM64}/mte_block_test"], SECONDS, f"{SERIES}-mte-{which}")
    found = re.findall(r"^(?:(\w+): )?\d+ pages had tags before, the guest finds (\d+) of", ran.output, re.M)
    tags = {memory or "anonymous_thp": int(count) for memory, count in found}
    assert tags and (ran.status == 0) == (not any(tags.values())), ran.one().why()
    return tags, ran.splats


def test_the_guest_finds_no_tag_that_it_has_not_set():
    assert _run("series") == (dict.fromkeys(MEMORY, 0), [])


def test_negative_control_base_leaves_tags_in_a_block():
    # The test ends at the first memory in which there are some.
    tags, splats = _run("base")
    assert tags["anonymous_thp"] and not splats


@hugetlb
def test_negative_control_the_dirty_log_leaves_tags_in_hugetlb():
    tags, _ = _run("thp")
    assert not tags["anonymous_thp"] and tags["anonymous_hugetlb_2mb"]


@hugetlb
def test_negative_control_copying_tags_of_hugetlb_warns():
    _, (splat,) = _run("thp")
    assert "asm/mte.h" in splat and "kvm_vm_ioctl_mte_copy_tags" in splat
