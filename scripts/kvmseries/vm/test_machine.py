"""QEMU command lines in virtual time.  Others are in test_guest.py, by what a fake QEMU does."""

from types import SimpleNamespace

import pytest

from kvmseries.base.errors import Fail, Usage
from kvmseries.vm.machine import check, command, Machine
from vtime import vtime


@pytest.fixture
def line(monkeypatch, tmp_path):
    """line(arch, clock, param...): the words of the command line, for a machine to sit at."""
    monkeypatch.setattr(vtime, "library", lambda: "lib.so")
    monkeypatch.setattr(vtime, "prefix", lambda arch: ["env", arch])

    def run(arch, clock, *params, **more):
        kernel = SimpleNamespace(arch=arch, image=tmp_path / "Image", config=SimpleNamespace(cmdline=("quiet",)))
        return command(Machine(arch, clock=clock, params=params, **more), kernel, tmp_path / "initrd")

    return run


@pytest.mark.parametrize(
    "arch, clock, reliable", [("x86_64", "virtual", True), ("x86_64", "wall", False), ("arm64", "virtual", False)]
)
def test_only_a_virtual_x86_machine_is_told_that_its_tsc_is_reliable(line, arch, clock, reliable):
    words = line(arch, clock, "tsc=unstable")
    kernel = words[words.index("-append") + 1].split()
    assert ("tsc=reliable" in kernel) == reliable
    assert ("no_timer_check" in kernel) == (arch == "x86_64")
    # What the user gives comes last, and so has the last word.
    assert kernel[-1] == "tsc=unstable"
    assert "-tsc" not in words[words.index("-cpu") + 1]
    assert ("-plugin" in words) == (clock == "virtual")


def test_memory_has_tags_where_that_is_asked_for_and_there_are_some(line):
    for mte in False, True:
        words = line("arm64", "wall", mte=mte)
        assert words[words.index("-M") + 1].endswith(",mte=on") == mte
    for machine in Machine("x86_64", mte=True), Machine("arm64", "cortex-a72", mte=True):
        with pytest.raises(Usage, match="memory tags are for arm64's emulated CPU max"):
            check(machine)


@pytest.mark.parametrize(
    "version, taken", [("5.2.0", False), ("6.0.0", True), ("7.2.18 (Debian 1:7.2+dfsg-7)", True), ("10.0.2", True)]
)
def test_a_qemu_that_is_too_old_is_refused_before_any_work(program, version, taken):
    program("qemu-system-aarch64", f"echo 'QEMU emulator version {version}'\n")
    if taken:
        check(Machine("arm64"))
        return
    with pytest.raises(
        Usage, match="^QEMU 6.0 or newer is needed, and qemu-system-aarch64 is QEMU emulator version 5.2.0"
    ):
        check(Machine("arm64"))


@pytest.mark.parametrize("version", ["8.2.2", "11.0.0"])
def test_where_no_qemu_for_virtual_time_can_be_fetched(program, only_tools, version):
    program("qemu-system-aarch64", f"echo 'QEMU emulator version {version} (Debian 1:{version}+ds-0ubuntu1)'\n")
    with pytest.raises(
        Fail,
        match=f"^virtual time needs QEMU 9.2 to 10.2, and there is QEMU emulator version {version} .*: "
        "install one of these, use --clock wall, or run it in a container of Debian",
    ):
        vtime.qemu("arm64")


LISTS = """\
case "$*" in
*-cpu*help) printf 'Available CPUs:\\nx86 EPYC   (alias of EPYC-v4)\\n  cortex-a72\\n  max\\n' ;;
*) echo 'QEMU emulator version 7.2.18' ;;
esac
"""


@pytest.mark.parametrize("clock", ["wall", "virtual"])
@pytest.mark.parametrize("cpu", ["max", "EPYC", "max,sve=off", "cortex-a27", "none"])
def test_a_cpu_that_qemu_does_not_have_is_refused_before_any_work(program, monkeypatch, cpu, clock):
    program("qemu-system-aarch64", LISTS)
    monkeypatch.setattr(vtime, "qemu", lambda arch: None)
    machine = Machine("arm64", cpu, clock=clock)
    if cpu not in ("cortex-a27", "none"):
        check(machine)
        return
    near = ": is it cortex-a72[?]" if cpu == "cortex-a27" else ""
    with pytest.raises(
        Usage, match=f"^qemu-system-aarch64 has no CPU '{cpu}'{near}; `qemu-system-aarch64 -cpu help` lists"
    ):
        check(machine)
