"""Fetching and applying for QEMU: what differs from kernels."""

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from kvmseries.source import catalog, git as git_module, trees
from migrate.conftest import KVM


def test_an_unknown_project_is_named(qmini):
    write(qmini.path / "base", "project: hurd\n")
    with pytest.raises(Fail, match="unknown project 'hurd': there is linux, qemu"):
        catalog.load("qmini")


def test_base_is_debians_tarball(qmini, qemu_mirror):
    tree = trees.base(qmini)
    assert (tree.version, tree.count) == ("10.0.13", 0)
    assert tree.path == paths.out("trees/qmini-10.0.13+ds-1/base")
    assert (tree.path / KVM).exists()
    assert trees.base(qmini) == tree
    assert qemu_mirror.read_text(encoding="utf-8").splitlines() == [
        "-q source --download-only --tar-only qemu=1:10.0.13+ds-1"
    ]
    lines = paths.out("cache/apt/src-trixie-trixie-security/sources.list").read_text(encoding="utf-8")
    assert [line.split()[0] for line in lines.splitlines()] == ["deb-src", "deb-src"]


def test_blobs_that_a_build_needs_are_no_changes(qmini, qemu_mirror):
    tree = trees.worktree(qmini, 2)
    write(tree.path / "pc-bios/edk2-arm-code.fd.bz2", "")
    write(tree.path / "build-arm64/x", "")
    assert git_module.changes(tree.path) == ""


@pytest.mark.parametrize("what", ["tree", "tarball"])
def test_a_users_own_qemu(qmini, qemu_made, what):
    tree = trees.worktree(qmini, 2, getattr(qemu_made, what))
    assert tree.version == "10.0.13"
    assert "int first;" in (tree.path / KVM).read_text(encoding="utf-8")


def test_a_kernel_is_no_qemu(qmini, kernel, refused):
    line = f"--tree {kernel} is not a QEMU tree: it has no VERSION and accel/kvm/kvm-all.c at its top"
    assert refused("apply", "qmini", "--fetch-only", "--tree", kernel) == line


def test_a_qemu_is_no_kernel(mini, qemu_made, refused):
    assert "is not a linux kernel tree" in refused("apply", "mini", "--fetch-only", "--tree", qemu_made.tree)
