"""Commands keep off CPU 0 of an emulated x86-64 machine, where QEMU can lose what VMRUN and exits change.

A CPU 0 that runs no guest has no such change to lose. Documentation/QEMU-BUGS.md, "a lost change of hflags2", has more.
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
