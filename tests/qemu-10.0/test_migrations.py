"""Live migrations with QEMU's series, in an emulated host: no page is lost, the throttle is computed, and what
is lost by planted bugs is seen.  calc-dirty-rate counts a page once with the ring, as with the bitmap.

On arm64, and on x86-64 with SVM, where base migrates, too: its q35 has a second address space, and its vCPUs' logs are
write-protected pages as on arm64, as TCG has no PML.

Few and short; many, and compared with base: `scripts/series bench qemu-10.0`, `scripts/series test qemu-10.0 --soak 4`.
"""

from dataclasses import replace

import pytest

from kvmseries.base import progress
from kvmseries.source import catalog, trees
from migrate import build, driver, migration

SERIES = "qemu-10.0"
pytestmark = [pytest.mark.boot, pytest.mark.slow]
# The comparison of both sides must find them; how: patches/mutants/README.md.
PLANTED = "slot-not-synced"
# A guest that writes as fast as it can, and a migration that ends while it does.
FAST = driver.Setting(
    ring=1024, vcpus=2, working_set=2048, rate=0, bandwidth=30000000, downtime=1000, auto_converge=0, limit=60
)
# A guest that does not come back to a page before it was sent: what it writes before it stops is clean by then.
PACED = replace(FAST, rate=2000, working_set=8192)
COMMANDS = [
    # Auto-converge, as bench has it.
    ("ring", "series", driver.Setting(ring=1024, vcpus=2, working_set=2048, limit=60)),
    ("log", "series", driver.Setting(ring=0, vcpus=1, working_set=2048, limit=60)),
    ("fast", "series", FAST),
    # The rings are filled.
    ("busy", "series", replace(FAST, busy=1, working_set=8192)),
    ("spoiled", "series", replace(FAST, corrupt=3)),
    ("planted", "planted", PACED),
    ("paced", "series", PACED),
]
# On x86-64.
X86 = [
    ("ring", "series", driver.Setting(ring=1024, vcpus=2, working_set=2048, limit=60)),
    ("log", "series", driver.Setting(ring=0, vcpus=2, working_set=2048, limit=60)),
    ("ring-base", "base", driver.Setting(ring=1024, vcpus=2, working_set=2048, limit=60)),
    ("log-base", "base", driver.Setting(ring=0, vcpus=2, working_set=2048, limit=60)),
    # The rings are filled.
    ("full", "series", replace(FAST, working_set=8192)),
    ("full-base", "base", replace(FAST, working_set=8192)),
    ("fast-log", "series", replace(FAST, ring=0)),
    # Each answer takes the main loop longer than on arm64.
    ("busy", "series", replace(FAST, busy=1, working_set=8192, limit=240)),
    ("spoiled", "series", replace(FAST, corrupt=3)),
    ("planted", "planted", PACED),
    ("paced", "series", PACED),
]
# A guest that writes to 17 MiB again and again, measured for four seconds: 4.25 MiB/s, of which QEMU tells the whole ones.
# The ring is filled several times.
RATE = driver.Setting(ring=1024, vcpus=1, working_set=17408, rate=0, dirty_rate=4000)
RATES = [("bitmap", "base", replace(RATE, ring=0)), ("ring", "series", RATE), ("ring-base", "base", RATE)]


def _run(commands, what, name, arch=migration.ARCH, **programs):
    """{name: guest.Outcome} of `commands`, all in one boot."""
    with progress.single(name, f"{len(commands)} {what}", 15 * len(commands)) as note:
        runner = migration.Runner(programs, name=f"check-{name}", arch=arch)
        found = dict(zip([name for name, _, _ in commands], runner.run(commands, note)))
        runner.close()
    return found


def _program(label, arch=migration.ARCH):
    series = catalog.load(SERIES)
    (point,) = catalog.points(series, label)
    return build.program(series, point.count, arch)


def _planted(arch):
    return build.in_tree(trees.mutant(catalog.load(SERIES), [PLANTED]), arch)


@pytest.fixture(scope="module", name="outcomes")
def _outcomes():
    planted = _planted(migration.ARCH)
    return _run(COMMANDS, "live migrations", "migrations", series=_program("series"), planted=planted)


@pytest.fixture(scope="module", name="x86")
def _x86():
    arch = "x86_64"
    programs = {"base": _program("base", arch), "series": _program("series", arch), "planted": _planted(arch)}
    return _run(X86, "live migrations on x86-64", "migrations-x86", arch, **programs)


