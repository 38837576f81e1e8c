"""patches/debug/planted.yaml agrees with patches and README; what pytest and herd7 say becomes outcomes."""

import shutil

import pytest

from kvmseries.base.errors import Fail
from kvmseries.source import catalog
from kvmseries.verify import controls, litmus
from runner import mutants

CASE = '<testsuites><testsuite><testcase name="x">{}</testcase></testsuite></testsuites>'


def test_each_bug_is_there_with_what_finds_it():
    every = controls.load()
    assert {c.patch for c in every} >= {p.name for p in controls.FOLDER.glob("*planted.patch")}
    assert all(c.mistake and c.by for c in every)
    assert {c.test for c in every if c.test} <= {test.name for test in litmus.tests()}
    assert {c.model for c in every if c.model} <= {path.stem for path in mutants.FOLDER.glob("*.patch")}


@pytest.fixture(name="folder")
def _folder(tmp_path):
    shutil.copytree(controls.FOLDER, tmp_path / "debug")
    return tmp_path / "debug"


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        (
            "v5.10-planted.patch",
            "+\tbug(no_dirty_bit)",
            "+\tbug(another)\\\n+\tbug(no_dirty_bit)",
            "'another', which v5.10-planted.patch",
        ),
        ("planted.yaml", "  no-dirty-bit:", "  dirty-bit:", "do not agree: 'dirty-bit'"),
        ("planted.yaml", "  bit-before-leaf:", "  no-dirty-bit:", "'no-dirty-bit' is there twice"),
        ("planted.yaml", "place: selftest", "place: luck", "place: 'luck' is not one of .'selftest'"),
        ("planted.yaml", "place: selftest", "place: litmus", "with place litmus it needs 'test', and no other"),
        ("planted.yaml", "    model: log-no-bit", "    modle: log-no-bit", "'modle' was unexpected"),
        ("planted.yaml", "v5.10-convoy.patch:", "v5.10-gone.patch:", "there is no v5.10-gone.patch"),
        ("README.md", "| `no-dirty-bit` |", "| `bit-gone` |", "v5.10-planted.patch and README.md do not agree"),
        ("planted.yaml", "    place: selftest\n", "", "no-dirty-bit: 'place' is a required property"),
        ("planted.yaml", "    place: selftest\n", "    place: selftest\n    why: x\n", "needs 'check', and no other"),
        ("planted.yaml", "v5.10-planted.patch:", "7:", "planted.yaml: .*7"),
        ("planted.yaml", "v5.10-planted.patch:", "a: [", "is no YAML"),
    ],
)
def test_what_does_not_agree_is_said(folder, file, old, new, message):
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Fail, match=message):
        controls.load(folder / "planted.yaml")


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
    assert controls.verdict(junit)[0] is found


def test_checks_are_run_once_and_only_if_asked_for(monkeypatch):
    ran = []

    def by_pytest(control):
        ran.append(control.check)
        return controls.Outcome(control, False, "died", 2)

    monkeypatch.setattr(controls, "by_pytest", by_pytest)
    one = controls.Control("p", "one", "m", "stress", "a::b")
    two, last = one._replace(name="two"), one._replace(name="last", check="a::c", long=True)
    none = controls.Control("p", "none", "m", "none", why="by hand")
    series = catalog.load("v5.10")
    assert [o.found for o in controls.judge([one, two, last, none], series, False, ())] == [None] * 4 and not ran
    outcomes = controls.judge([one, two, last, none], series, True, ())
    assert [o.found for o in outcomes] == [False, False, None, None] and ran == ["a::b"]
    assert [o.control.name for o in outcomes if not o.good] == ["one", "two"]
    assert controls.judge([last], series, True, ("last",))[0].found is False
