"""MGLRU of 6.12 asks KVM about each PTE, those of a large page as well: on base each takes mmu_lock for write."""

import pytest

from tests import aging
from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]
PAGES = 64 << 20 >> 12
ARGS = f"-k lru_gen -s anonymous_thp -b {PAGES * 4}K -B 256K -i 1 -n 1"
# In all of a run, by notifiers for other memory of the test: 21 was measured, and 30 on 7.3.
OTHERS = 100


def test_large_pages_that_ptes_map_are_aged_without_the_lock():
    """The pages have 1 MiB, which no PMD can map.  All of the run is counted: MGLRU's is in a child, whose phases nobody sees."""
    lab = Lab("v6.12", params=("thp_anon=1M:always;2M:never",), patches=("hold-times",), machine={"memory": 3072})
    taken = {
        (label, run["metric"]): run["samples"][0]
        for label in ("base", "series")
        for run in lab.but(kernel=label).lock_counts(aging.ACCESS, ARGS, (1,), f"v6.12-mglru-{label}")
    }
    print(taken)
    assert taken["series", "mmu_lock_write_acquisitions"] <= OTHERS
    # And negative control; a pass each while vCPUs are idle and while they run, at least.
    assert taken["base", "mmu_lock_write_acquisitions"] >= 2 * PAGES
