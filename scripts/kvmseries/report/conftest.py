"""Fixture data for the tests of the report: invented numbers in a realistic shape, NOT results."""

import pytest

from kvmseries.data import benchmarks, summary

HOST = {
    "machine": "x86_64",
    "cpu": "Fixture CPU @ 2.00GHz",
    "cpus": 2,
    "memory": 8 * 2**30,
    "os": "Fixture GNU/Linux 13",
    "kernel": "6.12.0-fixture",
    "tools": {"qemu-system-aarch64": "QEMU emulator version 10.0.2", "missing-tool": None},
    "kernels": {
        f"{kernel} arm64 {config}": f"5.10.262-fixture{'-series' * (kernel == 'series')}"
        for config in ("normal", "lockstat")
        for kernel in ("base", "series")
    },
}
PAGES = 1024  # a vCPU
COUNTERS = [
    "instructions_per_fault",
    *(f"faults_{kind}" for kind in ("permission", "translation", "access", "other")),
    "tlbi_local",
    "tlbi_broadcast",
    "atomics",
    "foreign_atomics",
]


def make_run(**keys):
    """One run with all keys; `keys` replace the defaults."""
    run = {
        "series": "v5.10",
        "kernel": "base",
        "arch": "arm64",
        "accel": "tcg",
        "clock": "wall",
        "model": "",
        "cpu": "max",
        "config": "normal",
        "params": [],
        "test": "dirty_log_perf_test",
        "args": "-m 2 -i 2 -b 4M -v 1",
        "vcpus": 1,
        "iteration": None,
        "metric": "dirty_memory_time",
        "unit": "s",
        "samples": [1.0],
    }
    unknown = set(keys) - set(run)
    assert not unknown, unknown
    if keys.get("clock") == "virtual":
        run["model"] = "nominal"
    return {**run, **keys}


def make_file(*runs, **host):
    """A loaded results file of these runs; `host` replaces keys of HOST."""
    return {"schema": 4, "host": {**HOST, **host}, "made": {}, "runs": list(runs)}


def _times(kernel, vcpus, **keys):
    slow = 1 if kernel == "base" else 0.55 + 0.4 / vcpus
    for metric, seconds, iterations in (
        ("dirty_memory_time", 0.21, (1, 2)),
        ("populate_memory_time", 0.34, (None,)),
        ("get_dirty_log_time", 0.0061, (1, 2)),
        ("clear_dirty_log_time", 0.018, (1, 2)),
        ("enable_dirty_log_time", 0.0081, (None,)),
        ("disable_dirty_log_time", 0.0102, (None,)),
    ):
        for iteration in iterations:
            factor = slow if metric == "dirty_memory_time" else 1
            samples = [
                round(seconds * vcpus * factor * noise * (1 + 0.02 * (iteration or 0)), 9)
                for noise in (1.0, 1.06, 0.97)
            ]
            yield make_run(kernel=kernel, vcpus=vcpus, metric=metric, iteration=iteration, samples=samples, **keys)


