"""Fixture data for the tests of the report: invented numbers in a realistic shape, NOT results."""

import pytest

HOST = {
    "machine": "x86_64", "cpu": "Fixture CPU @ 2.00GHz", "cpus": 2, "memory": 8 * 2 ** 30,
    "os": "Fixture GNU/Linux 13", "kernel": "6.12.0-fixture",
    "tools": {"qemu-system-aarch64": "QEMU emulator version 10.0.2", "missing-tool": None},
    "kernels": {"base arm64 normal": "5.10.262-fixture",
                "series arm64 normal": "5.10.262-fixture-series",
                "base arm64 lockstat": "5.10.262-fixture",
                "series arm64 lockstat": "5.10.262-fixture-series"},
}
PAGES = 1024      # a vCPU


def make_run(**keys):
    """One run with all keys; `keys` replace the defaults."""
    run = {"series": "v5.10", "kernel": "base", "arch": "arm64", "accel": "tcg", "clock": "wall",
           "cpu": "max", "config": "normal", "params": [], "test": "dirty_log_perf_test",
           "args": "-m 2 -i 2 -b 4M -v 1", "vcpus": 1, "iteration": None,
           "metric": "dirty_memory_time", "unit": "s", "samples": [1.0]}
    unknown = set(keys) - set(run)
    assert not unknown, unknown
    return {**run, **keys}


def make_file(*runs, **host):
    """A loaded results file of these runs; `host` replaces keys of HOST."""
    return {"schema": 1, "host": {**HOST, **host}, "runs": list(runs)}


def _times(kernel, vcpus, **keys):
    slow = 1 if kernel == "base" else 0.55 + 0.4 / vcpus
    for metric, seconds, iterations in (
            ("dirty_memory_time", 0.21, (1, 2)), ("populate_memory_time", 0.34, (None,)),
            ("get_dirty_log_time", 0.0061, (1, 2)), ("clear_dirty_log_time", 0.018, (1, 2)),
            ("enable_dirty_log_time", 0.0081, (None,)),
            ("disable_dirty_log_time", 0.0102, (None,))):
        for iteration in iterations:
            factor = slow if metric == "dirty_memory_time" else 1
            samples = [round(seconds * vcpus * factor * noise * (1 + 0.02 * (iteration or 0)), 9)
                       for noise in (1.0, 1.06, 0.97)]
            yield make_run(kernel=kernel, vcpus=vcpus, metric=metric, iteration=iteration,
                           samples=samples, **keys)


def _counts(kernel, vcpus, **keys):
    faults = PAGES * vcpus
    wait = (vcpus - 1) * 0.11
    shares = {"setup": (7, 0), "populate": (faults + 30, 0), "enable": (3, 0),
              "dirty": (faults, 0), "get": (2, 0), "clear": (16 * vcpus, 0), "disable": (3, 0),
              "exit": (12, 0)}
    if kernel != "base":
        shares["dirty"] = (0, faults)
    total = [0, 0, 0, 0]
    for phase, (writes, reads) in shares.items():
        times = (1, 2) if phase in ("dirty", "get", "clear") else (None,)
        for iteration in times:
            numbers = (writes, reads, int(writes * wait), int(reads * wait * 0.01))
            total = [a + b for a, b in zip(total, numbers)]
            for metric, number in zip(("write_acquisitions", "read_acquisitions",
                                       "write_contentions", "read_contentions"), numbers):
                yield make_run(kernel=kernel, vcpus=vcpus, config="lockstat", unit="1",
                               metric=f"mmu_lock_{metric}.{phase}", iteration=iteration,
                               samples=[number], **keys)
    for metric, number in zip(("write_acquisitions", "read_acquisitions", "write_contentions",
                               "read_contentions"), total):
        spread = number // 20 if "contentions" in metric else 0
        yield make_run(kernel=kernel, vcpus=vcpus, config="lockstat", unit="1",
                       metric=f"mmu_lock_{metric}", samples=[number, number + spread], **keys)
    yield make_run(kernel=kernel, vcpus=vcpus, config="lockstat", unit="1",
                   metric="mmu_lock_contentions", samples=[total[2] + total[3] + extra for extra in
                                                           (0, total[2] // 20 + total[3] // 20)],
                   **keys)


def full_results(kernels=("base", "series"), vcpus=(1, 2, 4), **keys):
    """A results file with every metric of the schema."""
    runs = []
    for kernel in kernels:
        for count in vcpus:
            keys["args"] = f"-m 2 -i 2 -b 4M -v {count}"
            runs += list(_times(kernel, count, **keys)) + list(_counts(kernel, count, **keys))
    return make_file(*runs)


@pytest.fixture
def results():
    return [full_results()]
