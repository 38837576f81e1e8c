"""Compilers: which are too old for a kernel, and which link no static program."""

import platform

import pytest

from kvmseries.base import distro
from kvmseries.base.errors import Fail
from kvmseries.base.test_distro import RELEASES
from kvmseries.conftest import wanted, write
from kvmseries.kernel import toolchain


@pytest.mark.parametrize(
    "gcc, kernel, oldest",
    [
        ("12.2.0", "5.10.262", None),
        ("4.9.4", "5.10.262", None),
        ("12", "7.3.4", None),
        ("8.1.0", "6.16.0", None),
        ("5.1.0", "6.1.5", None),
        ("some words", "5.10.262", None),
        ("4.8.5", "5.10.262", "4.9"),
        ("7.5.0", "7.3.4", "8.1"),
        ("4.9.4", "6.1.5", "5.1"),
    ],
)
def test_a_compiler_that_is_too_old_is_told(program, gcc, kernel, oldest):
    name = f"{toolchain.prefix('arm64')}gcc"
    program(name, f"echo '{gcc}'\n")
    if not oldest:
        toolchain.check("arm64", kernel)
        return
    line = f"^linux {kernel} needs gcc {oldest} or newer, and {name} is {gcc}: install a newer one"
    with pytest.raises(Fail, match=line):
        toolchain.check("arm64", kernel)


@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
def test_the_compilers_here_link_static_programs(arch):
    wanted(f"{toolchain.prefix(arch)}gcc")
    toolchain.check_static(arch)


@pytest.mark.parametrize(
    "name, machine, arch, line",
    [
        ("debian", "x86_64", "x86_64", "^gcc links no static program, .*: install the package libc6-dev, or run `make"),
        (
            "fedora",
            "x86_64",
            "arm64",
            "^aarch64-linux-gnu-gcc links .*: use --arch x86_64, or run it in a container of",
        ),
        ("fedora", "riscv64", "arm64", "^aarch64-linux-gnu-gcc links .* are static: run it in a container of"),
        ("debian", "x86_64", "arm64", "^aarch64-.* links .*: install the package libc6-dev-arm64-cross, or run `make"),
    ],
)
def test_a_compiler_without_a_static_library(tmp_path, monkeypatch, program, name, machine, arch, line):
    write(tmp_path / "os-release", RELEASES[name])
    monkeypatch.setattr(distro, "FILES", (str(tmp_path / "os-release"),))
    monkeypatch.setattr(platform, "machine", lambda: machine)
    program(f"{toolchain.prefix(arch)}gcc", "echo 'ld: cannot find -lc' >&2; exit 1\n")
    with pytest.raises(Fail, match=line):
        toolchain.check_static(arch)
