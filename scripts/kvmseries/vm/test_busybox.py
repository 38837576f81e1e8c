"""Where the guest's busybox is from: Debian, the machine itself, or a line that says where to get one."""

import platform
import struct

import pytest

from kvmseries.base import debian, distro, paths
from kvmseries.base.errors import Fail
from kvmseries.base.test_distro import RELEASES
from kvmseries.conftest import below, write
from kvmseries.kernel import toolchain
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


@pytest.mark.parametrize(
    "name, machine, data, line",
    [
        (
            "fedora",
            "aarch64",
            None,
            r"a static busybox for aarch64: .* install the package that has it, such as busybox-static, set SERIES_BUSYBOX "
            r"to a directory with its source, or put one at .*/busybox-arm64$",
        ),
        ("fedora", "aarch64", elf(ARM, INTERP), "static busybox for aarch64: .* install the package"),
        (
            "arch",
            "x86_64",
            elf(X86, LOAD),
            r"for aarch64, and Arch Linux has none for another architecture: set SERIES_BUSYBOX to a directory with its "
            r"source, put one at .*/busybox-arm64, or run it in a container of Debian: make run CONTAINER=1$",
        ),
        ("nixos", "aarch64", None, "install the package that has it, such as busybox-static, set SERIES_BUSYBOX"),
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


@pytest.fixture
def source(tmp_path, monkeypatch, program):
    """source(DATA): a directory with busybox's source, which builds that, is what SERIES_BUSYBOX names; the calls of make
    are in its file "calls" when it is built."""
    monkeypatch.setattr(toolchain, "install", lambda arch: None)
    tree = tmp_path / "busybox-1.37.0"
    write(tree / "Makefile", "VERSION = 1\nPATCHLEVEL = 37\nSUBLEVEL = 0\n")
    write(tree / "applets/applets.c", "")
    monkeypatch.setenv("SERIES_BUSYBOX", str(tree))

    def put(data):
        (tmp_path / "built").write_bytes(data)
        program(
            "make",
            f"""echo "$3 $4 $5" >> {tmp_path}/calls
case $* in
*defconfig) printf '# CONFIG_STATIC is not set\\nCONFIG_TC=y\\n' > "$2/.config" ;;
*) cat "$2/.config" >> {tmp_path}/calls; cp {tmp_path}/built "$2/busybox" ;;
esac
""",
        )
        return tree

    return put


def test_it_is_built_from_source_once_and_the_source_stays_as_it_is(source, tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    tree = source(elf(ARM, LOAD))
    before = below(tree)
    for _ in range(2):
        assert busybox.path("arm64") == paths.cache("busybox-arm64-1.37.0")
    assert busybox.path("arm64").read_bytes() == elf(ARM, LOAD)
    assert below(tree) == before
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[0] == "CROSS_COMPILE=aarch64-linux-gnu- mrproper defconfig"
    assert calls[2:] == ["CONFIG_STATIC=y", "# CONFIG_TC is not set"]
    assert [found for found in below(paths.cache_root()) if "busybox" in found and "locks" not in found] == [
        "busybox-arm64-1.37.0"
    ]


def test_source_that_builds_no_static_program_leaves_none(source):
    source(elf(ARM, INTERP))
    with pytest.raises(Fail, match="built no static program for arm64: see "):
        busybox.path("arm64")
    assert not [found for found in below(paths.cache_root()) if "busybox" in found and "locks" not in found]


@pytest.mark.parametrize("name", ["Makefile", "applets/applets.c"])
def test_a_directory_that_is_no_source_is_refused(source, name):
    (source(elf(ARM, LOAD)) / name).unlink()
    with pytest.raises(
        Fail, match="^SERIES_BUSYBOX: .*/busybox-1.37.0 is no source of busybox: give the directory that"
    ):
        busybox.path("arm64")
