"""Results of live migrations on a terminal: two tables in the shape of the ones that the series of 2022 was
posted with, how long migrations take and what the guest suffers; and the ratios of the series to base."""

from statistics import median

from rich.table import Table

from . import migration

# (heading, metric, how a median is shown)
COUNTS = (("ended", "completed", "{:.0%}"), ("syncs", "syncs", "{:.0f}"),
          ("throttle steps", "throttle_steps", "{:.0f}"), ("last %", "throttle_last", "{:.0f}"),
          ("ring-full exits", "ring_full_exits", "{:.0f}"), ("kicks", "kicks", "{:.0f}"),
          ("reaps", "reaps", "{:.0f}"), ("MB sent", "bytes_sent", "{:.1f}"),
          ("time, s", "migration_time", "{:.1f}"), ("pages lost", "pages_lost", "{:.0f}"))
GUEST = (("time slowed by > 50 %, s", "slow_time", "{:.1f}"), ("share of time", "slow_share", "{:.0%}"),
         ("longest stall, ms", "guest_stall", "{:.0f}"), ("work done, 1000 pages", "guest_work", "{:.1f}"),
         ("work lost, s", "guest_work_lost", "{:.1f}"), ("time, s", "migration_time", "{:.1f}"))
_SCALE = {"bytes_sent": 1e-6, "guest_stall": 1e3, "guest_work": 1e-3}
RATIOS = ("syncs", "throttle_steps", "kicks", "bytes_sent", "migration_time", "guest_work_lost", "slow_time",
          "guest_stall")


def cells(runs):
    """{(vcpus, args, config): {kernel: {metric: samples}}} of a results file's runs, in their order."""
    found = {}
    for run in runs:
        if run["test"] == migration.TEST:
            cell = found.setdefault((run["vcpus"], run["args"], run["config"]), {})
            cell.setdefault(run["kernel"], {})[run["metric"]] = run["samples"]
    return found


def view(runs, columns, title):
    """A rich Table: a row for each VM, working set, ring size and QEMU."""
    table = Table("vCPUs", "working set, MiB", "dirty pages by", "QEMU", title=title)
    for heading, _, _ in columns:
        table.add_column(heading, justify="right")
    for (vcpus, args, config), kernels in cells(runs).items():
        words = dict(word.split("=") for word in args.split())
        for kernel, metrics in kernels.items():
            table.add_row(str(vcpus), words["working-set"], config, kernel,
                          *(_text(metrics.get(metric), metric, form) for _, metric, form in columns))
    return table


def _text(samples, metric, form):
    """A median; both ends, too, where samples differ as they are shown."""
    if not samples:
        return "-"
    if metric == "completed":
        return f"{sum(1 for one in samples if one)}/{len(samples)}"
    if metric == "pages_lost":
        return form.format(max(samples))
    scaled = [one * _SCALE.get(metric, 1) for one in samples]
    low, high = form.format(min(scaled)), form.format(max(scaled))
    return form.format(median(scaled)) + (f" ({low}..{high})" if low != high else "")


def ratios(runs, kernel="series", base="base"):
    """[(vcpus, args, config, {metric: (median, least, most)})] of the series' samples by base's: the rounds are
    paired, as they were taken next to each other.  A metric that base has 0 of is left out."""
    found = []
    for key, kernels in cells(runs).items():
        if kernel not in kernels or base not in kernels:
            continue
        row = {}
        for metric in RATIOS:
            pairs = zip(kernels[kernel].get(metric, ()), kernels[base].get(metric, ()))
            values = [one / two for one, two in pairs if two > 0]
            if values:
                row[metric] = (median(values), min(values), max(values))
        found.append((*key, row))
    return found


def ratio_view(runs, kernel="series", base="base"):
    """A rich Table of ratios()."""
    table = Table("vCPUs", "working set, MiB", "dirty pages by", title=f"{kernel} by {base} (least..most)")
    for metric in RATIOS:
        table.add_column(metric.replace("_", " "), justify="right")
    for vcpus, args, config, row in ratios(runs, kernel, base):
        words = dict(word.split("=") for word in args.split())
        texts = []
        for metric in RATIOS:
            if metric not in row:
                texts.append("-")
                continue
            middle, low, high = (f"{one:.2f}" for one in row[metric])
            texts.append(middle + (f" ({low}..{high})" if low != high else ""))
        table.add_row(str(vcpus), words["working-set"], config, *texts)
    return table


def tables(runs):
    """All tables for `runs`."""
    found = [view(runs, COUNTS, "migrations under auto-converge"), view(runs, GUEST, "what the guest suffers")]
    kernels = {run["kernel"] for run in runs}
    if {"base", "series"} <= kernels:
        found.append(ratio_view(runs))
    return found
