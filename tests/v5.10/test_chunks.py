"""What is done in one hold of mmu_lock is bounded: arch-arm64-kvm/chunks, with the code of the applied series."""

from pathlib import Path

import pytest

from kvmseries.base import paths
from kvmseries.source import catalog, trees
from kvmseries.verify import chunks
from tests import extra

# Mutants: a line of the code, and what it becomes.
MUTANTS = {
    "a table that is cut does not end the chunk": (
        "<< PAGE_SHIFT);\n\t\t\treturn 1;\n",
        "<< PAGE_SHIFT);\n\t\t\treturn 0;\n",
    ),
    "a block that is cleaned counts as one entry": ("work = kvm_granule_size(level) / SZ_4K;", "work = 1;"),
    "nothing is looked at": ("* data.page_work <= work)", "* data.page_work <= ~0UL)"),
    "the chunk goes on behind what is full": ("return !data->work;", "return 0;"),
    "it ends where it began": ("data->end = next;\n\tdata->work", "data->end = addr;\n\tdata->work"),
    "empty entries do not count": ("if (!--data->work)", "if (0)"),
    "a table's entries are taken from its first on": (
        "ptep += (addr >> kvm_granule_shift(level)) & (PTRS_PER_PTE - 1);",
        "",
    ),
}


@pytest.fixture(scope="module", name="code")
def _code():
    series = catalog.load("v5.10")
    return chunks.collect(Path(trees.worktree(series, len(series.patches), extra.own_base(series)).path))


@pytest.mark.parametrize("shift", chunks.PAGES)
def test_a_hold_of_the_lock_is_bounded(code, shift):
    good, output = chunks.run(code, shift, paths.out("chunks", str(shift)))
    print(output)
    assert good, output
    assert output.count("holds, worst") >= 14


@pytest.mark.parametrize("mutant", MUTANTS)
def test_negative_control_a_mutant_of_the_walk_is_found(code, mutant):
    line, instead = MUTANTS[mutant]
    assert code.count(line) == 1
    good, output = chunks.run(code.replace(line, instead), 12, paths.out("chunks", "mutant"))
    assert not good and "Assertion" in output, output
