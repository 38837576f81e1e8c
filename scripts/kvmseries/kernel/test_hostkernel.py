"""Packages from a server's own configuration: what is changed in it, what is refused, what is left behind."""

import gzip
import re
import shutil
from types import SimpleNamespace

import pytest

from kvmseries.base import paths, proc
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, compilers, write
from kvmseries.kernel import hostkernel
from kvmseries.source import trees

SERVER = """\
# Linux/arm64 6.1.0 Kernel Configuration
CONFIG_ARM64=y
CONFIG_KVM=y
CONFIG_LOCALVERSION="-cloud"
CONFIG_SYSTEM_TRUSTED_KEYS="debian/certs/x.pem"
# CONFIG_IDLE_PAGE_TRACKING is not set
CONFIG_DEBUG_INFO=y
CONFIG_EXT4_FS=m
"""


def test_a_servers_configuration_is_taken_as_it_is_but_for_what_must_change():
    lines = hostkernel.changed(SERVER, {**hostkernel.CHANGES, **hostkernel.NEEDED}).splitlines()
    for line in (
        "CONFIG_ARM64=y",
        "CONFIG_KVM=y",
        "CONFIG_EXT4_FS=m",
        'CONFIG_LOCALVERSION=""',
        'CONFIG_SYSTEM_TRUSTED_KEYS=""',
        "CONFIG_IDLE_PAGE_TRACKING=y",
        "# CONFIG_DEBUG_INFO is not set",
    ):
        assert lines.count(line) == 1, line
    assert not [line for line in lines if "cloud" in line or "debian/certs" in line or line == "CONFIG_DEBUG_INFO=y"]


WHOLE = gzip.compress(SERVER.encode())
X86 = "CONFIG_X86_64=y\nCONFIG_KVM=m\n"
NO_KVM = SERVER.replace("CONFIG_KVM=y", "# CONFIG_KVM is not set")


@pytest.mark.parametrize(
    "data, arch, line",
    [
        (SERVER.encode(), "arm64", ""),
        (WHOLE, "arm64", ""),
        (f"{X86}CONFIG_KVM_AMD=m\n".encode(), "x86_64", ""),
        (WHOLE[:20], "arm64", ": not a whole gzip file"),
        (NO_KVM.encode(), "arm64", " builds no KVM (CONFIG_KVM is not"),
        (b"nothing\n", "arm64", " is not a kernel configuration"),
        (X86.encode(), "arm64", " is not a configuration for arm64, but for x86_64: add --arch x86_64"),
        (b"CONFIG_RISCV=y\nCONFIG_KVM=y\n", "arm64", " is not a configuration for arm64"),
        (X86.encode(), "x86_64", " builds KVM for no CPU: set CONFIG_KVM_INTEL or"),
        (None, "arm64", ": No such file"),
    ],
)
def test_a_configuration_may_be_gzipped_and_one_that_cannot_be_measured_is_refused(tmp_path, data, arch, line):
    file = tmp_path / "config"
    if data is not None:
        file.write_bytes(data)
    if not line:
        assert hostkernel.read_config(file, arch).encode() == (SERVER.encode() if arch == "arm64" else data)
        return
    with pytest.raises(Fail, match=re.escape(f"{file}{line}")):
        hostkernel.read_config(file, arch)


# What make does: olddefconfig takes .config as it is, but for $TURNED_OFF; bindeb-pkg leaves packages above O=.
MAKE = """\
for word; do case $word in *=*) eval "export ${word%%=*}='${word#*=}'" ;; esac; done
case "$*" in
*olddefconfig*) [ -z "$TURNED_OFF" ] || sed -i "/^$TURNED_OFF=/d" "$O/.config" ;;
*-pkg*)
	echo "$*" >> "$CALLS"
	mkdir -p "$O/include/config"; echo "5.10.262$LOCALVERSION" > "$O/include/config/kernel.release"
	case "$*" in
	*bindeb-pkg*) for kind in image headers libc-dev; do
		echo $kind > "$O/../linux-$kind-5.10.262${LOCALVERSION}_1_arm64.deb"; done
		echo > "$O/../linux-upstream_1_arm64.buildinfo" ;;
	*) echo tar > "$O/linux-5.10.262${LOCALVERSION}-arm64.tar" ;;
	esac
	[ -z "$BROKEN" ] || { echo 'x.c:1: error: no'; exit 2; } ;;
esac
"""


@pytest.fixture
def tree(tmp_path, program, monkeypatch):
    """A tree, and a make that builds packages; its calls are lines of `calls`."""
    compilers(program)
    for name in ("dpkg-buildpackage", "fakeroot", "dh_listpackages"):
        program(name, "")
    program("make", MAKE)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(trees, "head", lambda path: "c0ffee")
    (tmp_path / "linux").mkdir()
    return SimpleNamespace(path=tmp_path / "linux", point="upto-3", version="5.10.262")


