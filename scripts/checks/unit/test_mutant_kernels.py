"""Kernels with mutants: each is built once, and again when what it is made from has changed; and what checks choose of them."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from checks import guests, test_3_stage2_trace
from kvmseries.base import paths
from kvmseries.conftest import below, write
from kvmseries.kernel import build, toolchain
from kvmseries.source import catalog, trees
from kvmseries.verify import mutants


@pytest.fixture(name="made")
def _made(own_world, tmp_path, monkeypatch):
    """What was built, a list of names."""
    built = []

    def in_tree(tree, arch, configs, _note):
        built.append(f"{tree} {arch}")
        image = tmp_path / f"tree/build-{arch}/arch/boot/Image"
        write(image, f"{tree} {arch} {len(built)}")
        write(tmp_path / f"tree/build-{arch}/System.map", "map")
        return SimpleNamespace(image=image, release="5.10-x")

    monkeypatch.setattr(trees, "mutant", lambda _series, names, _kernel, count: f"{'+'.join(names)} {count}")
    monkeypatch.setattr(build, "in_tree", in_tree)
    monkeypatch.setattr(toolchain, "version", lambda arch: f"gcc {arch}")
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
    monkeypatch.setattr(
        catalog,
        "load",
        lambda _: SimpleNamespace(
            name="mini", kernel="5.10.262", patches=(1, 2), versions=[SimpleNamespace(sha256="x")], patches_id=str
        ),
    )
    for name in ("a", "b"):
        write(tmp_path / f"patches/mutants/mini/{name}.patch", name)
    return built


def test_a_kernel_with_a_mutant_is_built_once_and_kept(made):
    first, second = guests.planted("a"), guests.planted("b")
    assert guests.planted("a") == first and guests.planted("b") == second and len(made) == 2
    # Each has a copy of its own, for the tree is that of the last one.
    assert first.image.read_text() == "a None arm64 1" and second.image.read_text() == "b None arm64 2"
    assert first.image.parent.joinpath("System.map").exists() and first.release == "5.10-x"


def test_architectures_points_and_combinations_are_others(made):
    kernels = [
        guests.planted("a"),
        guests.planted("a", arch="x86_64"),
        guests.planted("a", count=0),
        guests.planted("a", count=1),
        guests.planted("a", "b"),
        guests.planted("a", configs=("debug",)),
    ]
    assert len({kernel.image for kernel in kernels}) == len(made) == 6


def test_what_has_changed_is_built_again(made, monkeypatch):
    guests.planted("a")
    write(paths.PATCHES / "mutants/mini/a.patch", "changed")
    assert guests.planted("a").image.read_text() == "a None arm64 2"
    monkeypatch.setattr(toolchain, "version", lambda arch: "gcc 99")
    guests.planted("a")
    assert len(made) == 3


def test_a_build_that_fails_keeps_nothing(made, monkeypatch):
    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(build, "in_tree", fails)
    with pytest.raises(RuntimeError):
        guests.planted("a")
    assert not below(paths.out("mutants", "x").parent)


def _table(folder, head):
    """The first column of the table with `head` in the README of `folder`, of code in backquotes."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    table = re.search(rf"^\| {re.escape(head)} \|.*\n\|[-|]*\n((?:\|.*\n)+)", text, re.M)[1]
    return set(re.findall(r"^\| `([^`]+)`", table, re.M))


def _held(name):
    """Names of the mutants that a patch holds."""
    return mutants.held(mutants.FILE.parent / name)


def test_the_trace_must_find_each_mistake_with_tlbs():
    mistakes = {*test_3_stage2_trace.MISTAKES, *test_3_stage2_trace.CONTROLS}
    assert _held("v5.10/tlb-mutants.patch") <= mistakes
    assert _table(test_3_stage2_trace.FOLDER, "`kvm.mutant=`") == mistakes


def test_each_mutant_that_a_check_chooses_is_there():
    held = _held("v5.10/mutants.patch")
    checks = "\n".join(path.read_text(encoding="utf-8") for path in (paths.ROOT / "scripts/checks").glob("*.py"))
    chosen = set(re.findall(r'guests\.bug\("([\w-]+)"\)', checks))
    assert chosen and chosen <= held


def _collected():
    """The ids of all checks, as pytest collects them."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", mutants.CHECKS]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=paths.ROOT, env=environ, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def test_each_check_that_must_find_a_mutant_is_there():
    wanted = {mutant.by for mutant in mutants.load() if "::" in mutant.by}
    assert wanted and wanted - _collected() == set()
