"""MGLRU of 6.12 asks KVM about each PTE, those of a large page as well: on base each takes mmu_lock for write."""

import pytest

from tests import aging, claims
from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]
PAGES = 64 << 20 >> 12
ARGS = f"-k lru_gen -s anonymous_thp -b {PAGES * 4}K -B 256K -i 1 -n 1"


def test_a_pass_over_large_pages_that_ptes_map_takes_no_lock():
    """The pages have 1 MiB, which no PMD can map."""
    lab = Lab("v6.12", params=("thp_anon=1M:always;2M:never",), patches=("hold-times",), machine={"memory": 3072})
    runs = [
        run
        for label in ("base", "series")
        for run in lab.but(kernel=label).lock_counts(aging.ACCESS, ARGS, (1,), f"v6.12-mglru-{label}")
    ]
    print(*runs, sep="\n")
    assert not claims.lockless_aging(runs, "series")
    assert not claims.locked_aging(runs, "base", PAGES, 1)
