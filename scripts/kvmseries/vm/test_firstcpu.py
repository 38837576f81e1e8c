import os
import subprocess

import pytest

from kvmseries.conftest import wanted
from kvmseries.vm import firstcpu
from kvmseries.vm.machine import Machine


@pytest.mark.parametrize(
    "machine", [Machine("arm64"), Machine("x86_64", accel="kvm"), Machine("x86_64", clock="virtual")]
)
def test_other_machines_stay_as_they_are(machine):
    assert firstcpu.spare(machine) == (machine, [])


def test_commands_have_as_many_cpus_as_were_asked_for():
    machine, (line,) = firstcpu.spare(Machine("x86_64", cpus=70))
    assert machine == Machine("x86_64", cpus=71)
    # The CPUs 1 to 70.
    assert line.startswith("taskset -p 7ffffffffffffffffe $$ ") and "1-70" in line


@pytest.fixture(name="ran")
def _ran():
    """ran(cpus): what a job prints that shows its CPUs after that line."""

    def run(cpus):
        wanted("taskset")
        _, lines = firstcpu.spare(Machine("x86_64", cpus=cpus))
        script = "\n".join([*lines, "grep Cpus_allowed_list /proc/self/status"])
        return subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout

    return run


@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="not two CPUs")
def test_what_the_job_starts_runs_there(ran):
    assert ran(1) == "Cpus_allowed_list:\t1\n"


def test_a_machine_without_these_cpus_is_an_error(ran):
    """As where one did not start: taskset is content with fewer."""
    assert ran(4000).startswith("@@ error CPUs wanted=1-4000 got=Cpus_allowed_list:")
