"""The claims about lock counts hold on counts as they are, and fail on counts as they were."""

import pytest

from kvmseries.base import paths
from kvmseries.data import results
from tests import claims


def _runs(kernel, write, read, contentions=0):
    return [
        {"kernel": kernel, "vcpus": 2, "iteration": 1, "metric": metric, "samples": [value]}
        for metric, value in (
            ("mmu_lock_write_acquisitions.dirty", write),
            ("mmu_lock_read_acquisitions.dirty", read),
            ("mmu_lock_write_contentions.dirty", contentions),
        )
    ]


def test_read_lock_only_is_fine():
    assert not claims.fast_path(_runs("series", 0, 2048), "series", 1024)


def test_write_lock_is_not():
    assert claims.fast_path(_runs("series", 2048, 0), "series", 1024)
    assert claims.fast_path(_runs("series", 1, 2048), "series", 1024)


def test_a_fault_that_took_no_lock_is_missed():
    assert claims.fast_path(_runs("series", 0, 2047), "series", 1024)


def test_faults_that_come_twice_are_noticed():
    assert claims.fast_path(_runs("series", 0, 2049), "series", 1024)


def test_waiting_for_write_is_noticed():
    assert claims.fast_path(_runs("series", 0, 2048, 1), "series", 1024)


@pytest.mark.parametrize(
    "claim, args",
    [
        (claims.fast_path, (1024,)),
        (claims.lockless, ()),
        (claims.spinlock, (1024,)),
        (claims.lockless_aging, ()),
        (claims.locked_aging, (64, 4)),
    ],
)
def test_no_counts_are_no_proof(claim, args):
    others = _runs("other", 2048, 2048) + _aging(512, 0, kernel="other")
    for runs in ([], others):
        (complaint,) = claim(runs, "series", *args)
        assert complaint.startswith("series: there are no lock counts of ")


def test_no_lock_at_all_is_fine():
    assert not claims.lockless(_runs("series", 0, 0), "series")


def test_one_acquisition_of_either_lock_is_noticed():
    assert claims.lockless(_runs("series", 0, 1), "series")
    assert claims.lockless(_runs("series", 1, 0), "series")


def test_base_takes_the_lock_for_every_page():
    assert not claims.spinlock(_runs("base", 2048, 0), "base", 1024)
    assert claims.spinlock(_runs("base", 2047, 2048), "base", 1024)


def _aging(age, fault, mode="write", iteration=1, kernel="series"):
    return [
        {"kernel": kernel, "vcpus": 2, "iteration": iteration, "samples": [value], "metric": metric}
        for metric, value in (
            (f"mmu_lock_{mode}_acquisitions.age", age),
            ("mmu_lock_write_acquisitions.fault", fault),
            ("mmu_lock_read_acquisitions.fault", 1024),
        )
    ]


def test_aging_without_the_lock_is_fine():
    assert not claims.lockless_aging(_aging(0, 0), "series")


def test_one_acquisition_by_aging_is_noticed():
    assert claims.lockless_aging(_aging(1, 0, iteration=2), "series")
    assert claims.lockless_aging(_aging(1, 0, "read"), "series")
    assert claims.lockless_aging(_aging(0, 1, iteration=2), "series")
    # The test's own pages, at first.
    assert not claims.lockless_aging(_aging(8, 8), "series")
    assert claims.lockless_aging(_aging(0, 9), "series")
    assert claims.lockless_aging(_aging(9, 0), "series")
    # Of 2 vCPUs that fault in 64 pages each.
    assert not claims.lockless_aging(_aging(0, 2 * 64, iteration=2), "series", 64)
    assert claims.lockless_aging(_aging(0, 2 * 64 + 1, iteration=2), "series", 64)
    assert claims.lockless_aging(_aging(0, 0)[1:], "series")


def test_base_takes_the_lock_for_every_page_that_is_aged():
    assert not claims.locked_aging(_aging(2 * 64 * 4, 0), "series", 64, 4)
    assert claims.locked_aging(_aging(2 * 64 * 4 - 1, 0), "series", 64, 4)


# {metric: us on base and on the series} with a memslot of 64 MiB; base's are four times as long with 256 MiB.
HOLDS = {
    "clear_busy_hold": (427, 13),
    "clear_busy_write": (430, 16),
    "clear_idle_time": (428, 429),
    "discard_hold": (26600, 833),
}


def _holds(less=None, **others):
    """Runs of dirty_hold_test with HOLDS; others: us of the series with 64 MiB, less: a metric without runs there."""
    return [
        {
            "kernel": kernel,
            "args": f"-b {size} -p 20000",
            "metric": metric,
            "samples": [
                us * (size // 64 if kernel == "base" or metric == "clear_idle_time" else 1) * 1e-6
                for us in (
                    values[number],
                    others.get(metric, values[number]) if number and size == 64 else values[number],
                )
            ],
        }
        for metric, values in HOLDS.items()
        for number, kernel in enumerate(("base", "upto:bounded"))
        for size in (64, 256)
        if (metric, number, size) != (less, 1, 64)
    ]


def test_holds_are_bounded():
    assert not claims.bounded_holds(_holds(), "upto:bounded")


@pytest.mark.parametrize(
    "metric, us, words",
    [
        ("clear_busy_hold", 61, "longest hold of a clear 61.0 us, more than 60.0"),
        ("clear_busy_write", 22, "longest write 22.0 us"),
        ("clear_idle_time", 437, "clear with nobody waiting"),
        ("discard_hold", 1501, "longest hold of a discard"),
    ],
)
def test_one_round_that_is_not_is_noticed(metric, us, words):
    (complaint,) = claims.bounded_holds(_holds(**{metric: us}), "upto:bounded")
    assert complaint.startswith("upto:bounded, 64 MiB: ") and words in complaint


def test_base_must_not_be_bounded():
    assert any(
        "does not grow" in complaint
        for complaint in claims.bounded_holds([{**run, "samples": [1e-6]} for run in _holds()], "upto:bounded")
    )
    assert claims.bounded_holds(_holds(), "base")


@pytest.mark.parametrize("metric", HOLDS)
def test_a_missing_figure_is_no_proof(metric):
    (complaint,) = claims.bounded_holds(_holds(less=metric), "upto:bounded")
    assert complaint == f"there is no {metric} of upto:bounded with 64 MiB"


def test_the_committed_results_show_that_holds_are_bounded():
    runs = [
        run
        for name in ("holds", "holds-256m")
        for run in results.load(paths.ROOT / f"Documentation/results/v7.3-arm64-{name}.json")["runs"]
    ]
    assert not claims.bounded_holds(runs, "upto:bounded")
