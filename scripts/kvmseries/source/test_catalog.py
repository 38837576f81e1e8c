import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import milestones, SUBJECTS, write
from kvmseries.source import catalog


@pytest.mark.parametrize(
    "text, count",
    [
        *(("0", 0), ("2", 2), ("3", 3), ("first", 1), ("rwlock", 2)),
        *((text, f"--upto {text} is beyond the end: mini has 3 patches") for text in ("4", "99")),
        *((text, f"no milestone '{text}'.*first, rwlock.*0 to 3") for text in ("-1", "", "1.5", "Rwlock", "nonsense")),
    ],
)
def test_upto_takes_a_number_or_a_milestone(mini, text, count):
    if isinstance(count, int):
        assert mini.upto(text) == count
        return
    with pytest.raises(Usage, match=count):
        mini.upto(text)


def test_an_unknown_name_is_answered_with_those_that_there_are(mini, monkeypatch, tmp_path):
    with pytest.raises(Usage, match="unknown series '../mini': there is mini"):
        catalog.load("../mini")
    with pytest.raises(Usage, match="mini has no milestone '2' .milestones: first, rwlock"):
        mini.milestone("2")
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "none")
    assert catalog.names() == []
    with pytest.raises(Usage, match="there is none"):
        catalog.load("x")


def test_a_missing_patch_number_is_told(patches):
    next(patches.glob("0002-*")).unlink()
    with pytest.raises(Fail, match="patch 2 is missing .0003-"):
        catalog.load("mini")


@pytest.mark.parametrize(
    "text",
    [
        *("", "just words", "[1, 2]", "kernel: 5\n", "a: [unclosed", "\udcff\udcfe"),
        *(f"kernel: a\ntag: b\narches: []\nversions: {wrong}\n" for wrong in ("[{kernel: x}]", "3")),
    ],
)
def test_a_bad_base_file_is_named(patches, text):
    (patches / "base").write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(Fail, match="base is not right"):
        catalog.load("mini")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("words", "milestones is not right: it is no mapping"),
        ("milestones: [", "milestones is not right: while parsing"),
        ("first: x", "it has milestones, based-on, needs, and nothing else"),
        ("milestones: {First: x}", "milestones: 'First' is not of the form NAME: SUBJECT"),
        ("milestones: {first: 1}", "'first' is not of the form"),
        ("milestones: {first: [x]}", "'first' is not of the form"),
        ("milestones: {1: x}", "'1' is not of the form"),
        ("milestones:", "milestones: 'milestones' is not of the form"),
        ("based-on: {last: base}", "based-on: 'last' is not of the form NAME: .NAME."),
        ("needs: {x: y}", "needs: 'x' is not of the form SUBJECT: .SUBJECT."),
        ("needs: {x: [1]}", "needs: 'x' is not of the form"),
        ("milestones: {far: x}", "milestones, far: no patch has the subject 'x': write one that there is once"),
        ("needs: {x: [y]}", "needs: no patch has the subject 'x'"),
        (f"needs: {{'{SUBJECTS[1]}': [y]}}", f"needs, {SUBJECTS[1]}: no patch has the subject 'y'"),
    ],
)
def test_what_is_wrong_with_milestones_is_named(patches, text, reason):
    (patches / "milestones").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(Fail, match=reason):
        assert catalog.load("mini").milestones


def test_a_series_may_be_its_base_alone(patches):
    for file in patches.iterdir():
        if file.name != "base":
            file.unlink()
    series = catalog.load("mini")
    assert (series.patches, series.milestones, series.upto("0")) == ((), {}, 0)
    with pytest.raises(Usage, match="--upto 1 is beyond the end: mini has 0 patches"):
        series.upto("1")
    with pytest.raises(Usage, match="no milestone 'first' .milestones: none; .* 0 to 0"):
        series.upto("first")


