"""Building: what is configured, what is built anew, which patch breaks it."""

import bz2

import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import edit, git
from kvmseries.source import catalog, export, trees
from migrate import build, check
from migrate.conftest import KVM


def calls(path):
    """The first words of each call of configure and ninja."""
    return [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_program_is_built_once_and_one_that_broke_off_is_not_configured_again(qmini, qemu_mirror, compilers):
    program = build.program(qmini, 2, "arm64")
    assert program.path == trees.worktree(qmini, 2).path / "build-arm64/qemu-system-aarch64"
    assert (program.arch, program.version, program.libraries) == ("arm64", "10.0.13", [])
    assert build.program(qmini, 2, "arm64") == program
    assert calls(compilers) == ["configure", "ninja"]
    (program.path.parent / "series.json").unlink()
    assert build.program(qmini, 2, "arm64") == program
    assert calls(compilers) == ["configure", "ninja", "ninja"]
    assert build.program(qmini, 2, "x86_64").path.name == "qemu-system-x86_64"


def test_other_options_are_configured_anew(qmini, qemu_mirror, compilers, monkeypatch):
    folder = build.program(qmini, 2, "arm64").path.parent
    (folder / "old.o").touch()
    monkeypatch.setattr(build, "_OPTIONS", (*build._OPTIONS, "--enable-debug"))
    build.program(qmini, 2, "arm64")
    assert calls(compilers) == ["configure", "ninja"] * 2
    assert not (folder / "old.o").exists()


def test_a_build_with_tests_will_do_without(qmini, qemu_mirror, compilers):
    tree = trees.worktree(qmini, 2)
    build.in_tree(tree, "arm64")
    build.in_tree(tree, "arm64", tests=True)
    build.in_tree(tree, "arm64")
    assert calls(compilers) == ["configure", "ninja", "ninja"]
    assert compilers.read_text(encoding="utf-8").splitlines()[-1].endswith("qemu-system-aarch64 tests/one")


def test_lacking_blobs_are_empty_and_those_that_are_there_stay(qmini, qemu_mirror, compilers):
    tree = trees.worktree(qmini, 2)
    (tree.path / "pc-bios/edk2-arm-code.fd.bz2").write_bytes(b"the user's")
    build.in_tree(tree, "arm64")
    assert (tree.path / "pc-bios/edk2-arm-code.fd.bz2").read_bytes() == b"the user's"
    assert bz2.decompress((tree.path / "pc-bios/edk2-x86_64-secure-code.fd.bz2").read_bytes()) == b""


def changed(series, lines):
    """`series` with a third patch that replaces lines of KVM."""
    tree = trees.worktree(series, len(series.patches)).path
    for old, new in lines:
        edit(tree, KVM, old, new)
    git(tree, "commit", "-q", "-a", "-m", "accel/kvm: Take the third step\n\nWhy: because.")
    export.export(series)
    return catalog.load(series.name)


@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
def test_every_patch_is_built(qmini, qemu_mirror, compilers, arch):
    assert check.builds(qmini, arch, lambda text: None) == [1, 2]
    assert calls(compilers) == ["configure", "ninja", "configure", "ninja", "ninja"]


def test_the_patch_that_breaks_the_build_is_named(qmini, qemu_mirror, compilers):
    series = changed(qmini, [("int kvm20;", "int broken;")])
    with pytest.raises(Fail, match="qmini does not build for arm64 with 0003-.*: .*error: broken .see "):
        check.builds(series, "arm64", lambda text: None)


def test_the_patch_that_brings_a_warning_is_named(qmini, qemu_mirror, compilers):
    series = changed(qmini, [("int kvm20;", "int warned;")])
    with pytest.raises(Fail, match="0003-.* brings a compiler warning for x86_64: .*unused"):
        check.builds(series, "x86_64", lambda text: None)
