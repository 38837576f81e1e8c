"""The claims about lock counts hold on counts as they are, and fail on counts as they were."""

import pytest

from kvmseries.base import paths
from kvmseries.data import results
from tests import claims


def _runs(iteration=1, vcpus=2, kernel="series", **counts):
    """Runs of lock counts: write_acquisitions_dirty=1 is of mmu_lock_write_acquisitions.dirty."""
    return [
        {
            "kernel": kernel,
            "vcpus": vcpus,
            "iteration": iteration,
            "metric": "mmu_lock_" + ".".join(name.rsplit("_", 1)),
            "samples": [value],
        }
        for name, value in counts.items()
    ]


def _dirty(write, read, contentions=0):
    return _runs(write_acquisitions_dirty=write, read_acquisitions_dirty=read, write_contentions_dirty=contentions)


def _aging(age, fault, mode="write", iteration=1):
    counts = {f"{mode}_acquisitions_age": age, "write_acquisitions_fault": fault, "read_acquisitions_fault": 1024}
    return _runs(iteration, **counts)


@pytest.mark.parametrize(
    "claim, args, runs, holds",
    [
        # 1,024 pages of each of 2 vCPUs.
        (claims.fast_path, (1024,), _dirty(0, 2048), True),
        (claims.fast_path, (1024,), _dirty(2048, 0), False),
        (claims.fast_path, (1024,), _dirty(1, 2048), False),
        # A fault that took no lock; one that came twice; one that waited.
        (claims.fast_path, (1024,), _dirty(0, 2047), False),
        (claims.fast_path, (1024,), _dirty(0, 2049), False),
        (claims.fast_path, (1024,), _dirty(0, 2048, 1), False),
        (claims.fast_path, (1024,), _dirty(0, 2048)[:1], False),
        (claims.lockless, (), _dirty(0, 0), True),
        (claims.lockless, (), _dirty(0, 1), False),
        (claims.lockless, (), _dirty(1, 0), False),
        (claims.spinlock, (1024,), _dirty(2048, 0), True),
        (claims.spinlock, (1024,), _dirty(2047, 2048), False),
        (claims.lockless_aging, (), _aging(0, 0), True),
        (claims.lockless_aging, (), _aging(1, 0, iteration=2), False),
        (claims.lockless_aging, (), _aging(1, 0, "read"), False),
        (claims.lockless_aging, (), _aging(0, 1, iteration=2), False),
        # The test's own pages, at first.
        (claims.lockless_aging, (), _aging(8, 8), True),
        (claims.lockless_aging, (), _aging(0, 9), False),
        (claims.lockless_aging, (), _aging(9, 0), False),
        # Of 2 vCPUs that fault in 64 pages each.
        (claims.lockless_aging, (64,), _aging(0, 2 * 64, iteration=2), True),
        (claims.lockless_aging, (64,), _aging(0, 2 * 64 + 1, iteration=2), False),
        (claims.lockless_aging, (), _aging(0, 0)[1:], False),
        (claims.locked_aging, (64, 4), _aging(2 * 64 * 4, 0), True),
        (claims.locked_aging, (64, 4), _aging(2 * 64 * 4 - 1, 0), False),
    ],
)
def test_a_claim_holds_or_does_not(claim, args, runs, holds):
    assert (claim(runs, "series", *args) == []) == holds
    # No counts are no proof.
    for others in ([], [{**run, "kernel": "other"} for run in runs]):
        complaints = claim(others, "series", *args)
        assert complaints and all(line.startswith("series: there are no lock counts of ") for line in complaints)


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
