"""Commands keep off CPU 0 of an emulated x86-64 machine, where QEMU can lose what VMRUN and exits change.

On any CPU, instructions such as FXRSTOR clear a bit of CPU 0's `hflags2` (cpu_clear_ignne() in target/i386/tcg). They
load the word and store it, without a lock. The same word says whether CPU 0 uses nested page tables. If VMRUN or an
exit changes that in between, the change is lost: the guest runs without them, or the host runs with the guest's. A CPU 0
that runs no guest has no such change to lose. tools-testing-selftests-kvm/README.md has versions, and what was tried.
"""

from dataclasses import replace

from .machine import Machine


def spare(machine: Machine) -> tuple[Machine, list[str]]:
    """The machine to start for a job on `machine`, and the lines with which that job begins.

    Its commands have machine.cpus CPUs in any case.  Not in virtual time, where another CPU would change what is
    measured."""
    if (machine.arch, machine.accel, machine.clock) != ("x86_64", "tcg", "wall"):
        return machine, []
    return replace(machine, cpus=machine.cpus + 1), [_keep_off(machine.cpus)]


def _keep_off(cpus: int) -> str:
    """A line of shell after which commands run on the CPUs 1 to `cpus` alone.

    It prints what run() takes for an error if the kernel does not have these CPUs."""
    mask, wanted = (1 << (cpus + 1)) - 2, f"1-{cpus}" if cpus > 1 else "1"
    return (
        f"taskset -p {mask:x} $$ > /dev/null; grep -q '^Cpus_allowed_list:.{wanted}$' /proc/$$/status || "
        f'echo "@@ error CPUs wanted={wanted} got=$(grep Cpus_allowed_list /proc/$$/status)"'
    )
