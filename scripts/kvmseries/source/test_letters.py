"""Letters of milestones, and that those of the repository are as they must be."""

import re

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from kvmseries.figures import judge, text as texts
from kvmseries.source import catalog, letters
from kvmseries.verify import check

LETTER = "KVM: arm64: Two fixes\n\nWhat they are for.\n"
LETTERS = [
    (name, path) for name in catalog.names() for path in sorted((paths.PATCHES / name / "letters").glob("*.txt"))
]
# A number with the unit of something that was measured.
_MEASURED = re.compile(rf"{texts.NUMBER}\s*(?:ns|us|ms|%)(?!\w)")


def unlisted(text, where, data):
    """Figures of the text `where` that no entry of figures.yaml (data) lists."""
    entry = data["texts"].get(where, {"entries": []})
    spans = [(place.begin, place.end) for place in texts.places(text, entry["entries"], where)]
    return [
        found[0] for found in _MEASURED.finditer(text) if not any(begin <= found.start() < end for begin, end in spans)
    ]


@pytest.mark.parametrize("name, path", LETTERS, ids=lambda value: getattr(value, "stem", value))
def test_a_letter_is_as_it_must_be(name, path):
    text = path.read_text(encoding="utf-8")
    assert letters.problems(text) == []
    assert path.stem in catalog.load(name).milestones
    assert unlisted(text, str(path.relative_to(paths.ROOT)), judge.load()) == []


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("", "its first line must be the subject"),
        ("Subject\ntext\n", "the second empty"),
        ("Subject\n\n", "text must follow"),
        ("[PATCH 0/3] Fixes\n\nText.\n", "begins with '.PATCH'"),
        (LETTER + "x\n" * 58, "61 lines, and at most 60"),
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


def test_a_letter_of_sixty_lines_is_fine():
    assert letters.problems(LETTER + "x\n" * 57) == []


def test_negative_control_a_figure_that_is_not_listed():
    text = "It takes 514 ns and 3 % with 16 vCPUs, on 5.10.262.\n"
    assert unlisted(text, "x", {"texts": {}}) == ["514 ns", "3 %"]
    assert unlisted(text, "x", {"texts": {"x": {"entries": [{"text": "takes {a} ns", "a": {}}]}}}) == ["3 %"]


def test_a_letter_of_no_milestone_is_told(mini):
    write(mini.letter("nope"), LETTER)
    with pytest.raises(Fail, match="letters/nope.txt: mini has no milestone 'nope' .milestones: first, rwlock"):
        check.clean(mini)


def test_no_letters_are_fine(mini):
    check.clean(mini)
    with pytest.raises(
        Fail, match="the milestone 'first' of mini has no cover letter: write patches/mini/letters/first.txt"
    ):
        letters.text(mini, "first")


def test_the_letter_of_a_milestone_and_of_the_series(mini):
    write(mini.letter("first"), LETTER)
    check.clean(mini)
    assert letters.text(mini, "first") == LETTER
    assert letters.text(mini) == "A tiny series\n\nWhat it is for.\n"


@pytest.mark.parametrize("name", [name for name in catalog.names() if catalog.load(name).patches])
def test_the_cover_letters_of_the_repository_can_be_taken(name):
    text = letters.text(catalog.load(name))
    assert re.match(r"[^\n\[]+\n\n\S", text) and not re.search(r"^#|^[^\n]+ \(\d+\):\n  \S|files changed", text, re.M)


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


def test_each_letter_with_a_table_is_listed():
    folder = paths.ROOT / "patches"
    found = {
        str(path.relative_to(paths.ROOT)): path.read_text(encoding="utf-8")
        for pattern in ("*/letters/*.txt", "*/0000-cover-letter.patch")
        for path in folder.glob(pattern)
    }
    assert len(found) > 20
    assert tables(found, set(judge.load()["texts"])) == SIMULATED


def test_negative_control_a_letter_with_a_table_that_is_not_listed():
    found = {"a": "Words.\n\n  vCPUs    1    16\n  base   1,314  13,275\n", "b": "  three words and 7 pages\n"}
    assert tables(found, set()) == {"a"}
    assert tables(found, {"a"}) == set()
