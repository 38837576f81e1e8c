"""Kernels with patches/debug: each is built once, and again when what it is made from has changed; and what is documented of them."""

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
from kvmseries.verify import controls
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

    monkeypatch.setattr(trees, "planted", lambda _series, names, _kernel, count: f"{'+'.join(names)} {count}")
    monkeypatch.setattr(build, "in_tree", in_tree)
    monkeypatch.setattr(toolchain, "version", lambda arch: f"gcc {arch}")
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
    monkeypatch.setattr(
        catalog,
        "load",
        lambda _: SimpleNamespace(
            name="mini",
            kernel="5.10.262",
            patches=(1, 2),
            versions=[SimpleNamespace(sha256="x")],
            patches_id=str,
            upto=int,
        ),
    )
    for name in ("a", "b"):
        write(tmp_path / f"patches/debug/mini-{name}.patch", name)
    return built


def _planted(*names, arch="arm64", kernel="series", configs=()):
    return Lab("mini", kernel, arch=arch, patches=names, configs=configs).built()


def test_a_planted_kernel_is_built_once_and_kept(made):
    first, second = _planted("a"), _planted("b")
    assert _planted("a") == first and _planted("b") == second and len(made) == 2
    # Each has a copy of its own, for the tree is that of the last one.
    assert first.image.read_text() == "a None arm64 1" and second.image.read_text() == "b None arm64 2"
    assert first.image.parent.joinpath("System.map").exists() and first.release == "5.10-x"


def test_architectures_points_and_combinations_are_others(made):
    kernels = [
        _planted("a"),
        _planted("a", arch="x86_64"),
        _planted("a", kernel="base"),
        _planted("a", kernel="upto:1"),
        _planted("a", "b"),
        _planted("a", configs=("debug",)),
    ]
    assert len({kernel.image for kernel in kernels}) == len(made) == 6


def test_what_has_changed_is_built_again(made, monkeypatch):
    _planted("a")
    write(paths.PATCHES / "debug/mini-a.patch", "changed")
    assert _planted("a").image.read_text() == "a None arm64 2"
    monkeypatch.setattr(toolchain, "version", lambda arch: "gcc 99")
    _planted("a")
    assert len(made) == 3


def test_a_build_that_fails_keeps_nothing(made, monkeypatch):
    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(build, "in_tree", fails)
    with pytest.raises(RuntimeError):
        _planted("a")
    assert not below(paths.out("planted", "x").parent)


def _table(folder, head):
    """The first column of the table with `head` in the README of `folder`, of code in backquotes."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    table = re.search(rf"^\| {re.escape(head)} \|.*\n\|[-|]*\n((?:\|.*\n)+)", text, re.M)[1]
    return set(re.findall(r"^\| `([^`]+)`", table, re.M))


def _bugs(name):
    """Names of the bugs that a debug patch plants."""
    text = (paths.ROOT / "patches/debug" / name).read_text(encoding="utf-8")
    return {name.replace("_", "-") for name in re.findall(r"^\+\tbug\((\w+)\)", text, re.M)}


def test_the_readme_names_each_debug_patch_and_each_bug():
    folder = paths.ROOT / "patches/debug"
    assert _table(folder, "patch") == {path.name for path in folder.glob("*.patch")}
    for patch, head in (
        ("v5.10-planted.patch", "`kvm.planted=`"),
        ("v5.10-tlb-planted.patch", "`kvm.planted=tlb-`"),
        ("v7.3-planted.patch", "`kvm.planted=` of v7.3"),
    ):
        assert _bugs(patch) and _table(folder, head) == _bugs(patch)


def test_the_trace_must_find_each_mistake_with_tlbs():
    mistakes = {one.name for one in controls.of_series("v5.10") if one.place == "trace"} | {"no-tlbi-in-unmap"}
    assert _bugs("v5.10-tlb-planted.patch") <= mistakes
    assert _table(stage2trace.SOURCE, "`kvm.planted=`") == mistakes


def test_each_check_that_must_find_a_planted_bug_is_there():
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", controls.CHECKS]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=paths.ROOT, env=environ, capture_output=True, text=True, check=True)
    wanted = {control.check for control in controls.load() if control.check}
    assert wanted and wanted - set(done.stdout.splitlines()) == set()
