"""Documentation/review-v5.10.md: each finding names a patch that is there and what finds its mistake, or says why nothing does."""

import re

import pytest

from kvmseries.base import paths
from kvmseries.source import catalog
from kvmseries.verify import mutants

FILE = paths.ROOT / "Documentation" / "review-v5.10.md"
HEAD = ["found", "mended by", "fails without it"]


def rows(text):
    """The cells of all rows of the tables of findings."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return [row for row in cells if row != HEAD and not set("".join(row)) <= {"-"}]


def known(name, every):
    """Whether there is a mutant or a check of that name."""
    if "::" not in name:
        return name in every
    file, check = name.split("::")
    path = paths.ROOT / mutants.CHECKS / file
    return path.is_file() and f"\ndef {check.partition('[')[0]}(" in path.read_text(encoding="utf-8")


def complaints(text):
    """Lines about what is not there, or is not said."""
    subjects = [catalog.subject(patch).split(": ", 1)[-1] for patch in catalog.load("v5.10").patches]
    every = {mutant.name for mutant in mutants.of_series("v5.10")}
    wrong = []
    for found, patch, by in rows(text):
        for name in re.findall(r'"([^"]+)"', patch):
            if not any(subject.endswith(name) for subject in subjects):
                wrong.append(f"{found}: no patch '{name}'")
        for name in re.findall(r"`(patches/[^`]+)`", patch):
            if not (paths.ROOT / name).is_file():
                wrong.append(f"{found}: no file {name}")
        names = re.findall(r"`([^`]+)`", by)
        wrong += [f"{found}: no mutant or check '{name}'" for name in names if not known(name, every)]
        if not names and not re.match(r"None: \w", by):
            wrong.append(f"{found}: neither what fails nor why nothing does")
    return wrong


def test_what_finds_a_mistake_is_there():
    text = FILE.read_text(encoding="utf-8")
    assert complaints(text) == []
    assert len(rows(text)) > 20


@pytest.mark.parametrize(
    "row, wrong",
    [
        ('| x | "Remove tlbs_dirty" | `age-forgets`, `tlb-break-local` |', []),
        ("| x | the same | None: no machine has it |", []),
        ('| x | "Remove tlbs" | `age-forgets` |', ["x: no patch 'Remove tlbs'"]),
        ("| x | `patches/mutants/none.patch` | None: so |", ["x: no file patches/mutants/none.patch"]),
        ("| x | the same | `age-forgot` |", ["x: no mutant or check 'age-forgot'"]),
        (
            "| x | the same | `v5.10/test_model.py::test_nothing` |",
            ["x: no mutant or check 'v5.10/test_model.py::test_nothing'"],
        ),
        ("| x | the same | None |", ["x: neither what fails nor why nothing does"]),
    ],
)
def test_negative_control_a_name_that_is_not_there(row, wrong):
    assert complaints(f"| found | mended by | fails without it |\n|---|---|---|\n{row}\n") == wrong
