"""The page-table code under the model checker (model/README.md): all scenarios hold, each mutant is found, and the engine
sees of relaxed memory what it must.  Needs gcc and cargo: without,
it is skipped, and fails in CI."""

import re

import pytest

from checks import extra
from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import lacking
from kvmseries.source import catalog, trees
from runner import build, coverage, mutants, prove, ROOM, runs, source

TREE = paths.own_tree()
SERIES = "v5.10"
pytestmark = pytest.mark.reads(SERIES, "model")
SCHEDULES = 1000
MILLION = 1_000_000
# Mistakes that lose a write, keep a translation or free a table in use, and that few other checks find.
MUST_DIE = (
    "wrprotect-gives-up",
    "bit-before-leaf",
    "log-no-barrier",
    "log-get-no-flush",
    "undo-no-tlbi",
    "unmap-frees-full-table",
    "ksm-protect-not-called",
    "change-same-page-ignored",
)


@pytest.fixture(scope="module", name="able")
def _able():
    """The checker can be built here."""
    try:
        build.need()
    except Fail as error:
        lacking(error)


@pytest.fixture(scope="module", name="tree")
def _tree(able):  # pylint: disable=unused-argument
    series = catalog.load(SERIES)
    return trees.worktree(series, len(series.patches), TREE).path


@pytest.fixture(scope="module", name="model")
def _model(tree):
    return runs.ready(tree)


def _failures(results, series, count):
    """What of `results` does not hold, although it must with the first `count` patches."""
    later = prove.later(series, count)
    return [result.line + "\n" + result.trace for result in results if not result.good and result.name not in later]


@pytest.mark.parametrize("arch", source.of_series(SERIES))
def test_nothing_that_is_compiled_is_missing(tree, arch):
    assert source.absent(tree, source.ARCHES[arch]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "milestone, arch",
    [
        ("20", "arm64"),
        ("fast-path", "arm64"),
        ("parallel", "arm64"),
        ("bounded", "arm64"),
        ("lockless", "arm64"),
        ("aging", "arm64"),
        ("aging-x86", "arm64"),
        ("aging-x86", "x86"),
    ],
)
def test_every_scenario_holds_at_a_milestone(milestone, arch):
    series = catalog.load(SERIES)
    tree = trees.worktree(series, series.upto(milestone), TREE).path
    program, libraries = runs.ready(tree, (arch,))
    large = prove.large(series, series.upto(milestone))
    results = prove.loom(program, libraries, (), None, print, large)
    assert len({r.name for r in results} - prove.later(series, series.upto(milestone))) > 60
    assert _failures(results, series, series.upto(milestone)) == []


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


def test_a_cpu_on_which_a_local_tlbi_does_nothing(tree, model):
    """Forward progress does not rest on it; where the second attempt is local, too, a mutant shows that the vCPU is stuck."""
    cpu = mutants.plant(tree, ROOM / "cpus/no-local-tlbi.patch", paths.out("model", "mutants", "no-local-tlbi"))
    assert runs.run(model[0], build.library(cpu, "arm64"), "relax-relax", "loom", "bound=2").verdict == "holds"
    stuck = mutants.judge(mutants.named("relax-no-second-attempt"), tree, model[0])
    assert stuck.result.invariant == "livelock", stuck.line


def test_the_same_seed_gives_the_same_trace(tree, model):
    path = mutants.named("no-dirty-bit").path
    library = build.library(mutants.plant(tree, path, paths.out("model", "mutants", "replay")), "arm64")
    first, second = (runs.run(model[0], library, "log-long", "random", "limit=50", "seed=7") for _ in range(2))
    assert first.verdict == "found" and first.trace and first.trace == second.trace
    assert "stage2_attr_walker() pgtable.c:" in first.trace


# Of linux 7.3: what takes seconds; and mistakes of each kind. The rest is slow.
QUICK = (
    "write-harvest",
    "write-clear",
    "write-harvest-remembered",
    "log-on",
    "first-write-harvest",
    "write-write",
    "write-harvest-last",
    "relax-relax",
    "map-same-map",
    "split-read",
    "collapse-read-other",
    "collapse-age",
    "age-read",
    "age-flush-read",
    "unmap-logged",
    "unmap-one-of-two",
    "unmap-age",
    "unmap-split",
    "harvest-age",
    "ring-write-harvest",
    "ring-write-harvest-remembered",
    "ring-write-harvest-age",
    "logged-read-write-unmap",
    "access-harvest",
    "access-collapse",
    "split-age-other",
    "split-keeps",
    "collapse-after-log",
)
QUICK_MUTANTS = (
    "get-no-flush",
    "ring-no-flush",
    "undo-clean",
    "collapse-frees-at-once",
    "wrprotect-gives-up",
    "attr-stores",
    "locked-not-checked",
    "undo-log-first",
    "undo-bit-first-ring",
    "age-stores-w",
)


