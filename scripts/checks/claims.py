"""What a results file must show for the claims that a cover letter makes of lock counts."""

import re

# Acquisitions for write in the first iteration that faults memory in, by notifiers for the test's own pages.
# Measured: 5 or 6.
_WARM_UP = 8


def _value(runs, kernel, vcpus, metric, iteration):
    for run in runs:
        if (run["kernel"], run["vcpus"], run["metric"], run["iteration"]) == \
                (kernel, vcpus, metric, iteration):
            return run["samples"][-1]
    return None


def _of(runs, kernel, pattern):
    """The runs of `kernel` whose metric is `pattern`, a regular expression."""
    return [run for run in runs if run["kernel"] == kernel and re.fullmatch(pattern, run["metric"])]


def _words(run):
    return (f"{run['kernel']}, {run['vcpus']} vCPUs, iteration {run['iteration']}: "
            f"{run['samples'][-1]} {run['metric']}")


def fast_path(runs, kernel, pages):
    """Check that `kernel` takes dirty-logging permission faults under the read lock only.

    runs: of dirty_log_perf_test on lockstat kernels with page-sized backing, where each iteration
    dirties `pages` write protected pages a vCPU.  Returns complaints, [] if the claim holds.
    """
    complaints = []
    cases = sorted({(run["vcpus"], run["iteration"]) for run in runs if run["kernel"] == kernel
                    and run["metric"] == "mmu_lock_write_acquisitions.dirty"})
    if not cases:
        return [f"{kernel}: there are no lock counts of dirtying"]
    for vcpus, iteration in cases:
        faults = pages * vcpus
        write = _value(runs, kernel, vcpus, "mmu_lock_write_acquisitions.dirty", iteration)
        read = _value(runs, kernel, vcpus, "mmu_lock_read_acquisitions.dirty", iteration)
        waits = _value(runs, kernel, vcpus, "mmu_lock_write_contentions.dirty", iteration)
        where = f"{kernel}, {vcpus} vCPUs, iteration {iteration}"
        if write:
            complaints.append(f"{where}: {write} acquisitions for write while dirtying")
        if read != faults:
            complaints.append(f"{where}: {read} acquisitions for read, {faults} pages dirtied")
        if waits:
            complaints.append(f"{where}: {waits} waits for write while dirtying")
    return complaints


def lockless(runs, kernel):
    """Check that dirty-logging permission faults on `kernel` do not take the lock at all.

    runs: as for fast_path(), which the series' own step without this must pass and this must not:
    so there were faults.  Returns complaints.
    """
    cases = _of(runs, kernel, r"mmu_lock_(write|read)_acquisitions\.dirty")
    if not cases:
        return [f"{kernel}: there are no lock counts of dirtying"]
    return [_words(run) for run in cases if run["samples"][-1]]


def spinlock(runs, kernel, pages):
    """Check that on `kernel` each page dirtied takes the lock for write, as it is on base: what
    makes the others a measurement and not a tautology.  Returns complaints."""
    found = _of(runs, kernel, r"mmu_lock_write_acquisitions\.dirty")
    if not found:
        return [f"{kernel}: there are no lock counts of dirtying"]
    return [f"{_words(run)} for {pages * run['vcpus']} pages" for run in found
            if run["samples"][-1] < pages * run["vcpus"]]


def lockless_aging(runs, kernel, faults=0):
    """Check that aging on `kernel` takes mmu_lock neither for read nor for write.

    runs: "runs" of a results file of access_tracking_stress_test with -p, without -S, that was measured
    on lockstat kernels.  While vCPUs are idle nobody takes it.  While they fault memory in, nobody takes
    it for write but `faults` faults of each vCPU (0: they take it for read), and in the first iteration a
    few notifiers, when the test's own memory is faulted in or copied.  Returns complaints."""
    idle = _of(runs, kernel, r"mmu_lock_(write|read)_acquisitions\.age")
    faulting = _of(runs, kernel, r"mmu_lock_write_acquisitions\.fault")
    if not idle or not faulting:
        return [f"{kernel}: there are no lock counts of aging"]
    return [_words(run) for run in idle if run["samples"][-1]] + [
        _words(run) for run in faulting
        if run["samples"][-1] > faults * run["vcpus"] + (_WARM_UP if run["iteration"] == 1 else 0)]


def locked_aging(runs, kernel, pages, passes):
    """Check that on `kernel`, as on base, aging takes the lock for write for each of `pages` of a vCPU in
    each of `passes` over idle vCPUs.  Returns complaints."""
    found = _of(runs, kernel, r"mmu_lock_write_acquisitions\.age")
    if not found:
        return [f"{kernel}: there are no lock counts of aging"]
    return [f"{_words(run)} for {passes} passes over {pages * run['vcpus']} pages" for run in found
            if run["samples"][-1] < pages * passes * run["vcpus"]]
