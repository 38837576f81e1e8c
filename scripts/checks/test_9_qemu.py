"""Live migrations with QEMU's series, in an emulated host: no page is lost, the throttle is computed, and what
is lost by planted bugs is seen.

Few and short; many, and compared with base: `scripts/series bench qemu-10.0`, `scripts/series soak qemu-10.0`.
"""

from dataclasses import replace

import pytest

from kvmseries.base import progress
from kvmseries.qemu import build, driver, migration
from kvmseries.source import catalog, trees

SERIES = "qemu-10.0"
pytestmark = pytest.mark.reads(SERIES, "qemu-migration")
# The comparison of both sides must find them; how: patches/debug/README.md.
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
    ("spoiled", "series", replace(FAST, corrupt=3)),
    ("planted", "planted", PACED),
    ("paced", "series", PACED),
]


@pytest.fixture(scope="module", name="outcomes")
def _outcomes():
    """{name: guest.Outcome} of COMMANDS, all in one boot."""
    series = catalog.load(SERIES)
    (whole,) = catalog.points(series, "series")
    programs = {
        "series": build.program(series, whole.count, migration.ARCH),
        "planted": build.in_tree(trees.planted(series, [PLANTED]), migration.ARCH),
    }
    with progress.single("migrations", f"{len(COMMANDS)} live migrations", 90) as note:
        runner = migration.Runner(programs, name="check-migrations")
        found = dict(zip([name for name, _, _ in COMMANDS], runner.run(COMMANDS, note)))
        runner.close()
    return found


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ring", "log", "fast", "paced"])
def test_a_migration_completes_and_loses_no_page(outcomes, name):
    values = migration.found(outcomes[name])
    assert values["completed"] and not driver.complaints(values), outcomes[name].output
    # All of the guest's memory, and pages that were dirtied while it was sent.
    assert values["pages_compared"] >= 64 * 256 and values["work_done"] > 0, outcomes[name].output


@pytest.mark.boot
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ring", "log"])
def test_the_throttle_is_computed_in_few_steps(outcomes, name):
    # By trial it takes seven and more. The bar is two on a host that is idle.
    assert 1 <= migration.found(outcomes[name])["throttle_steps"] <= 5, outcomes[name].output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_pages_that_differ_are_counted(outcomes):
    assert migration.found(outcomes["spoiled"])["pages_lost"] == 3, outcomes["spoiled"].output


@pytest.mark.boot
@pytest.mark.slow
def test_negative_control_a_slot_that_is_not_synced_loses_pages(outcomes):
    assert migration.found(outcomes["planted"])["pages_lost"] > 0, outcomes["planted"].output
