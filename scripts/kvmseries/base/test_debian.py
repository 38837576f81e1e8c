"""apt-get, apt-cache and dpkg-query are scripts: nothing here reaches a mirror."""

import hashlib

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, INSTALLED, NO_NETWORK, write

PACKAGE = ("linux-source-5.10", "5.10.262-1", "bullseye-security")
DEB = "linux-source-5.10_5.10.262-1.deb"


@pytest.fixture
def fetch(made):
    digest = hashlib.sha256(made.deb.read_bytes()).hexdigest()
    return lambda sha256=digest: debian.fetch_pinned(*PACKAGE, sha256)


def downloads(then):
    """An apt-get whose `download` does `then`."""
    return f'case "$*" in *download*) {then} ;; *update*) exit 0 ;; esac\n{NO_NETWORK}'


def cached():
    return below(paths.out("cache/deb")) if paths.out("cache/deb").exists() else []


def test_a_package_is_fetched_once_and_kept_if_it_is_the_one(fetch, mirror, made, program):
    assert fetch() == paths.out("cache/deb", DEB) and fetch().read_bytes() == made.deb.read_bytes()
    assert cached() == [DEB]
    # The system's sources and lists are not touched.
    state = paths.out("cache/apt/bullseye-security")
    conf = (state / "apt.conf").read_text(encoding="utf-8")
    for line in ("Dir::Etc::sourcelist", "Dir::State::lists", "Dir::State::status", "Dir::Cache"):
        assert f'{line} "{state}' in conf
    assert 'Dir::Etc::sourceparts "/dev/null"' in conf
    assert mirror.read_text(encoding="utf-8").splitlines() == ["-q download linux-source-5.10=5.10.262-1"]
    write(paths.out("cache/deb", DEB), "broken")
    assert fetch().read_bytes() == made.deb.read_bytes()
    program("apt-get", NO_NETWORK)
    assert fetch().exists()


@pytest.mark.parametrize(
    "programs, line",
    [
        (
            {"apt-get": NO_NETWORK},
            "cannot fetch linux-source-5.10 5.10.262-1: no answer from the mirror .*Temporary failure.*"
            "not in the cache: connect.*--tree",
        ),
        (
            {"apt-cache": "echo ' linux-source-5.10 | 5.10.262-11 | http://x'\n"},
            "linux-source-5.10 5.10.262-1 has left the mirrors .bullseye-security.: .*--tree",
        ),
        ({"apt-get": downloads("echo half > x.deb; echo 'E: Failed'; exit 100")}, "cannot fetch .*E: Failed; repeat"),
        ({"apt-get": downloads("echo other > x.deb; exit 0")}, "another checksum than the one pinned.*do not use it"),
        ({"apt-get": "exit 0\n"}, "has apt sources that name no Debian mirror: give your own kernel tree"),
    ],
)
def test_a_package_that_cannot_be_had_is_told_and_not_kept(fetch, mirror, program, programs, line):
    for name, script in programs.items():
        program(name, script)
    with pytest.raises(Fail, match=line):
        fetch()
    assert cached() == []


def test_a_machine_without_apt_and_dpkg(fetch, only_tools):
    debian.install(*debian.GROUPS)
    assert not debian.has_mirror()
    with pytest.raises(Fail, match="no apt to fetch sources with: give your own kernel tree"):
        fetch()


@pytest.mark.parametrize(
    "lines, archive, security",
    [
        (
            "http://a/debian bookworm Debian\nhttp://a/debian-security bookworm-security Debian\n",
            "http://a/debian",
            "http://a/debian-security",
        ),
        ("http://ppa.example.org/x bookworm Other\nhttps://a/debian/ bookworm Debian\n", "https://a/debian/", None),
        ("http://a/debian bookworm $(ORIGIN)\n", "http://a/debian", None),
        ("cdrom:[x] bookworm Debian\nhttp://a/ubuntu noble Ubuntu\n", None, None),
        ("", None, None),
    ],
)
def test_the_machines_own_mirrors_are_used(program, lines, archive, security):
    program("apt-get", f"cat <<'END'\n{lines}END\n")
    assert debian._sites() == (archive, security)
    assert debian.has_mirror() is bool(archive)


def test_the_security_suite_is_looked_for_beside_the_archive(program):
    program("apt-get", "echo 'http://a/debian bookworm Debian'\n")
    for suite, site in (("bullseye-security", "http://a/debian-security"), ("bullseye", "http://a/debian")):
        assert debian._source("deb", suite, "[x]") == f"deb [x] {site} {suite} main"


@pytest.fixture
def bookworm(program, monkeypatch):
    monkeypatch.setattr(debian, "own_suite", lambda: "bookworm")
    program("dpkg", "echo riscv64\n")


def test_a_backport_is_of_the_machines_own_release_and_kept(bookworm, mirror, made):
    deb = debian.fetch_backport("some-tool")
    assert deb.read_bytes() == made.deb.read_bytes()
    assert debian.fetch_backport("some-tool") == deb
    assert mirror.read_text(encoding="utf-8").splitlines() == ["-q download some-tool"]
    state = paths.out("cache/apt/bookworm-backports-riscv64")
    assert 'APT::Architecture "riscv64"' in (state / "apt.conf").read_text(encoding="utf-8")
    sources = (state / "sources.list").read_text(encoding="utf-8")
    assert sources.endswith(" http://deb.example.org/debian bookworm-backports main\n")


@pytest.mark.parametrize(
    "fetch", [lambda: debian.fetch_pinned(*PACKAGE, "0" * 64), lambda: debian.fetch_native("herd", "amd64")]
)
def test_a_cache_that_fills_up_while_apt_fetches_is_said(program, fetch):
    full = "Write error - write (28: No space left on device)"
    program("apt-get", NO_NETWORK.replace("Temporary failure resolving", full))
    with pytest.raises(Fail, match=f"^disk full: {paths.cache_root()}; free some space, or set SERIES_CACHE"):
        fetch()


@pytest.fixture
def lacking(program, tmp_path, monkeypatch):
    """xz-utils is not installed; apt-get's calls are lines of a file."""
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    log = tmp_path / "calls"
    program("dpkg-query", f'[ "$4" = xz-utils ] && exit 1\n{INSTALLED}')
    program("apt-get", f"echo \"$*\" >> '{log}'\n")
    return log


def test_only_what_is_lacking_is_installed_and_said(lacking, capsys, program):
    debian.install("build")
    assert not lacking.exists()
    debian.install("fetch", "build")
    calls = lacking.read_text(encoding="utf-8").splitlines()
    assert len(calls) == 2 and "update" in calls[0]
    assert calls[1].endswith("install -y --no-install-recommends xz-utils")
    assert capsys.readouterr().err == "installing xz-utils\n"


def test_an_install_that_fails_names_package_and_reason(lacking, program):
    program("apt-get", "echo 'E: Unable to locate package xz-utils'; exit 100\n")
    with pytest.raises(Fail, match="cannot install xz-utils: E: Unable to locate.*as root, run"):
        debian.install("fetch")


def test_neither_root_nor_sudo(lacking, monkeypatch, only_tools, program):
    program("dpkg-query", "exit 1\n")
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    with pytest.raises(Fail, match="not root and no sudo: install these packages first: xz-utils"):
        debian.install("fetch")
