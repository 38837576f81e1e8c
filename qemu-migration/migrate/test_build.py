"""Building: what is configured, what is built anew, which patch breaks it."""

import bz2
import json

import pytest

from tests import extra
from kvmseries.base.errors import Fail
from kvmseries.conftest import edit, git, write
from kvmseries.kernel import toolchain
from kvmseries.source import catalog, export, trees
from migrate import build, check
from migrate.conftest import KVM

NATIVE, OTHER = ("x86_64", "arm64") if not toolchain.prefix("x86_64") else ("arm64", "x86_64")


def calls(path):
    """The first words of each call of configure and ninja."""
    return [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_cross_build_has_its_own_libraries(compilers, tmp_path):
    arguments = build.configure_arguments(build.Kind("program", OTHER, (OTHER,)), tmp_path)
    machine = toolchain.machine(OTHER)
    assert f"--cross-prefix={machine}-linux-gnu-" in arguments
    assert f"--target-list={machine}-softmmu" in arguments
    assert f"--extra-cflags=-I{tmp_path}/usr/include" in arguments
    assert f"--cc=ccache {machine}-linux-gnu-gcc" in arguments
    assert {"--disable-download", "--enable-kvm", "--without-default-features"} <= set(arguments)


def test_a_native_build_for_tests_under_tcg_has_no_kvm(compilers):
    arguments = build.configure_arguments(build.Kind("tests-tcg", NATIVE, ("arm64", "x86_64"), kvm=False))
    assert "--disable-kvm" in arguments and "--enable-kvm" not in arguments
    assert "--target-list=aarch64-softmmu,x86_64-softmmu" in arguments
    assert not [word for word in arguments if word.startswith("--cross-prefix")]


def test_a_program_is_built_once(qmini, qemu_mirror, compilers):
    program = build.program(qmini, 2, "arm64")
    assert program.path == trees.worktree(qmini, 2).path / "build-arm64/qemu-system-aarch64"
    assert (program.arch, program.version, program.libraries) == ("arm64", "10.0.13", [])
    assert build.program(qmini, 2, "arm64") == program
    assert calls(compilers) == ["configure", "ninja"]
    assert build.program(qmini, 2, "x86_64").path.name == "qemu-system-x86_64"


def test_a_build_that_broke_off_is_taken_up_without_configuring_again(qmini, qemu_mirror, compilers):
    program = build.program(qmini, 2, "arm64")
    (program.path.parent / "series.json").unlink()
    build.program(qmini, 2, "arm64")
    assert calls(compilers) == ["configure", "ninja", "ninja"]


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


def test_what_is_not_installed_finds_the_machines_firmware(qmini, qemu_mirror, compilers, monkeypatch, tmp_path):
    write(tmp_path / "roms/efi-virtio.rom", "rom")
    monkeypatch.setattr(build, "FIRMWARE", (str(tmp_path / "roms"), "/nowhere/at/all"))
    for _ in range(2):
        folder = build.compiled(trees.worktree(qmini, 2), build.Kind("tests-tcg", NATIVE, ("arm64",), kvm=False))
        (folder / "series.json").unlink()
    bundle = folder / "qemu-bundle"
    assert (bundle / str(tmp_path)[1:] / "roms/efi-virtio.rom").read_text(encoding="utf-8") == "rom"
    assert not (bundle / "nowhere").exists()


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
    assert extra.touched_warnings(series, "x86_64") == {f"../{KVM}: warning: unused [-Wunused]"}


def test_warnings_of_what_the_series_changes_are_told_from_others(qmini, qemu_mirror, compilers):
    assert extra.touched_warnings(qmini, "arm64") == set()
    series = changed(qmini, [("int kvm20;", "int warned;")])
    assert extra.touched_warnings(series, "arm64") == {f"../{KVM}: warning: unused [-Wunused]"}
    build.log_of(trees.worktree(series, 3), build.Kind("program", "arm64", ("arm64",))).write_text(
        "../hw/other.c:7:1: warning: unused [-Wunused]\n", encoding="utf-8"
    )
    assert extra.touched_warnings(series, "arm64") == set()


def test_a_few_things_can_be_built_alone(qmini, qemu_mirror, compilers):
    tree = trees.worktree(qmini, 2)
    kind = build.Kind("units", NATIVE, ("arm64",), kvm=False, only=("tests/unit/test-x",))
    build.compiled(tree, kind)
    # The fake ninja makes programs only: it is not there, so it is built again.
    build.compiled(tree, kind)
    lines = compilers.read_text(encoding="utf-8").splitlines()
    assert [line.split()[0] for line in lines] == ["configure", "ninja", "ninja"]
    assert lines[1].endswith(" tests/unit/test-x") and "qemu-system" not in lines[1]
    assert kind.folder == "build-units-arm64"


def test_unit_tests_are_found_with_what_they_are_built_as(tmp_path, program, monkeypatch):
    meson = tmp_path / "bin/meson"
    cmd = [
        {"name": "a", "suite": ["qemu:unit"], "cmd": [f"{tmp_path}/tests/unit/a", "-k"]},
        {"name": "schema", "suite": ["qemu:unit"], "cmd": [f"{tmp_path}/pyvenv/bin/python3", "x.py"]},
        {"name": "q", "suite": ["qemu:qtest", "qemu:qtest-aarch64"], "cmd": [f"{tmp_path}/tests/qtest/q"]},
    ]
    program("meson", f"echo 'WARNING: words'\ncat <<'END'\n{json.dumps(cmd)}\nEND\n")
    monkeypatch.setattr(build, "meson", lambda: str(meson))
    assert build.test_programs(tmp_path, {}) == ["tests/qtest/migration-test", "tests/unit/a"]
