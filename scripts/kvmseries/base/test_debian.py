"""apt-get, apt-cache and dpkg-query are scripts: nothing here reaches a mirror."""

import hashlib

import pytest

from kvmseries.base import debian, paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, INSTALLED, NO_NETWORK, write

PACKAGE = ("linux-source-5.10", "5.10.262-1", "bullseye-security")


@pytest.fixture
def fetch(made):
    digest = hashlib.sha256(made.deb.read_bytes()).hexdigest()
    return lambda sha256=digest: debian.fetch_pinned(*PACKAGE, sha256)


def cached():
    return below(paths.out("cache/deb")) if paths.out("cache/deb").exists() else []


def test_a_package_is_fetched_and_kept(fetch, mirror, made):
    assert fetch().read_bytes() == made.deb.read_bytes()
    assert cached() == ["linux-source-5.10_5.10.262-1.deb"]
    assert fetch() == paths.out("cache/deb/linux-source-5.10_5.10.262-1.deb")
    assert mirror.read_text(encoding="utf-8").splitlines() == ["-q download linux-source-5.10=5.10.262-1"]


def test_no_network_and_no_cache(fetch):
    with pytest.raises(
        Fail,
        match="cannot fetch linux-source-5.10 5.10.262-1: no answer from the "
        "mirror .*Temporary failure.*not in the cache: connect.*--tree",
    ):
        fetch()
    assert cached() == []


def test_what_is_cached_takes_no_network(fetch, mirror, program):
    fetch()
    program("apt-get", NO_NETWORK)
    assert fetch().exists()


def test_a_version_that_has_left_the_mirrors(fetch, mirror, program):
    program("apt-cache", "echo ' linux-source-5.10 | 5.10.262-11 | http://x'\n")
    with pytest.raises(Fail, match="linux-source-5.10 5.10.262-1 has left the mirrors .bullseye-security.: .*--tree"):
        fetch()
    assert cached() == []


def test_a_package_with_another_checksum_is_not_kept(fetch, mirror):
    with pytest.raises(Fail, match="another checksum than the one pinned.*do not use it"):
        fetch("0" * 64)
    assert cached() == []


def test_a_cached_file_with_another_checksum_is_fetched_again(fetch, mirror, made):
    write(paths.out("cache/deb/linux-source-5.10_5.10.262-1.deb"), "broken")
    assert fetch().read_bytes() == made.deb.read_bytes()


def test_a_download_that_breaks_off_is_not_kept(fetch, mirror, program):
    program(
        "apt-get",
        "case \"$*\" in *download*) echo half > x.deb; echo 'E: Failed'; exit 100 ;; "
        f"*update*) exit 0 ;; esac\n{NO_NETWORK}",
    )
    with pytest.raises(Fail, match="cannot fetch .*E: Failed; repeat"):
        fetch()
    assert cached() == []


def test_a_machine_without_apt(fetch, only_tools):
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


def test_the_security_suite_is_looked_for_beside_the_archive(program):
    program("apt-get", "echo 'http://a/debian bookworm Debian'\n")
    assert debian._suite_lines("bullseye-security", "[x]") == [
        "deb [x] http://a/debian-security bullseye-security main"
    ]
    assert debian._suite_lines("bullseye", "[x]") == ["deb [x] http://a/debian bullseye main"]


def test_a_machine_without_debian_mirrors(fetch, program):
    program("apt-get", "exit 0\n")
    with pytest.raises(Fail, match="has apt sources that name no Debian mirror: give your own kernel tree"):
        fetch()


def test_apt_works_in_a_state_of_its_own(fetch, mirror, program, tmp_path):
    """The system's sources and lists are not touched."""
    program(
        "apt-cache", f"cp \"$APT_CONFIG\" '{tmp_path}/apt.conf'\necho ' linux-source-5.10 | 5.10.262-1 | http://x'\n"
    )
    fetch()
    conf = (tmp_path / "apt.conf").read_text(encoding="utf-8")
    state = paths.out("cache/apt/bullseye-security")
    for line in ("Dir::Etc::sourcelist", "Dir::State::lists", "Dir::State::status", "Dir::Cache "):
        assert f'{line.strip()} "{state}' in conf
    assert 'Dir::Etc::sourceparts "/dev/null"' in conf


