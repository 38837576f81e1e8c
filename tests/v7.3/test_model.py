"""The page-table code of 7.3 under the model checker (model/README.md): scenarios hold, and mutants are found."""

from pathlib import Path

import pytest

from kvmseries.base import paths
from runner import mutants, prove, source
from tests import modelchecks

SERIES = Path(__file__).parent.name
SCHEDULES = 1000

# What takes seconds; and mistakes of each kind. The rest is slow.
QUICK = tuple(
    """
    write-harvest write-clear write-harvest-remembered log-on first-write-harvest write-write write-harvest-last
    relax-relax map-same-map split-read collapse-read-other collapse-age age-read age-flush-read unmap-logged
    unmap-map-second unmap-block-map unmap-block-map-before unmap-two unmap-one-of-two unmap-age unmap-split harvest-age ring-write-harvest
    ring-write-harvest-remembered ring-write-harvest-age logged-read-write-unmap access-harvest access-collapse
    split-age-other split-keeps unmap-table-age collapse-after-log
""".split()
)
QUICK_MUTANTS = tuple(
    """
    get-no-flush ring-no-flush undo-clean collapse-frees-at-once wrprotect-gives-up attr-stores locked-not-checked
    undo-log-first undo-bit-first-ring age-stores-w range-no-count split-not-told split-fills-late
""".split()
)


@pytest.fixture(scope="module", name="newer")
def _newer():
    series, tree = modelchecks.patched(SERIES)
    return series, tree, *modelchecks.ready(SERIES, tree)


def test_what_the_engine_sees(newer):
    assert prove.calibration(newer[2], newer[3][f"arm64-{SERIES}"]) == []


def test_scenarios(newer):
    series, _, program, libraries = newer
    results = prove.loom(program, libraries, QUICK, None, print)
    assert len(results) == len(QUICK) and modelchecks.failures(results, series, len(series.patches)) == []
    # A range of two leaves is unmapped in parts, as STAGE2_BUDGET is for one.
    assert any("unmapped_in_parts" in result.arms for result in results if result.name == "unmap-two")


def test_mutants(newer):
    series, tree, program, _ = newer
    every = mutants.every(source.of_series(SERIES))
    folder = paths.out("model", "mutants", "applies")
    for mutant in every:  # Those that are not run here apply at least.
        mutants.planted(tree, mutant.path, folder, series.name)
    outcomes = mutants.judge_all([m for m in every if m.name in QUICK_MUTANTS], tree, program)
    assert len(outcomes) == len(QUICK_MUTANTS)
    assert [outcome.line for outcome in outcomes if not outcome.killed] == []


@pytest.mark.slow
def test_every_scenario(newer):
    series, _, program, libraries = newer
    results = prove.loom(program, libraries, (), None, print)
    results += prove.shuttle(program, libraries, (), "random", SCHEDULES, 1, print)
    results += prove.shuttle(program, libraries, (), "pct", SCHEDULES, 1, print)
    assert len(results) > 80 and modelchecks.failures(results, series, len(series.patches)) == []


@pytest.mark.slow
def test_every_mutant(newer):
    series, tree, program, _ = newer
    outcomes = mutants.judge_all(mutants.every(source.of_series(SERIES)), tree, program)
    assert [outcome.line for outcome in outcomes if not outcome.good] == []


@pytest.mark.slow
@pytest.mark.parametrize("milestone", ["bounded", "tables", "aging"])
def test_scenarios_of_a_milestone(milestone):
    series, tree = modelchecks.patched(SERIES, milestone)
    results = prove.loom(*modelchecks.ready(SERIES, tree), (), None, print)
    assert len(results) > 70 and modelchecks.failures(results, series, series.upto(milestone)) == []


@pytest.mark.slow
@pytest.mark.parametrize("arch", source.of_series(SERIES))
def test_the_readme_says_how_much_is_covered(newer, arch):
    modelchecks.as_covered_as_the_readme_says(newer[1], newer[2], arch)
