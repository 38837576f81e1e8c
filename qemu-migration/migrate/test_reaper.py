"""The tables of the reaper's rule in qemu-migration are what the sources in the patches give."""

import re
import subprocess

import pytest

from kvmseries.base import paths
from kvmseries.conftest import wanted

FOLDER = paths.ROOT / "qemu-migration"


@pytest.fixture(autouse=True)
def compiler(sandbox):  # pylint: disable=unused-argument
    """`make reaper` compiles."""
    wanted("cc")


def table(out, patches=None, late=""):
    """What `make reaper` prints, with its files below `out`; patches: others than the series' own."""
    words = ["make", "-s", "-C", str(FOLDER), "reaper", f"O={out}", f"LATE={late}"]
    if patches:
        words.append("PATCHES=" + " ".join(str(path) for path in patches))
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def quoted():
    """The three tables as they are committed."""
    return (FOLDER / "reaper/tables.txt").read_text(encoding="utf-8")


def changed(folder, old, new):
    """The patches with `old` replaced, in `folder`."""
    patches, found = [], 0
    for path in sorted((paths.PATCHES / "qemu-10.0").glob("0*.patch"))[1:]:
        text = path.read_text(encoding="utf-8")
        found += old in text
        patches.append(folder / path.name)
        patches[-1].write_text(text.replace(old, new), encoding="utf-8")
    assert found
    return patches


def missed(row):
    """Of the guests that the rule is held to: how many keep too many exits, and have too many entries."""
    late, many, exits, guests, entries, _most, _harmed = row.strip("| \n").split(" | ")
    assert (late, many, guests) == ("1", "139", "189")
    return int(exits), int(entries)


def test_the_committed_tables_are_those_of_the_patches(tmp_path):
    assert quoted() == table(tmp_path)
    row = table(tmp_path, late=1)
    assert row in quoted()
    assert missed(row) == (0, 0)


def test_readme_quotes_the_tables():
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| hot set |"))
    rows = [line for line in lines[first:] if re.match(r"\| .* \| [\d,.]+ \| ", line)]
    assert len(rows) >= 3 and set(rows) <= set(quoted().splitlines())


def test_a_late_reaper_does_no_harm():
    rows = [line.strip("|").split("|") for line in quoted().split("| ms late |")[1].splitlines()[2:]]
    *late, control = [(row[0].strip(), int(row[-1])) for row in rows]
    assert len(late) == 14
    assert not any(harmed for _late, harmed in late)
    assert control == ("1.5, and nothing is too late", 13)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The growth of the last look only; a look when it is too late; no look, but a collection.
        ("peak->now = MAX(peak->now, value);", "peak->now = value;"),
        ("if (left < late + KVM_DIRTY_RING_SLEEP_MIN) {", "if (left < late) {"),
        ("if (!over && kvm_dirty_ring_pace_plan(pace, now, fill)) {", "if (!kvm_dirty_ring_pace_plan(pace, now, 0)) {"),
    ],
)
def test_a_mistake_in_the_rule_shows(tmp_path, old, new):
    assert missed(table(tmp_path, changed(tmp_path, old, new), late=1)) > (0, 0)


@pytest.mark.parametrize(
    ("constant", "value", "other", "many", "over"),
    [
        ("WORTH_MAX", 16, 8, 1, 0),
        ("WORTH_START", 4, 1, 5, 0),
        ("WORTH_START", 4, 16, 0, 1),
        ("SOON", 8, 4, 1, 0),
        ("LOOKS", 256, 64, 2, 1),
    ],
)
def test_readme_says_what_other_constants_would_do(tmp_path, constant, value, other, many, over):
    line = next(
        line
        for patch in sorted((paths.PATCHES / "qemu-10.0").glob("*-Add-a-rule-for-when-to-collect*"))
        for line in patch.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"+#define KVM_DIRTY_RING_{constant} ")
    )
    assert line.endswith(f" {value}")
    patches = changed(tmp_path, line, line[: -len(str(value))] + str(other))
    assert missed(table(tmp_path, patches, late=1)) == (many, over)
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    row = next(line for line in lines if line.startswith(f"| `KVM_DIRTY_RING_{constant}` |"))
    said = row.lower().split(f"with {other}", 1)[1]
    if many:
        assert f"{many} of the 139 guests with 5 exits/s on base " in said
    if over:
        assert f"{over} of the 189 guests with exits on base " in said


# Row of the letter's table -> that of README.
LETTER = {
    "15/16 ring": "15/16 ring",
    "1 ring": "1 ring",
    "1 ring, random": "1 ring, random",
    "0.2 s of 4, 0.3 of 15/16": "0.2 s of 4 rings, 0.3 s of 15/16",
    "0.05 s of 4, 0.25 of 3/4": "50 ms of 4 rings, 250 ms of 3/4",
    "1024, PML, 163,840/s": "ring of 1024, PML, 4 rings, 163,840 pages/s",
}


def figures(letter):
    """{row of the table of a letter: [entries/s and exits/s once a second, and by the rule]}."""
    lines = letter.split("hot set  ")[1].split("\n\n")[0].splitlines()[1:]
    return {line[:27].strip(): [float(word.replace(",", "")) for word in line[27:].split()] for line in lines}


def test_the_letter_has_figures_of_readme():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in quoted().splitlines() if line]
    readme = {
        row[0]: [float(row[column].replace(",", "")) for column in (1, 2, 5, 6)]
        for row in rows
        if row[0] in LETTER.values()
    }
    letter = (paths.PATCHES / "qemu-10.0/letters/reaper.txt").read_text(encoding="utf-8")
    assert figures(letter) == {row: readme[name] for row, name in LETTER.items()}
    assert figures(letter.replace("24,664", "24,665")) != figures(letter)
