"""Where the guest's busybox is from: Debian, the machine itself, or a line that says where to get one."""

import platform
import struct

import pytest

from kvmseries.base import debian, distro, paths
from kvmseries.base.errors import Fail
from kvmseries.base.test_distro import RELEASES
from kvmseries.conftest import below, write
from kvmseries.vm import busybox


def elf(machine, *kinds):
    """A program of 64 bits for e_machine `machine` with program headers of these kinds."""
    head = b"\x7fELF\x02\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, len(kinds), 0, 0, 0
    )
    return head + b"".join(struct.pack("<I", kind).ljust(56, b"\0") for kind in kinds)


ARM, X86, LOAD, INTERP = 183, 62, 1, 3


@pytest.mark.parametrize(
    "data, arch, static",
    [
        (elf(ARM, LOAD), "arm64", True),
        (elf(ARM, LOAD), "x86_64", False),
        (elf(X86, LOAD), "x86_64", True),
        (elf(ARM, INTERP, LOAD), "arm64", False),
        (b"#!/bin/sh\n", "arm64", False),
        (b"", "arm64", False),
        (elf(ARM, LOAD)[:60], "arm64", False),
    ],
)
def test_a_static_program_is_known_by_its_headers(tmp_path, data, arch, static):
    (tmp_path / "program").write_bytes(data)
    assert busybox.static_for(tmp_path / "program", arch) is static


@pytest.fixture
def on(tmp_path, monkeypatch, only_tools):
    """on(NAME, MACHINE): a machine with that os-release and no apt."""

    def become(name, machine):
        write(tmp_path / "os-release", RELEASES[name])
        monkeypatch.setattr(distro, "FILES", (str(tmp_path / "os-release"),))
        monkeypatch.setattr(platform, "machine", lambda: machine)

    return become


@pytest.fixture
def own(tmp_path):
    """own(DATA): the machine's busybox."""

    def put(data):
        (tmp_path / "bin/busybox").write_bytes(data)
        (tmp_path / "bin/busybox").chmod(0o755)

    return put


def test_the_machines_own_is_copied(on, own):
    on("fedora", "aarch64")
    own(elf(ARM, LOAD))
    assert busybox.path("arm64").read_bytes() == elf(ARM, LOAD)
    assert busybox.path("arm64") == paths.cache("busybox-arm64")
    # One that the user has put there is taken.
    write(paths.cache("busybox-arm64"), "mine")
    assert busybox.path("arm64").read_text(encoding="utf-8") == "mine"


PUT = r"put one at .*/busybox-arm64"


@pytest.mark.parametrize(
    "name, machine, data, line",
    [
        ("fedora", "aarch64", None, f"for aarch64: .* that has it, such as busybox-static, or {PUT}$"),
        ("fedora", "aarch64", elf(ARM, INTERP), "static busybox for aarch64: .* install the package"),
        (
            "arch",
            "x86_64",
            elf(X86, LOAD),
            f"for aarch64, and Arch Linux has none for another architecture: {PUT}, or run it in a container of Debian: ",
        ),
    ],
)
def test_where_there_is_none(on, own, name, machine, data, line):
    on(name, machine)
    if data:
        own(data)
    with pytest.raises(Fail, match=line):
        busybox.path("arm64")
    assert not [found for found in below(paths.cache_root()) if found.startswith(("busybox", ".busybox"))]


def test_ubuntu_installs_its_own(on, own, monkeypatch):
    on("ubuntu", "aarch64")
    asked = []
    monkeypatch.setattr(debian, "install", lambda *groups: (asked.append(groups), own(elf(ARM, LOAD))))
    assert busybox.path("arm64").read_bytes() == elf(ARM, LOAD) and asked == [("busybox",)]


def test_debians_is_fetched_where_there_is_a_mirror(program, monkeypatch, tmp_path):
    monkeypatch.setattr(debian, "fetch_native", lambda package, arch: tmp_path / f"{package}_{arch}.deb")
    program("dpkg-deb", 'mkdir -p "$3/usr/bin"; echo "$2" > "$3/usr/bin/busybox"\n')
    assert busybox.path("arm64").read_text(encoding="utf-8") == f"{tmp_path}/busybox-static_arm64.deb\n"
