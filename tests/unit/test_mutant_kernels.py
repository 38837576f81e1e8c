"""Kernels with mutants: each is built once, and again when what it is made from has changed; and what checks choose of them."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kvmseries.base import paths
from kvmseries.conftest import below, write
from kvmseries.kernel import build, toolchain
from kvmseries.source import catalog, trees
from kvmseries.verify import mutants
from stage2_trace import stage2trace
from tests.lab import Lab


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
    versions = [SimpleNamespace(sha256="x")]
    mini = SimpleNamespace(
        name="mini", kernel="5.10", patches=(1, 2), versions=versions, patches_id=str, upto=int, port=""
    )
    monkeypatch.setattr(catalog, "load", lambda _: mini)
    for name in ("a", "b"):
        write(tmp_path / f"patches/mutants/mini/{name}.patch", name)
    return built


def _kernel(*names, arch="arm64", kernel="series", configs=()):
    return Lab("mini", kernel, arch=arch, patches=names, configs=configs).built()


def test_a_kernel_with_a_mutant_is_built_once_and_again_when_what_it_is_made_of_differs(made, monkeypatch):
    others = [{}, {"arch": "x86_64"}, {"kernel": "base"}, {"kernel": "upto:1"}, {"configs": ("debug",)}]
    first = [*(_kernel("a", **other) for other in others), _kernel("b"), _kernel("a", "b")]
    # Each has a copy of its own, for the tree is that of the last one.
    assert [one.image.read_text()[-1] for one in first] == list("1234567")
    assert first[0].image.parent.joinpath("System.map").exists() and first[0].release == "5.10-x"
    assert [_kernel("a", **other) for other in others] == first[:5] and len(made) == 7
    write(paths.PATCHES / "mutants/mini/a.patch", "changed")
    assert _kernel("a").image.read_text() == "a None arm64 8"
    monkeypatch.setattr(toolchain, "version", lambda arch: "gcc 99")
    assert _kernel("a").image.read_text() == "a None arm64 9"


def test_a_build_that_fails_keeps_nothing(made, monkeypatch):
    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(build, "in_tree", fails)
    with pytest.raises(RuntimeError):
        _kernel("a")
    assert not below(paths.out("mutants", "x").parent)


def test_the_trace_must_find_each_mistake_with_tlbs():
    mistakes = {one.name for one in mutants.load() if (one.series, one.place) == ("v5.10", "trace")} | {
        "no-tlbi-in-unmap"
    }
    assert mutants.held(mutants.FILE.parent / "v5.10/tlb-mutants.patch") <= mistakes
    text = (stage2trace.SOURCE / "README.md").read_text(encoding="utf-8")
    table = re.search(r"^\| found by \| `kvm.mutant=` \|\n\|[-|]*\n((?:\|.*\n)+)", text, re.M)[1]
    found = re.findall(r"`((?:tlb-|no-|change-)[^`]+)`", table)
    assert sorted(found) == sorted(mistakes)


def test_each_check_that_must_find_a_mutant_is_there():
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", mutants.CHECKS]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=paths.ROOT, env=environ, capture_output=True, text=True, check=True)
    wanted = {one.by for one in mutants.load() if one.by.startswith(f"{mutants.CHECKS}/")}
    assert len(wanted) > 40 and wanted - set(done.stdout.splitlines()) == set()
