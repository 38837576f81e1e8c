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
        ("dirty_memory_time", 0.21 * slow, (1, 2)),
        ("populate_memory_time", 0.34, (None,)),
        ("get_dirty_log_time", 0.0061, (1, 2)),
        ("clear_dirty_log_time", 0.018, (1, 2)),
        ("enable_dirty_log_time", 0.0081, (None,)),
        ("disable_dirty_log_time", 0.0102, (None,)),
    ):
        for iteration in iterations:
            middle = seconds * vcpus * (1 + 0.02 * (iteration or 0))
            samples = [round(middle * noise, 9) for noise in (1.0, 1.06, 0.97)]
            yield make_run(kernel=kernel, vcpus=vcpus, metric=metric, iteration=iteration, samples=samples, **keys)


def _counts(kernel, vcpus, **keys):
    faults = PAGES * vcpus
    wait = (vcpus - 1) * 0.11
    keys = {**keys, "kernel": kernel, "vcpus": vcpus, "config": "lockstat", "unit": "1"}
    names = [f"mmu_lock_{name}" for name in ("write_acquisitions", "read_acquisitions", "write_contentions")]
    names.append("mmu_lock_read_contentions")
    total = dict.fromkeys(names, 0)
    for phase, writes, reads, iterations in (
        ("setup", 7, 0, (None,)),
        ("populate", faults + 30, 0, (None,)),
        ("enable", 3, 0, (None,)),
        ("dirty", *((faults, 0) if kernel == "base" else (0, faults)), (1, 2)),
        ("get", 2, 0, (1, 2)),
        ("clear", 16 * vcpus, 0, (1, 2)),
        ("disable", 3, 0, (None,)),
        ("exit", 12, 0, (None,)),
    ):
        for iteration in iterations:
            for name, number in zip(names, (writes, reads, int(writes * wait), int(reads * wait * 0.01))):
                total[name] += number
                yield make_run(**keys, metric=f"{name}.{phase}", iteration=iteration, samples=[number])
    total["mmu_lock_contentions"] = sum(total[name] for name in names[2:])
    for name, number in total.items():
        yield make_run(**keys, metric=name, samples=[number, number + (number // 20 if "contentions" in name else 0)])


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


def _iterated(figures, last, **keys):
    """Runs of {metric: (value, unit)} in iterations 1 to `last`: one that is not of the last iteration would show."""
    for metric, (value, unit) in figures.items():
        for iteration in range(1, last + 1):
            samples = [value * (1 if iteration == last else 7)] * 2
            yield make_run(**keys, clock="virtual", metric=metric, iteration=iteration, unit=unit, samples=samples)


AGING = "-p -S -b 64K -B 2M -i 3 -n 16 -m 2 -k page_idle"
# Kernel -> vCPUs -> us: a pass beside idle vCPUs, beside faulting ones; vCPU time with aging and
# without.
AGES = {
    "base": {1: (8, 12, 720, 660), 4: (32, 160, 1800, 1600), 16: (120, 3000, 6800, 6700)},
    "series": {1: (8, 8, 670, 670), 4: (34, 34, 740, 740), 16: (125, 130, 800, 810)},
}


def aging_results(alone=False):
    """A results file of access_tracking_stress_test, three iterations; alone: with -a 0."""
    runs = []
    for kernel, counts in AGES.items():
        for vcpus, (idle, busy, with_aging, without) in counts.items():
            figures = {
                "fault_memory_time": ((without if alone else with_aging) * 1e-6, "s"),
                "instructions_per_fault.fault": (2650 if alone else 2700, "1"),
            }
            if not alone:
                passes = {
                    "median.idle": idle,
                    "median.running": busy,
                    "p99.running": busy * 1.1,
                    "max.running": busy * 1.2,
                }
                pages = {"young.idle": 16, "young.running": 15.4, "false_idle.after": 0, "touched.after": 11}
                figures |= {f"pass_{name}": (us * 1e-6, "s") for name, us in passes.items()}
                figures |= {name: (number * vcpus, "1") for name, number in pages.items()}
            keys = {"test": "access_tracking_stress_test", "args": AGING + " -a 0" * alone}
            runs += _iterated(figures, 3, kernel=kernel, vcpus=vcpus, **keys)
    return make_file(*runs, vtime=VTIME)


# Kernel -> vCPUs -> exits a page read, written, read while merged; us of ksmd, vCPUs reading, vCPUs
# writing, ksmd while vCPUs read.
MERGES = {
    "base": {2: (0, 2, 2.25, 5000, 0, 6000, 5400), 8: (0, 2, 3.5, 9000, 0, 30000, 9600)},
    "upto:aging": {2: (1, 2, 4.5, 3400, 900, 4300, 3700), 8: (1, 2, 6, 3500, 5600, 9000, 3900)},
    "series": {2: (0.002, 2, 0.25, 4200, 3, 4100, 4300), 8: (0.004, 2, 0.5, 4400, 20, 8500, 4500)},
}


def merging_results():
    """A results file of change_pte_test, two iterations."""
    exits = [f"{way}_exits_per_page" for way in ("read_merged", "write_merged", "read_while_merged")]
    times = ["merge_ksmd_time", "read_merged_vcpu_time", "write_merged_vcpu_time", "merge_ksmd_time_while_read"]
    runs = []
    for kernel, counts in MERGES.items():
        for vcpus, numbers in counts.items():
            figures = {name: (number, "1") for name, number in zip(exits, numbers)}
            figures |= {name: (us * 1e-6, "s") for name, us in zip(times, numbers[len(exits) :])}
            figures |= {"pages_merged": (512 * vcpus, "1"), "read_while_merged_vcpu_time": (-0.0123, "s")}
            keys = {"test": "change_pte_test", "args": "-t 0 -i 2 -b 2M"}
            runs += _iterated(figures, 2, kernel=kernel, vcpus=vcpus, **keys)
    return make_file(*runs, vtime=VTIME)


@pytest.fixture
def results():
    return [full_results()]


def only(*results):
    """The one Summary of `results`; aging is one with what is without it."""
    (found,) = summary.summarise(results)
    return found


def column(metric, unit="us", **more):
    """A Column of a test's own."""
    return benchmarks.Column(name=metric, head="head", title=metric, unit=unit, better="less", **more)
