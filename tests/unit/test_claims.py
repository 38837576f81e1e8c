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


@pytest.fixture(scope="module", name="holds")
def _holds():
    """The committed runs of dirty_hold_test."""
    return [
        run
        for name in ("holds", "holds-256m")
        for run in results.load(paths.ROOT / f"Documentation/results/v7.3-arm64-{name}.json")["runs"]
    ]


def _is(run, kernel, metric):
    """Whether this is the run of `kernel` with a memslot of 64 MiB."""
    return (run["kernel"], run["metric"]) == (kernel, metric) and "-b 64" in run["args"]


def test_the_committed_results_show_that_holds_are_bounded(holds):
    assert not claims.bounded_holds(holds, "upto:bounded")
    assert claims.bounded_holds(holds, "base")


@pytest.mark.parametrize(
    "metric, us, of_base, words",
    [
        ("clear_busy_hold", 60, 0, "longest hold of a clear 61.0 us, more than 60.0"),
        ("clear_busy_write", 0, 1 / 20, "longest write "),
        ("clear_idle_time", 0, 1.02, "clear with nobody waiting"),
        ("discard_hold", 1500, 0, "longest hold of a discard"),
    ],
)
def test_one_round_that_is_not_is_noticed(holds, metric, us, of_base, words):
    """1 us more than a limit, which is absolute or a share of base's shortest round."""
    limit = us * 1e-6 + sum(of_base * min(run["samples"]) for run in holds if _is(run, "base", metric))
    worse = [
        {**run, "samples": [*run["samples"], limit + 1e-6]} if _is(run, "upto:bounded", metric) else run
        for run in holds
    ]
    (complaint,) = claims.bounded_holds(worse, "upto:bounded")
    assert complaint.startswith("upto:bounded, 64 MiB: ") and words in complaint
    missing = [run for run in holds if not _is(run, "upto:bounded", metric)]
    assert claims.bounded_holds(missing, "upto:bounded") == [f"there is no {metric} of upto:bounded with 64 MiB"]


def test_base_must_not_be_bounded(holds):
    found = claims.bounded_holds([{**run, "samples": [1e-6]} for run in holds], "upto:bounded")
    assert any("does not grow" in complaint for complaint in found)
