"""The computed throttle, in a simulation of migrations: its unit tests pass without a build of QEMU, fail with mutants,
and print the tables that are committed."""

from pathlib import Path

import pytest

from kvmseries.base import paths
from kvmseries.source import catalog, trees
from migrate import simulation
from tests import extra

# A line of auto-converge.c, and what it becomes.
MUTANTS = {
    "one of the two samples is enough": ("dirty = MIN(throttle_model", "dirty = MAX(throttle_model"),
    "the slower of the two send rates counts": ("send = MAX(m->send_rate", "send = MIN(m->send_rate"),
    "the first step is not cpu-throttle-initial": ("return in->initial;", "return THROTTLE_PCT_MAX;"),
    "a guest that is slower than the link is throttled at once": ("if (dirty <= send) {", "if (0) {"),
    "a step can be less than the increment": ("return MAX(throttle, throttle_compute", "return (throttle_compute"),
    "it is lowered again and again": (" || m->raised_again", ""),
    "it changes while nothing is sent": ("if (m->raising || stalled)", "if (m->raising || (0 && stalled))"),
    "max-cpu-throttle is ignored": ("MIN(in->max, THROTTLE_PCT_MAX)", "THROTTLE_PCT_MAX"),
    "a sample is not three cycles long": ("SAMPLE_CYCLES 3", "SAMPLE_CYCLES 1"),
    "a step does not wait for a guest that may have paused": ("throttle > in->throttle + in->increment;", "0;"),
    "a step waits with a ring, too": ("return !in->exact && m->sample", "return m->sample"),
    "a step that waited is never dropped": ("    m->held = 0;", ""),
    "the aim is what is just tolerated": ("threshold / 100.0 / 2 *", "threshold / 100.0 *"),
}


@pytest.fixture(scope="module", name="tree")
def _tree():
    series = catalog.load("qemu-10.0")
    return Path(trees.worktree(series, len(series.patches), extra.own_base(series)).path)


def test_its_unit_tests_pass(tree):
    good, output = simulation.make("test", tree, paths.out("simulation"))
    assert good and output.count("\nok ") >= 20, output


def test_it_prints_the_committed_tables(tree):
    good, output = simulation.make("table", tree, paths.out("simulation"))
    assert good, output
    assert simulation.quoted(output) == simulation.quoted(simulation.TABLES.read_text(encoding="utf-8"))
    assert len(simulation.quoted(output)) == 2 * 39


@pytest.mark.parametrize("mutant", MUTANTS)
def test_negative_control_a_mutant_is_found(tree, tmp_path, mutant):
    folder = simulation.mutant(tree, tmp_path, *MUTANTS[mutant])
    good, output = simulation.make("test", folder, tmp_path / "build", "TESTS=test-auto-converge")
    assert not good and "assertion failed" in output, output