@pytest.fixture(scope="module", name="newer")
def _newer(able):  # pylint: disable=unused-argument
    series = catalog.load("v7.3")
    found = trees.worktree(series, len(series.patches), extra.own_base(series)).path
    return series, found, *runs.ready(found, source.of_series("v7.3"))


@pytest.mark.reads("v7.3", "model")
def test_what_the_engine_sees_with_the_library_of_7_3(newer):
    assert prove.calibration(newer[2], newer[3]["arm64-v7.3"]) == []


@pytest.mark.reads("v7.3", "model")
def test_scenarios_of_7_3(newer):
    series, _, program, libraries = newer
    results = prove.loom(program, libraries, QUICK, None, print)
    assert len(results) == len(QUICK) and _failures(results, series, len(series.patches)) == []


@pytest.mark.reads("v7.3", "model")
def test_mutants_of_7_3(newer):
    series, tree, program, _ = newer
    every = mutants.every(source.of_series(series.name))
    for mutant in every:  # Those that are not run here apply at least.
        mutants.plant(tree, mutant.path, paths.out("model", "mutants", "applies"), series.name)
    outcomes = mutants.judge_all([m for m in every if m.name in QUICK_MUTANTS], tree, program)
    assert len(outcomes) == len(QUICK_MUTANTS)
    assert [outcome.line for outcome in outcomes if not outcome.killed] == []


@pytest.mark.slow
@pytest.mark.reads("v7.3", "model")
def test_every_scenario_of_7_3(newer):
    series, _, program, libraries = newer
    results = prove.loom(program, libraries, (), None, print)
    results += prove.shuttle(program, libraries, (), "random", SCHEDULES, 1, print)
    results += prove.shuttle(program, libraries, (), "pct", SCHEDULES, 1, print)
    assert len(results) > 80 and _failures(results, series, len(series.patches)) == []


@pytest.mark.slow
@pytest.mark.reads("v7.3", "model")
def test_every_mutant_of_7_3(newer):
    series, tree, program, _ = newer
    outcomes = mutants.judge_all(mutants.every(source.of_series(series.name)), tree, program)
    assert [outcome.line for outcome in outcomes if not outcome.good] == []


@pytest.mark.slow
@pytest.mark.reads("v7.3", "model")
@pytest.mark.parametrize("milestone", ["bounded", "tables", "aging"])
def test_scenarios_of_a_milestone_of_7_3(newer, milestone):
    series, _, program, _ = newer
    tree = trees.worktree(series, series.upto(milestone), extra.own_base(series)).path
    results = prove.loom(program, runs.ready(tree, source.of_series(series.name))[1], (), None, print)
    assert len(results) > 70 and _failures(results, series, series.upto(milestone)) == []


@pytest.mark.reads(SERIES, "model", "texts")
def test_the_readme_names_each_scenario_and_invariant(model):
    text = (ROOM / "README.md").read_text(encoding="utf-8")
    named = [s.name for s in runs.scenarios(model[0]) if s.kind != "litmus"]
    assert [name for name in named if f"`{name}`" not in text] == []
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOM / "src").glob("*.rs"))
    invariants = set(re.findall(r'fail\("([\w-]+)"', source)) - {"seen"}
    assert [name for name in sorted(invariants) if f"`{name}`" not in text] == []


@pytest.mark.slow
@pytest.mark.reads(SERIES, "v7.3", "model", "texts")
@pytest.mark.parametrize("arch", source.ARCHES)
def test_the_readme_says_how_much_is_covered(tree, newer, model, arch):
    """By 2 points: compilers differ in what they count as a line."""
    applied = tree if source.ARCHES[arch].series == SERIES else newer[1]
    found = coverage.percent(coverage.measure(applied, model[0], arch))
    row = re.search(rf"^\| `{arch}` \| (\d+) % \| (\d+) % \|$", (ROOM / "README.md").read_text(encoding="utf-8"), re.M)
    assert row, f"model/README.md has no row of {arch}"
    assert max(abs(int(row[i + 1]) - found[i]) for i in (0, 1)) <= 2, (
        f"{arch}: {found[0]:.0f} % of lines, {found[1]:.0f} % of branches"
    )


@pytest.mark.reads(SERIES, "model")
def test_scenarios_are_found_in_the_source_as_the_checker_has_them(model):
    wanted = {s.name: s.arches for s in runs.scenarios(model[0]) if s.kind != "litmus"}
    assert runs.declared() == wanted


@pytest.mark.reads(SERIES, "model", "texts")
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
