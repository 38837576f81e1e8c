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
    """The rows of the table as README has them."""
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| hot set |"))
    last = next(number for number in range(first, len(lines)) if not lines[number].startswith("|"))
    return "\n".join(lines[first:last]) + "\n"


def test_readme_has_the_table_of_the_patches(tmp_path):
    assert quoted() == table(tmp_path)


def test_another_rule_gives_another_table(tmp_path):
    patches = []
    for path in sorted((paths.PATCHES / "qemu-10.0").glob("0*.patch"))[1:]:
        text = path.read_text(encoding="utf-8")
        patches.append(tmp_path / path.name)
        patches[-1].write_text(text.replace("elapsed_us / 4 * 3 / 1000", "elapsed_us / 4 * 1 / 1000"), encoding="utf-8")
    assert table(tmp_path, patches) not in ("", quoted())
