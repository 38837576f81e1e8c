"""The page-table code of 5.10 under the model checker (model/README.md): all scenarios hold, each mutant is found, and the engine sees of relaxed memory what it must.  Needs gcc and cargo: without,
it is skipped, and fails in CI."""

import re

import pytest

from kvmseries.base import paths
from runner import build, mutants, prove, ROOM, runs, source
from tests import modelchecks

SERIES = "v5.10"
SCHEDULES = 1000
MILLION = 1_000_000
# The first is a number of patches.
MILESTONES = ("21", "fast-path", "parallel", "bounded", "lockless", "aging", "aging-x86")
# Mistakes that lose a write, keep a translation or free a table in use, and that few other checks find.
MUST_DIE = tuple(
    """
    wrprotect-gives-up bit-before-leaf log-no-barrier log-get-no-flush undo-no-tlbi unmap-frees-full-table
    ksm-protect-not-called change-same-page-ignored
""".split()
)


@pytest.fixture(scope="module", name="tree")
def _tree():
    return modelchecks.patched(SERIES)[1]


@pytest.fixture(scope="module", name="model")
def _model(tree):
    return modelchecks.ready(SERIES, tree)


@pytest.mark.parametrize("arch", source.of_series(SERIES))
def test_nothing_that_is_compiled_is_missing(tree, arch):
    assert source.absent(tree, source.ARCHES[arch]) == []


@pytest.mark.slow
@pytest.mark.parametrize("milestone, arch", [*((name, "arm64") for name in MILESTONES), ("aging-x86", "x86")])
def test_every_scenario_holds_at_a_milestone(milestone, arch):
    series, tree = modelchecks.patched(SERIES, milestone)
    program, libraries = runs.ready(tree, (arch,))
    large = prove.large(series, series.upto(milestone))
    results = prove.loom(program, libraries, (), None, print, large)
    assert len({r.name for r in results} - prove.later(series, series.upto(milestone))) > 60
    assert modelchecks.failures(results, series, series.upto(milestone)) == []


def test_what_the_engine_sees_of_relaxed_memory(model):
    assert prove.calibration(model[0], model[1]["arm64"]) == []


def test_every_scenario_holds_and_meets_its_race(model):
    results = prove.loom(*model, (), None, print)
    assert len(results) > 150
    assert [result.line + "\n" + result.trace for result in results if not result.good] == []


@pytest.mark.parametrize("engine", ["random", "pct"])
def test_long_runs_hold(model, engine):
    results = prove.shuttle(*model, (), engine, SCHEDULES, 1, print)
    assert results and [result.line + "\n" + result.trace for result in results if not result.good] == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["random", "pct"])
def test_a_million_schedules(model, engine):
    results = prove.shuttle(*model, (), engine, MILLION // 16, 2, print)
    assert sum(result.executions for result in results) >= MILLION // 2
    assert [result.line + "\n" + result.trace for result in results if not result.good] == []


def test_mutants_of_each_kind_are_found(tree, model):
    """One of each kind and architecture, and MUST_DIE. The others are slow."""
    found = mutants.every()
    kinds = {(mutants.arch(mutant), mutant.kind): mutant for mutant in reversed(found) if not mutant.survives}
    chosen = [mutant for mutant in found if mutant.name in MUST_DIE or mutant in kinds.values()]
    assert set(MUST_DIE) <= {mutant.name for mutant in chosen} and len(chosen) >= 30
    outcomes = mutants.judge_all(chosen, tree, model[0])
    assert [outcome.line for outcome in outcomes if not outcome.killed] == []


@pytest.mark.slow
def test_every_mutant_is_found(tree, model):
    outcomes = mutants.judge_all(mutants.every(), tree, model[0])
    print(prove.summary(outcomes))
    assert [outcome.line for outcome in outcomes if not outcome.good] == []


def _mutant(name):
    return next(mutant for mutant in mutants.every() if mutant.name == name)


def test_a_cpu_on_which_a_local_tlbi_does_nothing(tree, model):
    """Forward progress does not rest on it; where the second attempt is local, too, a mutant shows that the vCPU is stuck."""
    cpu = mutants.plant(tree, ROOM / "cpus/no-local-tlbi.patch", paths.out("model", "mutants", "no-local-tlbi"))
    assert runs.run(model[0], build.library(cpu, "arm64"), "relax-relax", "loom", "bound=2").verdict == "holds"
    stuck = mutants.judge(_mutant("relax-no-second-attempt"), tree, model[0])
    assert stuck.result.invariant == "livelock", stuck.line


def test_a_cpu_that_sets_the_access_flag_in_what_was_cleared(tree, model):
    """AmpereOne. The mutant late-access-flag is the same CPU, and takes what is not zero for locked."""
    cpu = mutants.plant(tree, ROOM / "cpus/late-access-flag.patch", paths.out("model", "mutants", "late-af"))
    library = build.library(cpu, "arm64")
    assert {runs.run(model[0], library, name, "loom", "bound=2").verdict for name in ("unmap-read", "unmap-map")} == {
        "holds"
    }


def test_the_same_seed_gives_the_same_trace(tree, model):
    path = _mutant("no-dirty-bit").path
    library = build.library(mutants.plant(tree, path, paths.out("model", "mutants", "replay")), "arm64")
    first, second = (runs.run(model[0], library, "log-long", "random", "limit=50", "seed=7") for _ in range(2))
    assert first.verdict == "found" and first.trace and first.trace == second.trace
    assert "stage2_attr_walker() pgtable.c:" in first.trace


def test_the_readme_names_each_scenario_and_invariant(model):
    text = (ROOM / "README.md").read_text(encoding="utf-8")
    named = [s.name for s in runs.scenarios(model[0]) if s.kind != "litmus"]
    assert [name for name in named if f"`{name}`" not in text] == []
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOM / "src").glob("*.rs"))
    invariants = set(re.findall(r'fail\("([\w-]+)"', source)) - {"seen"}
    assert [name for name in sorted(invariants) if f"`{name}`" not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("arch", source.of_series(SERIES))
def test_the_readme_says_how_much_is_covered(tree, model, arch):
    modelchecks.as_covered_as_the_readme_says(tree, model[0], arch)


def test_scenarios_are_found_in_the_source_as_the_checker_has_them(model):
    wanted = {s.name: s.arches for s in runs.scenarios(model[0]) if s.kind != "litmus"}
    assert runs.declared() == wanted


def test_what_the_readme_says_of_scenarios(model):
    """Rows of its tables of claims that name an invariant name scenarios that exist, and the invariant does."""
    known = {s.name for s in runs.scenarios(model[0])}
    text = (ROOM / "README.md").read_text(encoding="utf-8")
    invariants = set(re.findall(r"`([\w-]+)`", text.partition("## Invariants")[2].partition("## Claims")[0]))
    wrong, rows = [], 0
    for line in text.partition("## Claims")[2].splitlines():
        cells = line.split("|")
        if len(cells) != 5 or not set(re.findall(r"`([\w-]+)`", cells[2])) & invariants:
            continue
        rows += 1
        wrong += [n for n in re.findall(r"`([\w-]+)`", cells[2]) if n not in invariants]
        wrong += [n for n in re.findall(r"`([\w]+-[\w-]+)`", cells[3]) if n not in known | {"fast-path"}]
    assert rows > 40 and wrong == []
