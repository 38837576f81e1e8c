"""patches/mutants/mutants.yaml agrees with the patches; what pytest and herd7 say becomes outcomes."""

import shutil

import pytest

from kvmseries.base.errors import Fail
from kvmseries.source import catalog, trees
from kvmseries.verify import litmus, mutants
from kvmseries.verify.mutants import Mutant, Outcome

CASE = '<testsuites><testsuite><testcase name="x">{}</testcase></testsuite></testsuites>'
FOLDER = mutants.FILE.parent
# What stands behind the mutants of v5.10; words about a row.
NEXT, BOTH = "v7.3: &newer\n", "what is booted, and that alone, has a mistake and a place"


def test_each_mutant_is_there_with_what_finds_it():
    every = mutants.load()
    assert all(m.scenario or m.by for m in every)
    assert {m.by for m in every if m.place == "litmus"} <= {test.name for test in litmus.tests()}
    assert {(m.series, m.name) for m in every if m.place == "litmus"}
    for series in catalog.names():
        assert {name for path in FOLDER.glob(f"{series}/*mutants.patch") for name in mutants.held(path)} <= {
            m.name for m in every if m.series == series and m.booted
        }


def test_a_port_takes_the_mutants_of_the_series_that_it_is_of_unless_it_has_its_own():
    series, paths_ = catalog.load("v6.12"), {path.stem: path for path in mutants.patches("v6.12")}
    for name, of in (("logging-by-bitmap", "v7.3"), ("mutants", "v6.12")):
        assert trees.on_top(series, name) == paths_[name] == FOLDER / of / f"{name}.patch"
    # 7.3's alone: the table has it not of 6.12.
    assert "ring-initially-set" not in paths_
    found = {one.name: one.path.parent.name for one in mutants.of_series("v6.12") if one.kind}
    assert (found["age-locked-is-idle"], found["age-no-flush"]) == ("v7.3", "v6.12")


def test_the_readmes_name_each_patch_that_is_booted_and_each_instrument():
    for folder in (FOLDER, FOLDER.parent / "instruments"):
        text = (folder / "README.md").read_text(encoding="utf-8")
        rows = "".join(line for line in text.splitlines() if line.startswith("| `"))
        booted = {path for series in catalog.names() for path in mutants.patches(series)} & set(
            folder.glob("*/*.patch")
        )
        assert booted
        for path in booted:
            assert f"`{path.relative_to(folder)}`" in rows


@pytest.fixture(name="folder")
def _folder(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "mutants")
    return tmp_path / "mutants"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("  tlb-no-stage1:", "  tlb-stage1:", "mutant 'tlb-no-stage1' of v5.10: mutants.yaml does not"),
        ("  convoy:", "  convoys:", "mutant 'convoy' of v5.10: mutants.yaml does not have it"),
        ("  age-no-flush: ", "  age-flush: ", "mutant 'age-no-flush' of v5.10: mutants.yaml does not"),
        (NEXT, "  x: {kind: k, model: s}\n" + NEXT, "mutant 'x' of v5.10: there is no v5.10/NAME.patch of it"),
        (NEXT, "  x: {mistake: m, none: w}\n" + NEXT, "mutant 'x' of v5.10: no patch plants it"),
        (NEXT, "  age-stores-w: {}\n" + NEXT, "age-stores-w: it has no place where it must be"),
        ("  bit-before-leaf:", "  no-dirty-bit:", "'no-dirty-bit' is there twice"),
        ("    selftest: ", "    luck: ", "v5.10: no-dirty-bit: 'luck' is not known"),
        ("    selftest: ", "    litmus: x, selftest: ", "two places to boot it: litmus and selftest"),
        ("    stress: *races", "    long: false", f"fault-without-seq: {BOTH}"),
        ("{mistake: the invalidation of an address leaves stage 1 out, ", "{", f"tlb-no-stage1: {BOTH}"),
        ("  age-no-flush: {kind: tlbi, model: age-flush-read", "  age-no-flush: {kind: k, mistake: m, none: w", BOTH),
        ("{kind: error, model: age-read,", "{model: age-read,", "are for a mutant of the model"),
        ("{kind: error, model: age-read, bound: all}", "{kind: error}", "it has no place"),
        ("{kind: order, model: write-harvest,", "{kind: order,", "a mutant of the model needs a scenario"),
        ('none: "harmless', 'litmus: "harmless', "a mutant of the model needs a scenario"),
        ("bound: all", "bound: 300", "bound is one of 1, 2, 3, all"),
        ("model: age-read, bound: all", 'model: ""', "'model' says nothing"),
        ("bound: all", "long: true", "long is for checks"),
        ("bound: all", "long: 3", "long is true"),
        ("v5.10:\n", "v5.11:\n", "v5.11 is no series"),
        ("v5.10:\n", "v5.10: [\n", "is no YAML"),
        ("{kind: error, model: age-read, bound: all}", "1", "it is no mapping"),
    ],
)
def test_a_table_that_is_wrong_is_told(folder, old, new, message):
    path = folder / "mutants.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Fail, match=message):
        mutants.load(path)


def test_a_mutant_of_a_patch_with_several_that_the_table_does_not_have_is_told(folder):
    held = folder / "v5.10/mutants.patch"
    text = held.read_text(encoding="utf-8")
    held.write_text(text.replace("+\tmutant(no_dirty_bit)", "+\tmutant(another)\\\n+\tmutant(no_dirty_bit)"), "utf-8")
    with pytest.raises(Fail, match="mutant 'another' of v5.10: mutants.yaml does not have it as one that is booted"):
        mutants.load(folder / "mutants.yaml")


@pytest.mark.parametrize(
    "junit, found",
    [
        (CASE.format(""), True),
        (CASE.format('<failure message="it&#10;x"/>'), False),
        (CASE.format('<error message=""/>'), False),
        (CASE.format('<skipped message="no herd"/>'), None),
        ("<testsuites/>", False),
    ],
)
def test_what_pytest_says(junit, found):
    assert mutants.verdict(junit)[0] is found


def test_checks_are_run_once_and_only_if_asked_for(monkeypatch):
    ran = []

    def by_pytest(mutant):
        ran.append(mutant.by)
        return Outcome(mutant, False, "died", 2)

    monkeypatch.setattr(mutants, "by_pytest", by_pytest)
    one = Mutant("v5.10", "one", mistake="m", place="stress", by="a::b")
    two, last = one._replace(name="two"), one._replace(name="last", by="a::c", long=True)
    none = Mutant("v5.10", "none", mistake="m", place="none", by="by hand")
    series = catalog.load("v5.10")
    assert [o.found for o in mutants.judge([one, two, last, none], series, False, ())] == [None] * 4 and not ran
    outcomes = mutants.judge([one, two, last, none], series, True, ())
    assert [o.found for o in outcomes] == [False, False, None, None] and ran == ["a::b"]
    assert [o.mutant.name for o in outcomes if not o.good] == ["one", "two"]
    assert mutants.judge([last], series, True, ("last",))[0].found is False
