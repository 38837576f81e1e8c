"""QEMU command lines in virtual time.  Others are in test_guest.py, by what a fake QEMU does."""

from types import SimpleNamespace

import pytest

from kvmseries.guest import vtime
from kvmseries.guest.machine import command, Machine


@pytest.fixture
def line(monkeypatch, tmp_path):
    """line(arch, clock, param...): the words of the command line, for a machine to sit at."""
    monkeypatch.setattr(vtime, "library", lambda: "lib.so")
    monkeypatch.setattr(vtime, "prefix", lambda arch: ["env", arch])

    def run(arch, clock, *params):
        kernel = SimpleNamespace(arch=arch, image=tmp_path / "Image",
                                 config=SimpleNamespace(cmdline=("quiet",)))
        return command(Machine(arch, clock=clock, params=params), kernel, tmp_path / "initrd")
    return run


@pytest.mark.parametrize("arch, clock, reliable", [
    ("x86_64", "virtual", True), ("x86_64", "wall", False), ("arm64", "virtual", False)])
def test_only_a_virtual_x86_machine_is_told_that_its_tsc_is_reliable(line, arch, clock, reliable):
    words = line(arch, clock, "tsc=unstable")
    kernel = words[words.index("-append") + 1].split()
    assert ("tsc=reliable" in kernel) == reliable
    assert ("no_timer_check" in kernel) == (arch == "x86_64")
    # What the user gives comes last, and so has the last word.
    assert kernel[-1] == "tsc=unstable"
    assert "-tsc" not in words[words.index("-cpu") + 1]
    assert ("-plugin" in words) == (clock == "virtual")
