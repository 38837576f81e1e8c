"""Libraries for another architecture: found, linked, and what a program needs of them."""

import os

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import write
from migrate import sysroot

PROGRAM = """\
      [Requesting program interpreter: /lib/ld-linux-aarch64.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libglib-2.0.so.0]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000c (INIT)               0x1000
"""


@pytest.fixture
def program_of(program, tmp_path):
    """readelf prints what the file has; gcc knows the libraries in tmp_path/gcc."""
    program("readelf", 'for file; do :; done\ncat "$file"\n')
    for name in ("gcc", "aarch64-linux-gnu-gcc"):
        program(name, f"name=${{1#*=}}\n[ -e '{tmp_path}/gcc/'$name ] && echo '{tmp_path}/gcc/'$name || echo $name\n")
    write(tmp_path / "qemu", PROGRAM)
    for name in ("libc.so.6", "ld-linux-aarch64.so.1"):
        write(tmp_path / "gcc" / name, " (NEEDED) Shared library: [ld-linux-aarch64.so.1]\n")
    write(tmp_path / "root/lib/aarch64-linux-gnu/libpcre2-8.so.0", "")
    write(
        tmp_path / "root/usr/lib/aarch64-linux-gnu/libglib-2.0.so.0",
        " (NEEDED) Shared library: [libpcre2-8.so.0]\n (NEEDED) Shared library: [libc.so.6]\n",
    )
    return tmp_path / "qemu"


def test_libraries_of_libraries_and_the_loader_are_found(program_of, tmp_path):
    found = sysroot.libraries(program_of, "arm64", tmp_path / "root")
    assert sorted(path.name for path in found[:-1]) == ["libc.so.6", "libglib-2.0.so.0", "libpcre2-8.so.0"]
    assert found[-1] == tmp_path / "gcc/ld-linux-aarch64.so.1"


def test_a_library_that_is_nowhere_is_named(program_of, tmp_path):
    (tmp_path / "root/lib/aarch64-linux-gnu/libpcre2-8.so.0").unlink()
    with pytest.raises(Fail, match="libpcre2-8.so.0, which QEMU for arm64 is linked with, is not found"):
        sysroot.libraries(program_of, "arm64", tmp_path / "root")


@pytest.fixture
def debs(program, monkeypatch, tmp_path):
    """A suite without the newer name of glib's package; a .deb is a file that unpacks to its own name."""
    monkeypatch.setattr(debian, "own_suite", lambda: "bookworm")

    def fetch(package, arch):
        if package == "libglib2.0-0t64" or package == os.environ.get("LACKS"):
            raise Fail(f"fetching {package} failed")
        return tmp_path / f"{package}_{arch}"

    monkeypatch.setattr(debian, "fetch_native", fetch)
    program("dpkg-deb", 'mkdir -p "$3/usr"; touch "$3/usr/${2##*/}"\n')


def test_a_sysroot_is_of_what_the_suite_has_whole_or_not_at_all(debs, monkeypatch):
    with monkeypatch.context() as lacking:
        lacking.setenv("LACKS", "zlib1g-dev")
        with pytest.raises(Fail, match="fetching zlib1g-dev failed"):
            sysroot.cross("arm64")
    assert not paths.out("cache/sysroot-bookworm-arm64").exists()
    names = {path.name for path in (sysroot.cross("arm64") / "usr").iterdir()}
    assert {"libglib2.0-0_arm64", "libglib2.0-dev_arm64", "libfdt-dev_arm64"} <= names
