"""The RFC in patches/v7.3/rfc-hw-dirty is no part of the series: it applies to it, is clean, and compiles. Its litmus tests say
what herd7 says; the model's scenarios of it hold, and its mutants are found by those that they name."""

import re
import shutil
from dataclasses import replace

import pytest

from kvmseries.base import paths, proc
from kvmseries.base.errors import Fail
from kvmseries.kernel import build, toolchain
from kvmseries.conftest import lacking
from kvmseries.source import am, catalog, trees
from kvmseries.source.git import git
from kvmseries.verify import check, litmus
from runner import build as model, mutants, prove, runs
from tests import extra

SERIES = catalog.load("v7.3")
FOLDER = paths.PATCHES / SERIES.name / "rfc-hw-dirty"
RFC = replace(SERIES, patches=tuple(sorted(FOLDER.glob("000[1-9]-*.patch"))))
LITMUS = [litmus.load(path) for path in sorted(FOLDER.glob("litmus/*.litmus"))]
OBJECTS = [f"arch/arm64/kvm/{name}.o" for name in ("mmu", "arm", "guest", "hyp/pgtable", "hyp/nvhe/kvm_nvhe")]


@pytest.fixture
def applied(tmp_path):
    """A tree with the series and the RFC."""
    tree = trees.worktree(SERIES, len(SERIES.patches), extra.own_base(SERIES))
    git(tmp_path, "clone", "-q", "--shared", str(tree.path), "linux")
    am.apply(tmp_path / "linux", RFC.patches, own=True)
    return tmp_path / "linux"


def test_it_applies_and_its_mutants_do(applied):
    for mutant in FOLDER.glob("mutants/*.patch"):
        git(applied, "apply", "--check", str(mutant))


def test_checkpatch_is_clean():
    check.checkpatch(RFC, extra.own_base(SERIES))


def test_herd7_says_what_the_litmus_tests_say():
    assert len(LITMUS) > 10 and not litmus.unpaired(LITMUS)
    model = trees.base(SERIES, extra.own_base(SERIES)).path / "tools/memory-model"
    try:
        herd = litmus.herd()
    except Fail as error:
        lacking(error)
    assert [line for test in LITMUS if (line := litmus.complaint(test, litmus.run(herd, test, model)))] == []


def test_the_model_holds_and_finds_the_mutants(applied):
    program = model.checker()
    results = prove.loom(program, {"arm64-v7.3-rfc": model.library(applied, "arm64-v7.3")}, (), None, print)
    assert len(results) > 10 and [result.line for result in results if not result.good] == []
    bounds = {scenario.name: scenario.bound for scenario in runs.scenarios(program)}
    for mutant in FOLDER.glob("mutants/*.patch"):
        name = re.findall(r"^Model: (\S+)$", mutant.read_text(encoding="utf-8"), re.M)[0]
        folder = mutants.plant(applied, mutant, paths.out("model", "mutants", "rfc", mutant.stem), SERIES.name)
        library = model.library(folder, "arm64-v7.3")
        assert runs.run(program, library, name, "loom", *runs.bounded(bounds[name])).verdict == "found", mutant.name


@pytest.mark.build
def test_it_compiles(applied, tmp_path):
    kernel = build.kernel(SERIES, len(SERIES.patches), "arm64", kernel_tree=extra.own_base(SERIES))
    shutil.copy(kernel.image.parents[3] / ".config", tmp_path)
    make = toolchain.make(applied, tmp_path, "arm64", "-rfc")
    log = tmp_path / "log"
    proc.run([*make, "olddefconfig", *OBJECTS], "make", log=log, env=toolchain.environment())
    assert not build.warnings(log)