def _counts(kernel, vcpus, **keys):
    faults = PAGES * vcpus
    wait = (vcpus - 1) * 0.11
    dirty = (faults, 0) if kernel == "base" else (0, faults)
    shares = {
        "setup": (7, 0),
        "populate": (faults + 30, 0),
        "enable": (3, 0),
        "dirty": dirty,
        "get": (2, 0),
        "clear": (16 * vcpus, 0),
        "disable": (3, 0),
        "exit": (12, 0),
    }
    names = ("write_acquisitions", "read_acquisitions", "write_contentions", "read_contentions")

    def counted(metric, samples, iteration=None):
        return make_run(
            **{**keys, "kernel": kernel, "vcpus": vcpus, "config": "lockstat", "unit": "1", "iteration": iteration},
            metric=f"mmu_lock_{metric}",
            samples=samples,
        )

    total = [0, 0, 0, 0]
    for phase, (writes, reads) in shares.items():
        for iteration in (1, 2) if phase in ("dirty", "get", "clear") else (None,):
            numbers = (writes, reads, int(writes * wait), int(reads * wait * 0.01))
            total = [a + b for a, b in zip(total, numbers)]
            for metric, number in zip(names, numbers):
                yield counted(f"{metric}.{phase}", [number], iteration)
    for metric, number in zip(names, total):
        yield counted(metric, [number, number + (number // 20 if "contentions" in metric else 0)])
    both = total[2] + total[3]
    yield counted("contentions", [both, both + total[2] // 20 + total[3] // 20])


def full_results(kernels=("base", "series"), vcpus=(1, 2, 4), **keys):
    """A results file with every metric of the schema."""
    runs = []
    for kernel in kernels:
        for count in vcpus:
            keys["args"] = f"-m 2 -i 2 -b 4M -v {count}"
            runs += list(_times(kernel, count, **keys)) + list(_counts(kernel, count, **keys))
    return make_file(*runs)


VTIME = {
    "qemu": "10.0.2",
    "slice_ns": 500,
    "parameters": {
        "insn": {"ns": 0.4, "what": "every instruction", "source": "invented, for a fixture"},
        "line": {"ns": 60.0, "what": "moving a cache line", "source": "invented, for a fixture"},
    },
}
HUGETLB = "-b 4M -i 2 -m 2 -s anonymous_hugetlb_2mb -g -G"
GROWTH = {
    "base": {1: 1, 2: 1.2, 4: 2.5, 8: 5.5, 16: 12.0},
    "upto:fast-path": {1: 1, 2: 1.05, 4: 1.2, 8: 2.0, 16: 3.6},
    "upto:parallel": {1: 1, 2: 1.04, 4: 1.15, 8: 1.4, 16: 2.0},
    "series": {1: 1, 2: 1.02, 4: 1.05, 8: 1.1, 16: 1.3},
    "v7.3:base": {1: 1, 2: 1.01, 4: 1.1, 8: 1.2, 16: 1.5},
}


def virtual_runs(kernel="base", vcpus=(1, 2, 4, 8, 16), args=HUGETLB, model="nominal", factor=1.0):
    """Runs in virtual time of one kernel: both main times and the counters of two phases.

    factor: of the contended part of the growth; 1-vCPU times do not depend on it.
    """
    for count in vcpus:
        keys = {"kernel": kernel, "vcpus": count, "args": args, "clock": "virtual", "model": model}
        growth = 1 + (GROWTH[kernel][count] - 1) * factor
        for iteration in (1, 2):
            yield make_run(
                **keys,
                iteration=iteration,
                samples=[PAGES * 1.5e-6 * growth * noise * iteration for noise in (1, 1.01, 0.99)],
            )
        yield make_run(**keys, metric="populate_memory_time", samples=[PAGES * 3e-6 * (1 + (growth - 1) / 3)])
        for phase, iterations in (("dirty", (1, 2)), ("populate", (None,)), ("exit", (None,))):
            for iteration in iterations:
                for number, counter in enumerate(COUNTERS):
                    count_of = 3350 if not number else PAGES * count * number * (iteration or 1)
                    yield make_run(
                        **keys, metric=f"{counter}.{phase}", unit="1", iteration=iteration, samples=[count_of]
                    )


def virtual_results(kernels=("base", "upto:fast-path"), variants=(), **keys):
    """A results file of virtual time; variants: {model: factor of virtual_runs}."""
    runs = [run for kernel in kernels for run in virtual_runs(kernel, **keys)]
    runs += [
        run
        for kernel in kernels
        for model, factor in dict(variants).items()
        for run in virtual_runs(kernel, model=model, factor=factor, **keys)
        if run["unit"] == "s"
    ]
    return make_file(*runs, vtime=VTIME)


AGING = "-p -S -b 64K -B 2M -i 3 -n 16 -m 2 -k page_idle"
# Kernel -> vCPUs -> us: a pass beside idle vCPUs, beside faulting ones; vCPU time with aging and
# without.
AGES = {
    "base": {1: (8, 12, 720, 660), 4: (32, 160, 1800, 1600), 16: (120, 3000, 6800, 6700)},
    "series": {1: (8, 8, 670, 670), 4: (34, 34, 740, 740), 16: (125, 130, 800, 810)},
}


def aging_runs(kernel, alone=False, args=AGING, vcpus=(1, 4, 16), time="fault", **more):
    """Runs of access_tracking_stress_test: of three iterations, the first other than the last, and
    of the whole test.  alone: with -a 0."""
    for count in vcpus:
        idle, busy, with_aging, without = AGES[kernel][count]
        keys = {
            "kernel": kernel,
            "vcpus": count,
            "clock": "virtual",
            **more,
            "test": "access_tracking_stress_test",
            "args": args + " -a 0" * alone,
        }
        figures = {
            f"{time}_memory_time": (without if alone else with_aging, "s"),
            f"instructions_per_fault.{time}": (2650 if alone else 2700, "1"),
        }
        if not alone:
            us = {"pass_median.idle": idle, "pass_median.running": busy, "pass_p99.running": busy * 1.1}
            us["pass_max.running"] = busy * 1.2
            counts = {"young.idle": 16 * count, "young.running": 15.4 * count, "false_idle.after": 0}
            counts["touched.after"] = 11 * count
            figures |= {name: (value, "s") for name, value in us.items()}
            figures |= {name: (value, "1") for name, value in counts.items()}
        for metric, (value, unit) in figures.items():
            for iteration in (1, 2, 3, None):
                if iteration is None and not metric.startswith(("pass", "young", "false", "touched")):
                    continue
                # A figure that is not of the last iteration would show.
                factor = (1e-6 if unit == "s" else 1) * (1 if iteration == 3 else 7)
                yield make_run(**keys, metric=metric, iteration=iteration, unit=unit, samples=[value * factor] * 2)


def aging_results(kernels=("base", "series"), **keys):
    """A results file of aging_runs()."""
    runs = [run for kernel in kernels for run in aging_runs(kernel, **keys)]
    return make_file(*runs, vtime=VTIME)


MERGING = "-t 0 -i 2 -b 2M"
# Kernel -> vCPUs -> exits a page read, written, read while merged; us of ksmd, vCPUs reading, vCPUs
# writing, ksmd while vCPUs read.
MERGES = {
    "base": {2: (0, 2, 2.25, 5000, 0, 6000, 5400), 8: (0, 2, 3.5, 9000, 0, 30000, 9600)},
    "upto:aging": {2: (1, 2, 4.5, 3400, 900, 4300, 3700), 8: (1, 2, 6, 3500, 5600, 9000, 3900)},
    "series": {2: (0.002, 2, 0.25, 4200, 3, 4100, 4300), 8: (0.004, 2, 0.5, 4400, 20, 8500, 4500)},
}


def merging_runs(kernel, vcpus=(2, 8), **more):
    """Runs of change_pte_test: of two iterations, the first other than the last."""
    for count in vcpus:
        keys = {
            "kernel": kernel,
            "vcpus": count,
            "clock": "virtual",
            "test": "change_pte_test",
            "args": MERGING,
            **more,
        }
        names = [f"{way}_exits_per_page" for way in ("read_merged", "write_merged", "read_while_merged")]
        names += ["merge_ksmd_time", "read_merged_vcpu_time", "write_merged_vcpu_time", "merge_ksmd_time_while_read"]
        figures = {
            name: (number * 1e-6 if name in names[3:] else number, "s" if name in names[3:] else "1")
            for name, number in zip(names, MERGES[kernel][count])
        }
        figures |= {"pages_merged": (512 * count, "1"), "read_while_merged_vcpu_time": (-0.0123, "s")}
        for metric, (value, unit) in figures.items():
            for iteration in (1, 2):
                # A figure that is not of the last iteration would show.
                yield make_run(
                    **keys,
                    metric=metric,
                    iteration=iteration,
                    unit=unit,
                    samples=[value * (1 if iteration == 2 else 7)] * 2,
                )


def merging_results(kernels=("base", "upto:aging", "series"), **keys):
    """A results file of merging_runs()."""
    runs = [run for kernel in kernels for run in merging_runs(kernel, **keys)]
    return make_file(*runs, vtime=VTIME)


@pytest.fixture
def results():
    return [full_results()]


def only(results):
    """The one Summary of `results`; aging is one with what is without it."""
    (found,) = summary.summarise(results)
    return found


def column(metric, unit="us", **more):
    """A Column of a test's own."""
    return benchmarks.Column(name=metric, head="head", title=metric, unit=unit, better="less", **more)
