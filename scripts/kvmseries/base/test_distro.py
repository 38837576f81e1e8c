"""Distributions by their os-release, and the line that says what to install there."""

import pytest

from kvmseries.base import distro
from kvmseries.conftest import write

RELEASES = {
    "debian": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n',
    "ubuntu": 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n',
    "mint": 'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n',
    "fedora": "NAME=\"Fedora Linux\"\nPRETTY_NAME='Fedora Linux 41 (Forty One)'\nID=fedora\n",
    "rocky": 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\n',
    "centos": 'NAME="CentOS Stream"\nID="centos"\nID_LIKE="rhel fedora"\n',
    "suse": 'NAME="openSUSE Tumbleweed"\nID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n',
    "arch": 'NAME="Arch Linux"\nID=arch\n',
    "nixos": 'NAME="NixOS"\nID=nixos\n',
}


@pytest.fixture
def on(tmp_path, monkeypatch):
    """on(name): this is the distribution `name` of RELEASES; "" for a system without os-release."""

    def become(name):
        if name:
            write(tmp_path / "os-release", RELEASES[name])
        monkeypatch.setattr(distro, "FILES", (str(tmp_path / "none"), str(tmp_path / "os-release")))

    return become


@pytest.mark.parametrize(
    "name, family, line",
    [
        ("debian", "debian", "install the package qemu-system-arm, or run `make deps`"),
        ("ubuntu", "ubuntu", "install the package qemu-system-arm, or run `make deps`"),
        ("mint", "ubuntu", "install the package qemu-system-arm, or run `make deps`"),
        ("fedora", "fedora", "`dnf install qemu-system-aarch64`"),
        ("rocky", "rhel", "Rocky Linux has no package of it: run it in a container of Debian: make run CONTAINER=1"),
        ("centos", "rhel", "CentOS Stream has no package of it: run it in a container of Debian: make run CONTAINER=1"),
        ("suse", "", "install the package that has it, such as qemu-system-aarch64"),
        ("arch", "arch", "`pacman -S qemu-system-aarch64`"),
        ("nixos", "", "install the package that has it, such as qemu-system-aarch64"),
        ("", "", "install the package that has it, such as qemu-system-aarch64"),
    ],
)
def test_what_to_do_for_a_program(on, name, family, line):
    on(name)
    assert distro.family() == family
    assert distro.how("qemu-system-aarch64") == line


@pytest.mark.parametrize(
    "name, program, line",
    [
        ("fedora", "flex", "`dnf install flex`"),
        ("rocky", "flex", "`dnf install flex`"),
        ("rocky", "ssh", "`dnf install openssh-clients`"),
        ("fedora", "dpkg-buildpackage", "`dnf install dpkg-dev`"),
        ("arch", "dpkg-buildpackage", "`pacman -S dpkg`"),
    ],
)
def test_what_to_do_for_other_programs(on, name, program, line):
    on(name)
    assert distro.how(program) == line


@pytest.mark.parametrize(
    "name, title",
    [
        ("ubuntu", "Ubuntu 24.04.1 LTS"),
        ("nixos", "NixOS"),
        ("", "this system"),
        ("fedora", "Fedora Linux 41 (Forty One)"),
    ],
)
def test_the_line_for_what_debian_alone_has(on, name, title):
    on(name)
    assert distro.no_sources("has no apt") == (
        f"{title} has no apt: give your own kernel tree with --tree (or TREE=/path), or run it "
        "in a container of Debian: make run CONTAINER=1"
    )
