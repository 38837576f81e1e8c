"""What a results file must show for the claims that a cover letter makes of lock counts, and of how long mmu_lock is held."""

import math
import re

# Acquisitions for write in the first iteration, by notifiers for the test's own pages.  Measured: 5 or 6 while memory is
# faulted in; 4 while vCPUs are idle where the C library is Debian 13's (base: 1,284, and 1,280 in the second), else 0.
_WARM_UP = 8


def _outside(runs, kernel, pattern, least=0.0, most=math.inf, warm_up=0):
    """A line for each of the runs of `kernel` whose metric is mmu_lock_ and `pattern`, a regular expression, and whose count is
    not `least` to `most` for each vCPU; warm_up: more that may come for write in the first iteration.  A line, too, if there
    are no such runs."""
    found = [run for run in runs if run["kernel"] == kernel and re.fullmatch(f"mmu_lock_{pattern}", run["metric"])]
    if not found:
        return [f"{kernel}: there are no lock counts of {pattern}"]
    complaints = []
    for run in found:
        count, vcpus = run["samples"][-1], run["vcpus"]
        more = warm_up if run["iteration"] == 1 and "_write_" in run["metric"] else 0
        if not least * vcpus <= count <= most * vcpus + more:
            limits = f"from {least} to {most} a vCPU"
            complaints.append(
                f"{kernel}, {vcpus} vCPUs, iteration {run['iteration']}: {count} {run['metric']}, not {limits}"
            )
    return complaints


def fast_path(runs, kernel, pages):
    """Check that `kernel` takes dirty-logging permission faults under the read lock only.

    runs: of dirty_log_perf_test on lockstat kernels with page-sized backing, where each iteration
    dirties `pages` write protected pages a vCPU.  Returns complaints, [] if the claim holds.
    """
    of_reads = _outside(runs, kernel, r"read_acquisitions\.dirty", pages, pages)
    return of_reads + _outside(runs, kernel, r"write_(acquisitions|contentions)\.dirty", most=0)


def lockless(runs, kernel):
    """Check that dirty-logging permission faults on `kernel` do not take the lock at all.

    runs: as for fast_path(), which the series' own step without this must pass and this must not:
    so there were faults.  Returns complaints.
    """
    return _outside(runs, kernel, r"(write|read)_acquisitions\.dirty", most=0)


def spinlock(runs, kernel, pages):
    """Check that on `kernel` each page dirtied takes the lock for write, as it is on base: what
    makes the others a measurement and not a tautology.  Returns complaints."""
    return _outside(runs, kernel, r"write_acquisitions\.dirty", pages)


def lockless_aging(runs, kernel, faults=0):
    """Check that aging on `kernel` takes mmu_lock neither for read nor for write.

    runs: "runs" of a results file of access_tracking_stress_test with -p, without -S, that was measured
    on lockstat kernels.  While vCPUs are idle nothing takes it.  While they fault memory in, nothing takes
    it for write but `faults` faults of each vCPU (0: they take it for read).  In the first iteration a few
    notifiers may take it for write, when the test's own memory is faulted in or copied.  Returns complaints."""
    of_aging = _outside(runs, kernel, r"(write|read)_acquisitions\.age", most=0, warm_up=_WARM_UP)
    return of_aging + _outside(runs, kernel, r"write_acquisitions\.fault", most=faults, warm_up=_WARM_UP)


def locked_aging(runs, kernel, pages, passes):
    """Check that on `kernel`, as on base, aging takes the lock for write for each of `pages` of a vCPU in
    each of `passes` over idle vCPUs.  Returns complaints."""
    return _outside(runs, kernel, r"write_acquisitions\.age", pages * passes)


# Of milestone `bounded` of v7.3, seconds: one hold while the log is cleared, and while 64 MiB are discarded (54 us with 32
# leaves a hold: 0.1e-3 will do when `holds`, of 512, is renewed); and times of base's:
# the clear itself, with nobody waiting, and a vCPU's longest write meanwhile.
CLEARED, _DISCARDED = 60e-6, 1.5e-3
_CLEAR_TIME, _WRITE = 1.02, 1 / 20
# By how much the hold of base grows when the memslot is four times as large, or the bound shows nothing.
_GROWS = 3
SIZES = (64, 256)


def bounded_holds(runs, kernel, base="base"):
    """Check that on `kernel` nobody holds mmu_lock for long while the dirty log is cleared or memory is discarded, and that on
    `base` the hold grows with the memslot.

    runs: of dirty_hold_test with -b of each of SIZES, MiB, all samples of which must be so.  Returns complaints."""
    found = {
        (run["kernel"], int(re.search(r"-b (\d+)", run["args"])[1]), run["metric"]): run["samples"] for run in runs
    }

    try:
        small, large = (min(found[base, size, "clear_busy_hold"]) for size in SIZES)
        limits = [("longest hold of a discard", "discard_hold", SIZES[0], _DISCARDED)]
        for size in SIZES:
            write, clear = (min(found[base, size, name]) for name in ("clear_busy_write", "clear_idle_time"))
            limits += [
                ("longest hold of a clear", "clear_busy_hold", size, CLEARED),
                ("longest write", "clear_busy_write", size, _WRITE * write),
                ("clear with nobody waiting", "clear_idle_time", size, _CLEAR_TIME * clear),
            ]
        complaints = [
            f"{kernel}, {size} MiB: {what} {value * 1e6:.1f} us, more than {most * 1e6:.1f}"
            for what, metric, size, most in limits
            for value in found[kernel, size, metric]
            if value > most
        ]
    except KeyError as error:
        return [f"there is no {error.args[0][2]} of {error.args[0][0]} with {error.args[0][1]} MiB"]
    if large <= _GROWS * small:
        complaints.append(
            f"{base}: the longest hold of a clear does not grow with the memslot, {small * 1e6:.1f} and {large * 1e6:.1f} us"
        )
    return complaints