@pytest.fixture(scope="module", name="rates")
def _rates():
    """{name: (MiB/s that calc-dirty-rate told, those that the guest wrote to)} of RATES."""
    found = _run(RATES, "measurements of a dirty rate", "rates", base=_program("base"), series=_program("series"))
    values = {name: migration.found(outcome) for name, outcome in found.items()}
    return {name: (one["dirty_rate"], one["dirty_rate_true"]) for name, one in values.items()}


def _completed(outcome):
    """A migration that has completed, and lost nothing."""
    values = migration.found(outcome)
    assert values["completed"] and not driver.complaints(values), outcome.output
    # All of the guest's memory, and pages that were dirtied while it was sent.
    assert values["pages_compared"] >= 64 * 256 and values["work_done"] > 0, outcome.output


@pytest.mark.parametrize("name", ["ring", "log", "fast", "busy", "paced"])
def test_a_migration_completes_and_loses_no_page(outcomes, name):
    _completed(outcomes[name])


def test_the_main_loop_was_busy(outcomes):
    """The thread that resets the rings has the priority of the main thread, and vCPUs with a full ring wait for both."""
    values = migration.found(outcomes["busy"])
    assert values["busy_commands"] >= 5 and values.get("trace kvm_dirty_ring_full", 0) > 0, outcomes["busy"].output


@pytest.mark.parametrize("name", ["ring", "log"])
def test_the_throttle_is_computed_in_few_steps(outcomes, name):
    # By trial it takes seven and more. The bar is two on a host that is idle.
    assert 1 <= migration.found(outcomes[name])["throttle_steps"] <= 5, outcomes[name].output


def test_negative_control_pages_that_differ_are_counted(outcomes):
    assert migration.found(outcomes["spoiled"])["pages_lost"] == 3, outcomes["spoiled"].output


def test_negative_control_a_slot_that_is_not_synced_loses_pages(outcomes):
    assert migration.found(outcomes["planted"])["pages_lost"] > 0, outcomes["planted"].output


# A tenth, and what QEMU cuts off.
def _near(rate, wanted):
    return abs(rate - wanted) <= 0.1 * wanted + 1


def test_the_dirty_rate_with_the_ring_is_that_with_the_bitmap(rates):
    # What a guest writes in the time differs with the load of the host.
    told, true = rates["ring"]
    assert _near(told, true) and _near(*rates["bitmap"]), rates


def test_negative_control_base_counts_a_page_again_with_the_ring(rates):
    told, true = rates["ring-base"]
    assert not _near(told, true) and told >= 1.5 * true, rates


@pytest.mark.parametrize("name", [name for name, label, setting in X86 if label != "planted" and not setting.corrupt])
def test_a_migration_on_x86_completes_and_loses_no_page(x86, name):
    _completed(x86[name])


@pytest.mark.parametrize("name", ["full", "full-base", "busy"])
def test_rings_run_full_on_x86(x86, name):
    values = migration.found(x86[name])
    assert values.get("trace kvm_dirty_ring_full", 0) > 0, x86[name].output
    assert values.get("busy_commands", 5) >= 5, x86[name].output


def test_rings_are_collected_once_in_a_sync_on_x86(x86):
    """Base collects for each address space that is synced: for that of SMM, too.  Each collection begins and ends."""
    of = {name: migration.found(x86[name]) for name in ("ring", "ring-base")}
    rounds = {
        name: values["trace kvm_dirty_ring_flush"] / 2 / values["trace migration_bitmap_sync_start"]
        for name, values in of.items()
    }
    assert rounds["ring"] == 1 and rounds["ring-base"] == 2, rounds


def test_the_count_with_the_log_is_of_what_the_guest_wrote_on_x86(x86):
    """With a ring it is higher, see qemu-migration/throttle.md."""
    values = migration.found(x86["log"])
    assert values["dirty_counted"] == pytest.approx(values["dirty_true"], rel=0.1), x86["log"].output


def test_negative_control_pages_that_differ_are_counted_on_x86(x86):
    assert migration.found(x86["spoiled"])["pages_lost"] == 3, x86["spoiled"].output


def test_negative_control_a_slot_that_is_not_synced_loses_pages_on_x86(x86):
    assert migration.found(x86["planted"])["pages_lost"] > 0, x86["planted"].output
