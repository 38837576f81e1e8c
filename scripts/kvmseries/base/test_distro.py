"""Distributions by their os-release, and the line that says what to install there."""

import pytest

from kvmseries.base import distro
from kvmseries.conftest import write

RELEASES = {
    "debian": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n',
    "ubuntu": '# Noble\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\n',
    "fedora": "NAME=\"Fedora Linux\"\nPRETTY_NAME='Fedora Linux 41 (Forty One)'\nID=fedora\n",
    "broken": 'NAME="unclosed\n',
}
DEPS = "install the package qemu-system-arm, or run `make deps`"
ELSEWHERE = f"{distro.CONTAINER}, or install the package that has it, such as qemu-system-arm"


@pytest.mark.parametrize(
    "name, line, title",
    [
        ("debian", DEPS, "Debian GNU/Linux 12 (bookworm)"),
        ("ubuntu", DEPS, "Ubuntu 24.04.1 LTS"),
        ("fedora", ELSEWHERE, "Fedora Linux 41 (Forty One)"),
        ("broken", ELSEWHERE, "this system"),
        ("", ELSEWHERE, "this system"),
    ],
)
def test_what_is_said_on_a_distribution(tmp_path, monkeypatch, name, line, title):
    if name:
        write(tmp_path / "os-release", RELEASES[name])
    monkeypatch.setattr(distro, "FILES", (str(tmp_path / "none"), str(tmp_path / "os-release")))
    assert distro.how("qemu-system-aarch64") == line
    assert distro.how("flex") == line.replace("qemu-system-arm", "flex")
    assert distro.no_sources("has no apt") == (
        f"{title} has no apt: give your own kernel tree with --tree (or TREE=/path), or run it "
        "in a container of Debian: make run CONTAINER=1"
    )
