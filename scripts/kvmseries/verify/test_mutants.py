"""patches/mutants/mutants.yaml agrees with the patches; what pytest and herd7 say becomes outcomes."""

import shutil

import pytest

from kvmseries.base.errors import Fail
from kvmseries.source import catalog
from kvmseries.verify import litmus, mutants
from kvmseries.verify.mutants import Mutant, Outcome

CASE = '<testsuites><testsuite><testcase name="x">{}</testcase></testsuite></testsuites>'
FOLDER = mutants.FILE.parent


def test_each_mutant_is_there_with_what_finds_it():
    every = mutants.load()
    assert all(m.scenario or m.by for m in every)
    assert {m.by for m in every if m.place == "litmus"} <= {test.name for test in litmus.tests()}
    assert {(m.series, m.name) for m in every if m.place == "litmus"}
    for series in catalog.names():
        assert {name for path in FOLDER.glob(f"{series}/*mutants.patch") for name in mutants.held(path)} <= {
            m.name for m in every if m.series == series and m.booted
        }


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
    "file, old, new, message",
    [
        (
            "v5.10/mutants.patch",
            "+\tmutant(no_dirty_bit)",
            "+\tmutant(another)\\\n+\tmutant(no_dirty_bit)",
            "mutant 'another' of v5.10: mutants.yaml does not have it as one that is booted",
        ),
        ("mutants.yaml", "  tlb-no-stage1:", "  tlb-stage1:", "mutant 'tlb-no-stage1' of v5.10: mutants.yaml does not"),
        ("mutants.yaml", "  convoy:", "  convoys:", "mutant 'convoy' of v5.10: mutants.yaml does not have it"),
        ("mutants.yaml", "  age-no-flush: ", "  age-flush: ", "mutant 'age-no-flush' of v5.10: mutants.yaml does not"),
        ("mutants.yaml", "v7.3:\n", "  x: {kind: k, model: s}\nv7.3:\n", "mutant 'x' of v5.10: there is no v5.10/NAME"),
        ("mutants.yaml", "v7.3:\n", "  x: {mistake: m, none: w}\nv7.3:\n", "mutant 'x' of v5.10: no patch plants it"),
        ("mutants.yaml", "v7.3:\n", "  age-stores-w: {}\nv7.3:\n", "age-stores-w: it has no place where it must be"),
        ("mutants.yaml", "  bit-before-leaf:", "  no-dirty-bit:", "'no-dirty-bit' is there twice"),
        ("mutants.yaml", "    selftest: ", "    luck: ", "v5.10: no-dirty-bit: 'luck' is not known"),
        (
            "mutants.yaml",
            "    selftest: ",
            "    litmus: x\n    selftest: ",
            "two places to boot it: litmus and selftest",
        ),
        ("mutants.yaml", "{kind: error, model: age-read,", "{model: age-read,", "are for a mutant of the model"),
        ("mutants.yaml", "{kind: error, model: age-read, bound: all}", "{kind: error}", "it has no place"),
        ("mutants.yaml", "    model: write-harvest\n", "", "a mutant of the model needs a scenario"),
        ("mutants.yaml", '    none: "harmless', '    litmus: "harmless', "a mutant of the model needs a scenario"),
        ("mutants.yaml", "bound: all", "bound: 300", "bound is one of 1, 2, 3, all"),
        ("mutants.yaml", "model: age-read, bound: all", 'model: ""', "'model' says nothing"),
        ("mutants.yaml", "bound: all", "long: true", "long is for checks"),
        ("mutants.yaml", "bound: all", "long: 3", "long is true"),
        ("mutants.yaml", "v5.10:\n", "v5.11:\n", "v5.11 is no series"),
        ("mutants.yaml", "v5.10:\n", "v5.10: [\n", "is no YAML"),
        ("mutants.yaml", "{kind: error, model: age-read, bound: all}", "1", "it is no mapping"),
    ],
)
def test_what_does_not_agree_is_said(folder, file, old, new, message):
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Fail, match=message):
        mutants.load(folder / "mutants.yaml")


@pytest.mark.parametrize("place", ["mistake", "selftest"])
def test_a_mutant_that_is_booted_needs_a_mistake_and_a_place(folder, place):
    path = folder / "mutants.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = lines.index("  no-dirty-bit:\n")
    del lines[next(i for i in range(at, at + 6) if lines[i].startswith(f"    {place}:"))]
    path.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(Fail, match="no-dirty-bit: what is booted, and that alone, needs both a mistake and a place"):
        mutants.load(path)


def test_a_model_mutant_without_its_patch_and_a_patch_without_its_mutant(folder):
    (folder / "v7.3/age-no-flush.patch").rename(folder / "v7.3/age-flush.patch")
    with pytest.raises(Fail, match="mutant 'age-flush' of v7.3: mutants.yaml does not have it"):
        mutants.load(folder / "mutants.yaml")
    (folder / "v7.3/age-flush.patch").unlink()
    with pytest.raises(Fail, match="mutant 'age-no-flush' of v7.3: there is no v7.3/NAME.patch of it"):
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
