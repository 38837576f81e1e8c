"""Live migrations with QEMU's series, in an emulated host: no page is lost, the throttle is computed, and what
mutants lose is seen.  calc-dirty-rate counts a page once with the ring, as with the bitmap.

On arm64, and on x86-64 with SVM, where base migrates, too: its q35 has a second address space, and its vCPUs' logs are
write-protected pages as on arm64, as TCG has no PML.

Few and short; many, and compared with base: `scripts/series bench qemu-10.0`, `scripts/series test qemu-10.0 --soak 4`.
"""

import functools
from dataclasses import replace

import pytest

from kvmseries.base import progress
from kvmseries.source import catalog, trees
from migrate import build, driver, migration

SERIES = "qemu-10.0"
pytestmark = [pytest.mark.boot, pytest.mark.slow]
# The comparison of both sides must find them; how: patches/mutants/README.md.
MUTANT = "slot-not-synced"
# A guest that writes as fast as it can, and a migration that ends while it does.
FAST = driver.Setting(
    ring=1024, vcpus=2, working_set=2048, rate=0, bandwidth=30000000, downtime=1000, auto_converge=0, limit=60
)
# A guest that does not come back to a page before it was sent: what it writes before it stops is clean by then.
PACED = replace(FAST, rate=2000, working_set=8192)
# Auto-converge, as bench has it.
AUTO = driver.Setting(ring=1024, vcpus=2, working_set=2048, limit=60)
# {arch: {name: (kernel, setting)}}
COMMANDS = {
    "arm64": {
        "ring": ("series", AUTO),
        "log": ("series", replace(AUTO, ring=0, vcpus=1)),
        "fast": ("series", FAST),
        # The rings are filled.
        "busy": ("series", replace(FAST, busy=1, working_set=8192)),
        "spoiled": ("series", replace(FAST, corrupt=3)),
        "mutant": ("mutant", PACED),
        "paced": ("series", PACED),
    },
    "x86_64": {
        "ring": ("series", AUTO),
        "log": ("series", replace(AUTO, ring=0)),
        "ring-base": ("base", AUTO),
        "log-base": ("base", replace(AUTO, ring=0)),
        # The rings are filled.
        "full": ("series", replace(FAST, working_set=8192)),
        "full-base": ("base", replace(FAST, working_set=8192)),
        "fast-log": ("series", replace(FAST, ring=0)),
        # Each answer takes the main loop longer than on arm64.
        "busy": ("series", replace(FAST, busy=1, working_set=8192, limit=240)),
        "spoiled": ("series", replace(FAST, corrupt=3)),
        "mutant": ("mutant", PACED),
        "paced": ("series", PACED),
    },
}
COMPLETE = [
    pytest.param(arch, name, id=f"{arch}-{name}")
    for arch, commands in COMMANDS.items()
    for name, (label, setting) in commands.items()
    if label != "mutant" and not setting.corrupt
]
each = pytest.mark.parametrize("arch", COMMANDS)
# A guest that writes to 17 MiB again and again, measured for four seconds: 4.25 MiB/s, of which QEMU tells the whole ones.
# The ring is filled several times.
RATE = driver.Setting(ring=1024, vcpus=1, working_set=17408, rate=0, dirty_rate=4000)
RATES = {"bitmap": ("base", replace(RATE, ring=0)), "ring": ("series", RATE), "ring-base": ("base", RATE)}


def _run(arch, commands, name):
    """{name: guest.Outcome} of `commands`, all in one boot."""
    programs = {label: _program(arch, label) for label in {label for label, _ in commands.values()}}
    with progress.single(name, f"{len(commands)} {name} on {arch}", 15 * len(commands)) as note:
        runner = migration.Runner(programs, name=f"check-{name}-{arch}", arch=arch)
        lines = [(name, label, setting) for name, (label, setting) in commands.items()]
        found = dict(zip(commands, runner.run(lines, note)))
        runner.close()
    return found


def _program(arch, label):
    series = catalog.load(SERIES)
    if label == "mutant":
        return build.in_tree(trees.mutant(series, [MUTANT]), arch)
    (point,) = catalog.points(series, label)
    return build.program(series, point.count, arch)


@functools.cache
def _outcomes(arch):
    return _run(arch, COMMANDS[arch], "migrations")


@functools.cache
def _rates():
    """{name: (MiB/s that calc-dirty-rate told, those that the guest wrote to)} of RATES."""
    values = {name: migration.found(outcome) for name, outcome in _run("arm64", RATES, "dirty-rates").items()}
    return {name: (one["dirty_rate"], one["dirty_rate_true"]) for name, one in values.items()}


@pytest.mark.parametrize("arch, name", COMPLETE)
def test_a_migration_completes_and_loses_no_page(arch, name):
    outcome = _outcomes(arch)[name]
    values = migration.found(outcome)
    assert values["completed"] and not driver.complaints(values), outcome.output
    # All of the guest's memory, and pages that were dirtied while it was sent.
    assert values["pages_compared"] >= 64 * 256 and values["work_done"] > 0, outcome.output


@pytest.mark.parametrize(
    "arch, name", [("arm64", "busy"), ("x86_64", "busy"), ("x86_64", "full"), ("x86_64", "full-base")]
)
def test_rings_run_full_also_while_the_main_loop_is_busy(arch, name):
    """The thread that resets the rings has the priority of the main thread, and vCPUs with a full ring wait for both."""
    outcome = _outcomes(arch)[name]
    values = migration.found(outcome)
    assert values.get("trace kvm_dirty_ring_full", 0) > 0, outcome.output
    assert name != "busy" or values["busy_commands"] >= 5, outcome.output


@pytest.mark.parametrize("name", ["ring", "log"])
def test_the_throttle_is_computed_in_few_steps(name):
    # By trial it takes seven and more. The bar is two on a host that is idle.
    outcome = _outcomes("arm64")[name]
    assert 1 <= migration.found(outcome)["throttle_steps"] <= 5, outcome.output


@each
def test_negative_control_pages_that_differ_are_counted(arch):
    outcome = _outcomes(arch)["spoiled"]
    assert migration.found(outcome)["pages_lost"] == 3, outcome.output


@each
def test_negative_control_a_slot_that_is_not_synced_loses_pages(arch):
    outcome = _outcomes(arch)["mutant"]
    assert migration.found(outcome)["pages_lost"] > 0, outcome.output


# A tenth, and what QEMU cuts off.
def _near(rate, wanted):
    return abs(rate - wanted) <= 0.1 * wanted + 1


def test_the_dirty_rate_with_the_ring_is_that_with_the_bitmap():
    # What a guest writes in the time differs with the load of the host.
    assert _near(*_rates()["ring"]) and _near(*_rates()["bitmap"]), _rates()


def test_negative_control_base_counts_a_page_again_with_the_ring():
    told, true = _rates()["ring-base"]
    assert not _near(told, true) and told >= 1.5 * true, _rates()


def test_rings_are_collected_once_in_a_sync_on_x86():
    """Base collects for each address space that is synced: for that of SMM, too.  Each collection begins and ends."""
    of = {name: migration.found(_outcomes("x86_64")[name]) for name in ("ring", "ring-base")}
    rounds = {
        name: values["trace kvm_dirty_ring_flush"] / 2 / values["trace migration_bitmap_sync_start"]
        for name, values in of.items()
    }
    assert rounds["ring"] == 1 and rounds["ring-base"] == 2, rounds
