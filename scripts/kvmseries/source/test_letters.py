"""Letters of milestones, and that those of the repository are as they must be."""

import re

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import SUBJECTS, write
from kvmseries.figures import query, texts
from kvmseries.source import catalog, letters
from kvmseries.verify import check

LETTER = 'KVM: arm64: Two fixes\n\nWhat "Take the ..." are for.\n'
SERIES = [catalog.load(name) for name in catalog.names()]
# A number with the unit of something that was measured.
_MEASURED = re.compile(r"[\d.,]*\d\s*(?:ns|us|ms|%)(?!\w)")
FILES = query.Files(texts.load()["results"])


def words(where):
    """The text `where` without the figures that its template makes."""
    name = f"{where}.in"
    known = (texts.FOLDER / name).exists()
    return texts.make(FILES, name).words if known else (paths.ROOT / where).read_text(encoding="utf-8")


@pytest.mark.parametrize("series", SERIES, ids=lambda series: series.name)
def test_the_letters_of_the_repository_are_as_they_must_be(series):
    letters.check(series)
    for path in (series.path / "letters").glob("*.txt"):
        assert _MEASURED.findall(words(str(path.relative_to(paths.ROOT)))) == [], path


def test_negative_control_a_figure_that_is_written_by_hand():
    assert _MEASURED.findall("It takes 514 ns and 3 % with 16 vCPUs, on 5.10.262.\n") == ["514 ns", "3 %"]


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("", "its first line must be the subject"),
        ("Subject\ntext\n", "the second empty"),
        ("Subject\n\n", "text must follow"),
        ("[PATCH 0/3] Fixes\n\nText.\n", "begins with '.PATCH'"),
        (LETTER + "x" * 76, "line 4 has 76 characters"),
        (LETTER + "# head\n", "line 4 begins with '#'"),
        (LETTER + "---\n", "line 4 begins with '---'"),
        (LETTER + "\nSigned-off-by: A <a@b>\n", "carries 'Signed-off-by"),
        (LETTER + "\nTested: by hand.\n", "line 5 begins with 'Tested:' in the last paragraph"),
    ],
)
def test_negative_control_a_letter_that_is_not(mini, text, wrong):
    assert re.search(wrong, "\n".join(letters.problems(text)))
    write(mini.letter("first"), text)
    with pytest.raises(Fail, match=f"letters/first.txt: .*{wrong}"):
        check.clean(mini)


@pytest.mark.parametrize(
    "quoted, count",
    [
        ("{0}", 1),
        ("Take the second step", 1),
        ("Take\n   the second  step", 1),
        ("Take the ...", 3),
        ("KVM: arm64: Take the ...", 2),
        ("Take the sec ...", 0),
        ("Take the second ...", 1),
        ("Take ...", 0),
        ("KVM: arm64: Take ...", 0),
        ("KVM: arm64: ...", 0),
        ("the second step", 0),
        ("take the second step", 0),
        ("Take the second step.", 0),
    ],
)
def test_what_names_a_patch(quoted, count):
    assert len(letters.named(f'It is "{quoted.format(*SUBJECTS)}".', SUBJECTS)) == count
    assert not letters.named(quoted.format(*SUBJECTS), SUBJECTS)


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("See patch 2.", "'patch 2': name patches by subject"),
        ("Patches 2 to 3 are next.", "'Patches 2': name patches by subject"),
        ("See patch\n   2.", "'patch 2'"),
        ('See "Take some ...".', 'no patch is meant by "Take some ..."'),
        ('An inch is 1".', "it has a quotation mark that none belongs to"),
        ("  without patches   989", ""),
    ],
)
@pytest.mark.parametrize("cover", [True, False])
def test_negative_control_names_that_are_none(mini, text, wrong, cover):
    path = mini.cover if cover else mini.letter("first")
    if cover:
        path.write_text(path.read_text(encoding="utf-8").replace("What ", f"{text}\n\nWhat "), encoding="utf-8")
    else:
        write(path, f"{LETTER}\n{text}\n")
    if not wrong:
        letters.check(mini)
        return
    with pytest.raises(Fail, match=f"{path.name}: {re.escape(wrong)}"):
        letters.check(mini)


def test_patches_of_a_milestone_without_letter_are_named_in_the_cover_or_in_another_letter(mini):
    text = mini.cover.read_text(encoding="utf-8")
    write(mini.cover, text.replace('"Take the ..."', '"Take the first ...", "Take the third step"'))
    with pytest.raises(Fail, match='0000-cover-letter.patch: it must name "KVM: arm64: Take the second step", in quo'):
        letters.check(mini)
    write(mini.letter("first"), LETTER)
    letters.check(mini)
    # A letter of a milestone names all of its patches, whatever others name.
    write(mini.letter("rwlock"), LETTER.replace("the ...", "the first step"))
    with pytest.raises(Fail, match='letters/rwlock.txt: it must name "KVM: arm64: Take the second step", in quotes'):
        letters.check(mini)


def test_a_letter_is_of_a_milestone(mini):
    check.clean(mini)
    write(mini.letter("first"), LETTER)
    check.clean(mini)
    write(mini.letter("nope"), LETTER)
    with pytest.raises(Fail, match="letters/nope.txt: mini has no milestone 'nope' .milestones: first, rwlock"):
        check.clean(mini)


# A row of a table of figures in a letter: words, then two numbers or more.
_ROW = re.compile(r"\s{2,}\S.*?(\s{2,}[\d,.]+){2,}\s*$")
# Of simulations, in no results file: tests/qemu-10.0/test_throttle.py and qemu-migration/migrate/test_reaper.py compare the tables of the
# READMEs with what these print today.
SIMULATED = {"patches/qemu-10.0/letters/reaper.txt"}


def tables(texts_of, listed):
    """Names of those of `texts_of`, dict of name to text, that have a table and are not in `listed`."""
    return {
        name
        for name, text in texts_of.items()
        if name not in listed and any(_ROW.match(line) for line in text.partition("\n---\n")[0].splitlines())
    }


def test_each_letter_with_a_table_is_made():
    folder = paths.ROOT / "patches"
    found = {
        str(path.relative_to(paths.ROOT)): path.read_text(encoding="utf-8")
        for pattern in ("*/letters/*.txt", "*/0000-cover-letter.patch")
        for path in folder.glob(pattern)
    }
    assert len(found) > 20
    assert tables(found, {name[:-3] for name in texts.names()}) == SIMULATED


def test_negative_control_a_letter_with_a_table_that_is_not_made():
    found = {"a": "Words.\n\n  vCPUs    1    16\n  base   1,314  13,275\n", "b": "  three words and 7 pages\n"}
    assert tables(found, set()) == {"a"}
    assert tables(found, {"a"}) == set()
