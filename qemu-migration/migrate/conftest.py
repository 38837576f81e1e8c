"""A QEMU of a few files with a series of two patches, and programs that only look as if they built it."""

import hashlib
import shutil
import subprocess
from types import SimpleNamespace

import pytest

from kvmseries.base import paths
from kvmseries.conftest import *  # noqa: F403
from kvmseries.conftest import edit, fake_mirror, FORMAT, git, write
from kvmseries.source import catalog
from migrate import build

KVM = "accel/kvm/kvm-all.c"
FILE = "qemu_10.0.13+ds.orig.tar.gz"
VERSION = "1:10.0.13+ds-1"
# What meson would write is what the configure of these tests writes.
CONFIGURE = """\
#!/bin/sh
echo "configure $*" >> "$CALLS"
touch build.ninja
"""
CHECKPATCH = """\
#!/bin/sh
for patch; do :; done
case $(cat "$patch") in *BADSTYLE*) echo "$patch:9: WARNING: line over 80 characters"; exit 1 ;; esac
echo "$patch has no obvious style problems and is ready for submission."
"""


@pytest.fixture(autouse=True)
def sandbox(own_world, monkeypatch, tmp_path):
    """See ../conftest.py."""
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    (tmp_path / "calls").touch()


def _sources(tree):
    write(tree / "VERSION", "10.0.13\n")
    write(tree / KVM, "".join(f"int kvm{number};\n" for number in range(40)))
    write(tree / "docs/devel.rst", "words\n")
    write(tree / "pc-bios/meson.build", "fds = [\n 'edk2-arm-code.fd',\n 'edk2-x86_64-secure-code.fd',\n]\n")
    for name, text in (("configure", CONFIGURE), ("scripts/checkpatch.pl", CHECKPATCH)):
        write(tree / name, text)
        (tree / name).chmod(0o755)


@pytest.fixture(scope="session")
def qemu_made(tmp_path_factory):
    """What is made once: the sources as git tree and as tarball, and their patches/ entry."""
    top = tmp_path_factory.mktemp("qemu")
    tree = top / "qemu-10.0.13"
    _sources(tree)
    tarball = top / FILE
    subprocess.run(["tar", "-czf", str(tarball), "-C", str(top), tree.name], check=True)
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "QEMU")
    patched = top / "patched"
    shutil.copytree(tree, patched)
    git(patched, "tag", "base")
    edit(patched, KVM, "int kvm10;", "int first;")
    git(patched, "commit", "-q", "-a", "-m", "accel/kvm: Take the first step\n\nWhy: because.")
    edit(patched, KVM, "int kvm30;", "int second;")
    git(patched, "commit", "-q", "-a", "-m", "accel/kvm: Take the second step\n\nWhy: because.")
    mini = top / "patches/qmini"
    git(patched, *FORMAT, str(mini))
    stat = git(patched, "diff", "--stat=72", "--summary", "--no-renames", "base..HEAD").rstrip()
    log = git(patched, "shortlog", "-w72,2,4", "base..HEAD").rstrip()
    write(
        mini / "0000-cover-letter.patch",
        "From: Tess Tester <tess@example.org>\nSubject: [PATCH] Tiny\n\n"
        f'"accel/kvm: Take the first step", "accel/kvm: Take the second step".\n\n{log}\n\n{stat}\n',
    )
    write(
        mini / "base",
        f"""\
project: qemu
release: 10.0.13
tag: v10.0.13
arches: [arm64, x86_64]
versions:
  - release: 10.0.13
    package: qemu
    version: {VERSION}
    suite: trixie trixie-security
    file: {FILE}
    sha256: {hashlib.sha256(tarball.read_bytes()).hexdigest()}
""",
    )
    return SimpleNamespace(tree=tree, tarball=tarball, patched=patched, patches=mini.parent)


@pytest.fixture
def qmini(tmp_path, qemu_made, monkeypatch):
    """The series "qmini", in a patches/ of the test's own."""
    shutil.copytree(qemu_made.patches, tmp_path / "patches")
    monkeypatch.setattr(paths, "PATCHES", tmp_path / "patches")
    return catalog.load("qmini")


@pytest.fixture
def qemu_mirror(program, qemu_made, tmp_path):
    """A mirror that has the tarball; see fake_mirror()."""
    listing = f"qemu | {VERSION} | http://deb.example.org Sources"
    return fake_mirror(program, tmp_path / "downloads", "source", f"cp '{qemu_made.tarball}' .", listing)


@pytest.fixture
def compilers(program, monkeypatch, tmp_path):
    """Compilers and ninja that take no time; what configure and ninja are called with is a line each of the
    file that is returned.  A source line "broken" does not compile, "warned" is warned of."""
    for name in ("gcc", "aarch64-linux-gnu-gcc", "x86_64-linux-gnu-gcc"):
        program(name, """case $1 in -print-file-name=*) echo "/lib/${1#*=}" ;; *) echo 'fake gcc 1.0' ;; esac\n""")
    for name in ("pkg-config", "ccache", "make", "readelf"):
        program(name, "exit 0\n")
    program(
        "ninja",
        f"""\
echo "ninja $*" >> "$CALLS"
grep -qx 'int broken;' ../{KVM} && {{ echo "../{KVM}:3:1: error: broken"; exit 1; }}
grep -qx 'int warned;' ../{KVM} && echo "../{KVM}:7:1: warning: unused [-Wunused]"
for name; do case $name in qemu-system-*) touch "$name" ;; esac; done
exit 0
""",
    )
    sysroot = tmp_path / "sysroot"
    write(sysroot / "pkg-config", "")
    monkeypatch.setattr(build.sysroot, "cross", lambda arch: sysroot)
    monkeypatch.setattr(build, "test_programs", lambda folder, env: ["tests/one"])
    return tmp_path / "calls"
