"""The table of the reaper's rule in qemu-migration/README.md is what the sources in the patches give."""

import shutil
import subprocess

import pytest

from kvmseries.base import paths

FOLDER = paths.ROOT / "qemu-migration"
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no compiler")


def table(out, patches=None):
    """What `make reaper` prints, with its files below `out`; patches: others than the series' own."""
    words = ["make", "-s", "-C", str(FOLDER), "reaper", f"O={out}"]
    if patches:
        words.append("PATCHES=" + " ".join(str(path) for path in patches))
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def quoted():
    """The two tables as README has them."""
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    tables = []
    for head in ("| hot set |", "| ms of a burst |"):
        first = next(number for number, line in enumerate(lines) if line.startswith(head))
        last = next(number for number in range(first, len(lines)) if not lines[number].startswith("|"))
        tables.append("".join(f"{line}\n" for line in lines[first:last]))
    return "\n".join(tables)


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


def test_readme_has_the_tables_of_the_patches(tmp_path):
    assert quoted() == table(tmp_path)


def test_another_rule_gives_another_table(tmp_path):
    patches = changed(tmp_path, "elapsed_us / 4 * 3 / 1000", "elapsed_us / 4 * 1 / 1000")
    assert table(tmp_path, patches) not in ("", quoted())


def test_bursts_are_sensitive_to_what_an_exit_is_worth_at_first(tmp_path):
    name = "0.2 s of 4 rings, 0.3 s of 15/16"
    lines = table(tmp_path, changed(tmp_path, "WORTH_START      4", "WORTH_START      16")).splitlines()
    entries, exits = next(line for line in lines if line.startswith(f"| {name} |")).split(" | ")[6:8]
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f'with 16, "{name}" has {entries} times base\'s entries and {exits} of its exits' in text
