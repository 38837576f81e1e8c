"""What the harness does to a guest before the first command, on real kernels."""

import re

import pytest

from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]


def test_there_is_a_vm_before_the_first_command():
    """Or a test's first VM has a branch of the scheduler patched while other CPUs run it, which emulators may miss."""
    ran = Lab("v5.10").run(["/bin/ls", "-1", "/sys/kernel/debug/kvm"], 60, "held")
    # Each VM has a directory PID-FD.
    assert len(re.findall(r"^\d+-\d+$", ran.output, re.M)) == 1, ran.outcomes
    assert not ran.splats
    assert "hold_vm" not in (ran.folder / "job.log").read_text(encoding="utf-8")


def test_commands_keep_off_cpu_0_of_x86_64():
    """Or QEMU may lose the state of nested virtualisation of that CPU."""
    ran = Lab("v5.10", arch="x86_64", machine={"cpus": 4}).run(["/bin/cat", "/proc/self/status"], 60, "spared")
    assert re.findall(r"^Cpus_allowed_list:\s+(\S+)$", ran.output, re.M) == ["1-4"]
    assert not ran.splats