def test_subjects(mini, tmp_path):
    """git folds long ones; encoded ones are not used by this series."""
    assert "\n " in mini.patches[0].read_text(encoding="utf-8").split("Subject:")[1].split("---")[0]
    assert tuple(catalog.subject(patch) for patch in mini.patches) == SUBJECTS
    patch = write(tmp_path / "x", "Subject: [PATCH v2 01/10] One\n two\nMIME-Version: 1.0\n\n three\n")
    assert catalog.subject(patch) == "One two"
    for text in ("diff\n", "From: x\n\nSubject: y\n"):
        with pytest.raises(Fail, match="no subject"):
            catalog.subject(write(tmp_path / "x", text))


def test_ids_tell_contents_and_counts_apart_and_diffs_id_not_messages(mini):
    diffs, whole = ([made(count) for count in range(4)] for made in (mini.diffs_id, mini.patches_id))
    assert len(set(diffs)) == len(set(whole)) == 4
    text = mini.patches[0].read_text(encoding="utf-8")
    mini.patches[0].write_text(text.replace("Subject: [PATCH", "Subject: [PATCH RFC", 1), encoding="utf-8")
    assert [mini.patches_id(count) == whole[count] for count in range(4)] == [True, False, False, False]
    assert [mini.diffs_id(count) for count in range(4)] == diffs
    head, diff, rest = text.partition("\n+")
    mini.patches[0].write_text(f"{head}{diff}x{rest}", encoding="utf-8")
    assert [mini.diffs_id(count) == diffs[count] for count in range(4)] == [True, False, False, False]


def part(name):
    """(patches that the milestone `name` of mini needs, its own), by number."""
    found = catalog.load("mini").milestone(name)
    return tuple([int(patch.name[:4]) for patch in patches] for patches in (found.needed, found.patches))


def test_a_milestone_needs_those_before_it_unless_its_file_says_otherwise(patches):
    milestones(patches, {"first": 1, "rwlock": 2, "last": 3})
    assert [part(name) for name in ("first", "rwlock", "last")] == [([], [1]), ([1], [2]), ([1, 2], [3])]
    milestones(patches, {"first": 1, "rwlock": 2, "last": 3}, {"last": ["first"]})
    assert part("last") == ([1], [3])
    milestones(patches, {"last": 3, "rwlock": 2}, {"last": ["base"]})
    assert (part("rwlock"), part("last")) == (([], [1, 2]), ([], [3]))
    # Several, of which each is on the base: in the series' order, whatever that of the line.
    milestones(patches, {"first": 1, "rwlock": 2, "last": 3}, {"rwlock": ["base"], "last": ["rwlock", "first"]})
    assert (part("rwlock"), part("last")) == (([], [2]), ([1, 2], [3]))


def test_a_fix_has_what_it_needs_with_it(patches):
    milestones(patches, {"fixes": 3}, needs={2: [1], 3: [2]})
    mini = catalog.load("mini")
    assert mini.fixes == (1, 2, 3) and mini.needs == {2: (1,), 3: (2,)}
    assert [[int(patch.name[:4]) for patch in mini.alone(number)] for number in mini.fixes] == [[1], [1, 2], [1, 2, 3]]
    milestones(patches, {"fixes": 3}, needs={3: [1]})
    assert [patch.name[:4] for patch in catalog.load("mini").alone(3)] == ["0001", "0003"]


@pytest.mark.parametrize("fix, below, wrong", [(2, [3], SUBJECTS[1]), (2, [2], SUBJECTS[1]), (3, [1], SUBJECTS[2])])
def test_what_a_fix_cannot_need(patches, fix, below, wrong):
    milestones(patches, {"fixes": 2, "last": 3}, needs={fix: below})
    with pytest.raises(Fail, match=f"needs, {wrong}: it takes a patch of the milestone fixes, and patches before it"):
        assert catalog.load("mini").needs


@pytest.mark.parametrize(
    "name, below",
    [
        ("last", ["last"]),
        ("fixes", ["last"]),
        ("last", ["nope"]),
        ("nope", ["base"]),
        ("last", ["first", "base"]),
        ("last", ["first", "last"]),
        ("last", []),
    ],
)
def test_what_a_milestone_cannot_be_on(patches, name, below):
    milestones(patches, {"fixes": 2, "last": 3}, {name: below})
    with pytest.raises(Fail, match=f"based-on, {name}: .{', '.join(below)}.: it takes a milestone, and an earlier"):
        assert catalog.load("mini").on