def test_a_backport_is_of_the_machines_own_release_and_kept(mirror, made, program, monkeypatch):
    monkeypatch.setattr(debian, "own_suite", lambda: "bookworm")
    program("dpkg", "echo riscv64\n")
    deb = debian.fetch_backport("some-tool")
    assert deb.read_bytes() == made.deb.read_bytes()
    assert debian.fetch_backport("some-tool") == deb
    assert mirror.read_text(encoding="utf-8").splitlines() == ["-q download some-tool"]
    state = paths.out("cache/apt/bookworm-backports-riscv64")
    assert 'APT::Architecture "riscv64"' in (state / "apt.conf").read_text(encoding="utf-8")
    assert (
        (state / "sources.list")
        .read_text(encoding="utf-8")
        .endswith(" http://deb.example.org/debian bookworm-backports main\n")
    )


def test_a_backport_that_cannot_be_had_is_not_kept(mirror, program, monkeypatch):
    monkeypatch.setattr(debian, "own_suite", lambda: "bookworm")
    program(
        "apt-get",
        "case \"$*\" in *download*) echo 'E: Unable to locate package x'; exit 1 ;; "
        f"*update*) exit 0 ;; esac\n{NO_NETWORK}",
    )
    with pytest.raises(Fail, match="fetching x .bookworm-backports, .* failed: E: Unable to loc"):
        debian.fetch_backport("x")
    assert cached() == []


# install()


@pytest.fixture
def lacking(program, tmp_path, monkeypatch):
    """xz-utils is not installed; apt-get's calls are lines of a file."""
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    log = tmp_path / "calls"
    program("dpkg-query", f'[ "$4" = xz-utils ] && exit 1\n{INSTALLED}')
    program("apt-get", f"echo \"$*\" >> '{log}'\n")
    return log


def test_only_what_is_lacking_is_installed_and_said(lacking, capsys):
    debian.install("fetch")
    calls = lacking.read_text(encoding="utf-8").splitlines()
    assert len(calls) == 2 and "update" in calls[0]
    assert calls[1].endswith("install -y --no-install-recommends xz-utils")
    assert capsys.readouterr().err == "installing xz-utils\n"


def test_nothing_is_installed_when_nothing_is_lacking(lacking, program):
    program("dpkg-query", INSTALLED)
    debian.install("fetch", "build")
    assert not lacking.exists()


def test_an_install_that_fails_names_package_and_reason(lacking, program):
    program("apt-get", "echo 'E: Unable to locate package xz-utils'; exit 100\n")
    with pytest.raises(Fail, match="cannot install xz-utils: E: Unable to locate.*as root, run"):
        debian.install("fetch")


def test_neither_root_nor_sudo(lacking, monkeypatch, only_tools, program):
    program("dpkg-query", "exit 1\n")
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    with pytest.raises(Fail, match="not root and no sudo: install these packages first: xz-utils"):
        debian.install("fetch")


def test_a_machine_without_dpkg_installs_nothing(only_tools):
    debian.install(*debian.GROUPS)


@pytest.mark.parametrize(
    "fetch", [lambda: debian.fetch_pinned(*PACKAGE, "0" * 64), lambda: debian.fetch_of("herd", "sid")]
)
def test_a_cache_that_fills_up_while_apt_fetches_is_said(program, fetch):
    program(
        "apt-get",
        NO_NETWORK.replace(
            "Failed to fetch http://deb.example.org/: Temporary failure resolving",
            "Write error - write (28: No space left on device)",
        ),
    )
    with pytest.raises(Fail, match=f"^disk full: {paths.cache_root()}; free some space, or set SERIES_CACHE"):
        fetch()


@pytest.mark.parametrize(
    "targets, has", [("http://a/debian bookworm Debian", True), ("http://a/ubuntu noble Ubuntu", False), ("", False)]
)
def test_only_a_debian_mirror_has_debians_packages(program, targets, has):
    program("apt-get", f"echo '{targets}'\n")
    assert debian.has_mirror() is has


def test_without_apt_there_is_no_mirror(only_tools):
    assert not debian.has_mirror()


def test_ubuntus_own_line(program, monkeypatch, tmp_path):
    """Its apt has mirrors, and none is Debian's."""
    write(tmp_path / "os-release", 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\n')
    monkeypatch.setattr(debian.distro, "FILES", (str(tmp_path / "os-release"),))
    program("apt-get", "echo 'http://a/ubuntu noble Ubuntu'\n")
    with pytest.raises(
        Fail,
        match="^Ubuntu 24.04.1 LTS has apt sources that name no Debian mirror: give your own kernel "
        "tree with --tree .or TREE=/path., or run it in a container of Debian: make run CON",
    ):
        debian.fetch_pinned(*PACKAGE, "0" * 64)
