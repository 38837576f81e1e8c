"""The tags of a guest's memory with MTE: the test passes on the series, and fails if the fix for THP alone is taken back,
or that for HugeTLB alone. Without the latter's companion alone the kernel warns."""

import functools
import re
from pathlib import Path

import pytest

from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]
SERIES = Path(__file__).parent.name
SECONDS = 240
ARM64 = "aarch64" if SERIES == "v6.12" else "arm64"
MEMORY = {"anonymous_thp"} if SERIES == "v6.12" else {"anonymous_thp", "anonymous_hugetlb_2mb"}
# {patch that takes one fix back: where the guest finds tags}. 6.12 gives the pages of a HugeTLB page their tags one by one.
_REVERTED = {"mte-block": {"anonymous_thp"}, "mte-hugetlb": {"anonymous_hugetlb_2mb"}, "mte-copy": set()}
REVERTED = {"mte-block": _REVERTED["mte-block"]} if SERIES == "v6.12" else _REVERTED


@functools.cache
def _run(which):
    """{memory: tags that the guest finds and has not set}, and what the kernel reports, of "base", of "series", and of the
    milestone `fixes` with one of REVERTED."""
    kernel, patches = ("upto:fixes", (which, "mte-warnings")) if which in REVERTED else (which, ("mte-warnings",))
    lab = Lab(SERIES, kernel, ("series.hugepages=16",), patches=patches, configs=("mte",))
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


@pytest.mark.parametrize("which", REVERTED)
def test_negative_control_each_fix_is_needed(which):
    tags, splats = _run(which)
    assert {memory for memory, count in tags.items() if count} == REVERTED[which]
    assert len(splats) == (which == "mte-copy")
    assert all("asm/mte.h" in splat and "kvm_vm_ioctl_mte_copy_tags" in splat for splat in splats)
