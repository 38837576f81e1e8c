"""The throttle, computed and by dirty-limit, in a simulation of migrations: its unit tests pass without a build of QEMU,
fail with mutants, and print the tables that are committed."""

import re
from pathlib import Path

import pytest

from kvmseries.base import debian, paths, proc
from kvmseries.conftest import write
from kvmseries.source import catalog, trees
from tests import extra

ROOM = paths.ROOT / "qemu-migration/simulation"
# What it compiles of a tree.
CODE = "migration/auto-converge.c"
LIMIT = "include/system/dirtylimit.h"
FILES = (
    CODE,
    LIMIT,
    "migration/auto-converge.h",
    "include/system/cpu-throttle.h",
    "tests/unit/test-auto-converge.c",
    "tests/unit/test-auto-converge-sim.c",
    "tests/unit/test-dirty-limit.c",
)

# A line of auto-converge.c, and what it becomes.
MUTANTS = {
    "the first of the two samples does not count": ("MAX(m->sample_rate[0], m->sample_rate[1])", "m->sample_rate[0]"),
    "what a period found does not count": ("period = MAX(m->dirty_rate[0], m->dirty_rate[1])", "period = 0"),
    "one sample is enough for a guest that is slower than the link": (
        "MIN(m->sample_rate[0], m->sample_rate[1])",
        "m->sample_rate[0]",
    ),
    "a sample from before a calm period counts": ("m->sample_rate[0] = m->sample_rate[1] = 0;", ""),
    "it samples at the maximum": ("in->throttle >= MIN(in->max, THROTTLE_MAX)", "0"),
    "the slower of the two send rates counts": ("send = MAX(m->send_rate", "send = MIN(m->send_rate"),
    "the first step can be less than cpu-throttle-initial": (": in->initial;", ": 0;"),
    "a guest that is slower than the link is throttled at once": ("if (dirty <= send) {", "if (0) {"),
    "a step can be less than the increment": ("return MAX(throttle, throttle_compute", "return (throttle_compute"),
    "it is lowered again and again": (" || m->raised_again", ""),
    "it changes while nothing is sent": ("if (m->raising || stalled)", "if (m->raising || (0 && stalled))"),
    "max-cpu-throttle is ignored": ("MIN(throttle, MIN(in->max, THROTTLE_MAX))", "MIN(throttle, THROTTLE_MAX)"),
    "a sample is not three cycles long": ("SAMPLE_CYCLES 3", "SAMPLE_CYCLES 1"),
    "the aim is half of what is tolerated": ("threshold / 100.0 / 5 *", "threshold / 100.0 / 2 *"),
}
# The same for dirtylimit.h.
LIMIT_MUTANTS = {
    "the share is that of time, not of CPU time": ("1000 * quota * cpu_ns / 1e9 / pages", "share * quota / rate"),
    "a vCPU above its quota gets a greater share": ("MIN(share, 1000 * quota", "MAX(0, 1000 * quota"),
    "a quiet vCPU gets all of its time at once": ("DIRTYLIMIT_SHARE_RAISE  2", "DIRTYLIMIT_SHARE_RAISE  1000"),
    "it can have no share at all": ("DIRTYLIMIT_SHARE_MIN    1", "DIRTYLIMIT_SHARE_MIN    0"),
}
ALL = [(CODE, "test-auto-converge", *mutant) for mutant in MUTANTS.values()]
ALL += [(LIMIT, "test-dirty-limit", *mutant) for mutant in LIMIT_MUTANTS.values()]


@pytest.fixture(scope="module", name="tree")
def _tree():
    debian.install("qemu")
    series = catalog.load("qemu-10.0")
    return Path(trees.worktree(series, len(series.patches), extra.own_base(series)).path)


def _make(target, tree, folder, *variables):
    """(exit status, output) of `make TARGET` with the sources of `tree`; what it builds goes to `folder`."""
    words = ["make", "--no-print-directory", "-C", str(ROOM), target, f"QEMU={tree}", f"O={folder}", *variables]
    return proc.attempt(words, f"make {target} of the simulation")


def _rows(text):
    """Rows of figures of the tables in `text` that have one in each column but the first."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if all(re.fullmatch(r"[\d.]+|-", cell.strip()) for cell in row.split("|")[2:-1])]


def test_its_unit_tests_pass(tree):
    status, output = _make("test", tree, paths.out("simulation"))
    assert not status and output.count("\nok ") >= 20, output


def test_it_prints_the_committed_tables(tree):
    status, output = _make("table", tree, paths.out("simulation"))
    assert not status, output
    assert _rows(output) == _rows((ROOM / "tables.txt").read_text(encoding="utf-8"))
    assert len(_rows(output)) == 2 * 51 + 20


@pytest.mark.parametrize("code, test, line, instead", ALL, ids=[*MUTANTS, *LIMIT_MUTANTS])
def test_negative_control_a_mutant_is_found(tree, tmp_path, code, test, line, instead):
    texts = {name: (tree / name).read_text(encoding="utf-8") for name in FILES}
    assert texts[code].count(line) == 1
    texts[code] = texts[code].replace(line, instead)
    for name, text in texts.items():
        write(tmp_path / name, text)
    status, output = _make("test", tmp_path, tmp_path / "build", f"TESTS={test}")
    assert status and "assertion failed" in output, output