@pytest.mark.parametrize(
    "form, name", [("deb", "linux-image-5.10.262-upto-3_1_arm64.deb"), ("tar", "linux-5.10.262-upto-3-arm64.tar")]
)
def test_a_package_is_built_once_and_the_tree_is_left_clean(tree, tmp_path, form, name):
    made = hostkernel.build(tree, "arm64", SERVER, form)
    assert (made.release, made.package.name) == ("5.10.262-upto-3", name) and made.package.exists()
    assert [path.name for path in tree.path.iterdir() if not path.name.startswith("build-")] == []
    assert hostkernel.build(tree, "arm64", SERVER, form) == made
    assert len((tmp_path / "calls").read_text(encoding="utf-8").splitlines()) == 1
    hostkernel.build(tree, "arm64", SERVER + "CONFIG_MORE=y\n", form)
    assert len((tmp_path / "calls").read_text(encoding="utf-8").splitlines()) == 2


def test_an_overlay_is_in_the_release_and_in_the_configuration(tree):
    made = hostkernel.build(tree, "arm64", SERVER, "deb", ("lockstat",))
    assert made.release == "5.10.262-lockstat-upto-3"
    text = next(tree.path.glob("build-*/.config")).read_text(encoding="utf-8")
    assert "CONFIG_LOCK_STAT=y\n" in text and "CONFIG_EXT4_FS=m\n" in text


@pytest.mark.parametrize("form", ["deb", "tar"])
def test_a_build_that_fails_leaves_nothing(tree, monkeypatch, form):
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(Fail, match="x.c:1: error: no"):
        hostkernel.build(tree, "arm64", SERVER, form)
    assert [path.name for path in tree.path.iterdir() if not path.name.startswith("build-")] == []
    assert not [name for name in below(paths.out("hostkernel", "x").parent) if "linux" in name or "made" in name]


def test_a_symbol_that_the_kernel_does_not_take(tree, monkeypatch, capsys):
    monkeypatch.setenv("TURNED_OFF", "CONFIG_KVM")
    with pytest.raises(Fail, match="this kernel turns KVM off with that configuration"):
        hostkernel.build(tree, "arm64", SERVER)
    monkeypatch.setenv("TURNED_OFF", "CONFIG_USERFAULTFD")
    hostkernel.build(tree, "arm64", SERVER)
    assert "the kernel does not take CONFIG_USERFAULTFD: tests that need it will fail" in capsys.readouterr().err


def test_debhelper_is_asked_for_before_the_build_where_packages_need_it(tree, tmp_path, monkeypatch):
    which = shutil.which
    monkeypatch.setattr(proc.shutil, "which", lambda name: None if name == "dh_listpackages" else which(name))
    assert hostkernel.build(tree, "arm64", SERVER).package.exists()
    write(tree.path / "scripts/package/debian/rules", "")
    (tmp_path / "calls").unlink()
    with pytest.raises(Fail, match="^dh_listpackages is missing: .*debhelper"):
        hostkernel.build(tree, "arm64", SERVER)
    assert hostkernel.build(tree, "arm64", SERVER, "tar").package.exists()
    assert len((tmp_path / "calls").read_text(encoding="utf-8").splitlines()) == 1


NO_ENGINE = "echo 'x.c:30:10: fatal error: openssl/engine.h: No such file or directory' >&2; exit 1\n"


@pytest.mark.parametrize("name", ["scripts/sign-file.c", "certs/extract-cert.c"])
@pytest.mark.parametrize("compiles", [True, False])
def test_modules_are_not_signed_where_what_signs_does_not_compile(tree, program, capsys, name, compiles):
    write(tree.path / name, "#include <openssl/engine.h>\n")
    program("gcc", "echo 'gcc 12.2.0'\n" if compiles else NO_ENGINE)
    hostkernel.build(tree, "arm64", f"{SERVER}CONFIG_MODULE_SIG=y\n")
    lines = next(tree.path.glob("build-*/.config")).read_text(encoding="utf-8").splitlines()
    said = "openssl has no engine.h, which linux 5.10.262 signs with: its modules are not signed"
    assert ("CONFIG_MODULE_SIG=y" in lines, said in capsys.readouterr().err) == (compiles, not compiles)
    assert ("# CONFIG_SYSTEM_TRUSTED_KEYRING is not set" in lines) != compiles


def test_what_signs_is_really_compiled(tree):
    """By the machine's own compiler: a header that no openssl has is like one that this lacks."""
    file = write(tree.path / "scripts/sign-file.c", "#include <stdio.h>\n")
    assert not hostkernel.lacks_engine(tree.path)
    write(tree.path / "scripts/stdio.h", "#include <not-there/openssl/engine.h>\n")
    file.write_text('#include "stdio.h"\n', encoding="utf-8")
    assert hostkernel.lacks_engine(tree.path)
    write(tree.path / "scripts/stdio.h", "int broken\n")
    assert not hostkernel.lacks_engine(tree.path)


def test_a_configuration_that_cannot_do_without_signatures_is_told(tree, program, monkeypatch, tmp_path):
    write(tree.path / "scripts/sign-file.c", "")
    program("gcc", NO_ENGINE)
    selects = "echo CONFIG_SYSTEM_TRUSTED_KEYRING=y >> ${word#O=}/.config"
    program("make", f"for word; do case $word in O=*) {selects} ;; esac; done")
    with pytest.raises(Fail, match="no engine.h, and something in that configuration selects CONFIG_SYSTEM_TRUSTED_K"):
        hostkernel.build(tree, "arm64", SERVER)
    assert not (tmp_path / "calls").exists()
