"""QEMU command lines: an emulated (or nested) machine whose kernel is the one under test."""

from __future__ import annotations

import difflib
import os
import platform
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from stage2_trace import stage2trace
from tlb_refills import tlbrefills
from vtime import vtime

from ..base import debian, distro, proc
from ..base.errors import Usage
from ..kernel import toolchain
from ..kernel.build import Kernel
from .emulator import binary, Qemu

# The CPUs that cover both of KVM's modes: max is VHE with hardware access flag, FWB and IDC;
# cortex-a72 is nVHE without them.  Any other name that QEMU knows may be given.
CPUS = {"arm64": ("max", "cortex-a72"), "x86_64": ("max",)}

# For `params`: swap of 64 MiB on zram, which guest/init makes, or tests that page out would do nothing.
SWAP = "series.swap=64"
# The oldest QEMU whose max CPU takes pauth-impdef.
_OLDEST = (6, 0)


@dataclass(frozen=True)
class Machine:
    """What the guest kernel runs on."""

    arch: str
    cpu: str = "max"
    accel: str = "tcg"
    cpus: int = 4  # that a job may use: see firstcpu
    memory: int = 3072  # MiB
    params: tuple[str, ...] = field(default=())
    clock: str = "wall"  # or "virtual": every CPU has a clock of its own (scripts/vtime)
    model: str = vtime.NOMINAL  # of the virtual clock
    slice_ns: int = 500  # of the virtual clock
    mte: bool = False  # memory has tags; of arm64, emulated, with the CPU max
    trace: bool = False  # records stores to stage-2 page tables, and TLBIs (stage2trace)
    refills: bool = False  # counts a nested guest's TLB entries that are filled again (tlbrefills)
    block: int | None = None  # of refills: an address that the nested guest maps by a block of 2 MiB
    qemu: Qemu | None = None  # None: the one in PATH


def check(machine: Machine) -> None:
    """Install QEMU, and raise Usage if the machine cannot be had on this host."""
    if machine.mte and (machine.arch, machine.cpu, machine.accel) != ("arm64", "max", "tcg"):
        raise Usage("memory tags are for arm64's emulated CPU max")
    if machine.trace or machine.refills:
        if (machine.arch, machine.accel, machine.clock) != ("arm64", "tcg", "wall") or machine.trace == machine.refills:
            raise Usage("stage 2 is traced, or TLB refills are counted, on emulated CPUs of arm64 with the wall clock")
        vtime.qemu(machine.arch)
    if machine.clock == "virtual":
        if machine.accel != "tcg":
            raise Usage("--clock virtual is for emulated CPUs: use --accel tcg")
        vtime.parameters(machine.arch, machine.model)
        vtime.qemu(machine.arch)
        _check_cpu(machine)
        return
    if machine.accel == "kvm":
        if platform.machine() != toolchain.machine(machine.arch):
            raise Usage(
                f"--accel kvm runs {machine.arch} on a {toolchain.machine(machine.arch)} "
                f"host only, this is {platform.machine()}: use --accel tcg, or another --arch"
            )
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            raise Usage("--accel kvm: cannot open /dev/kvm; use --accel tcg")
    if not shutil.which(binary(machine.arch)):
        debian.install(f"boot-{machine.arch}")
    proc.need(binary(machine.arch))
    number, line = Qemu(binary(machine.arch)).version()
    if (0, 0) < number < _OLDEST:
        raise Usage(
            f"QEMU {_OLDEST[0]}.{_OLDEST[1]} or newer is needed, and {binary(machine.arch)} is {line}: install a "
            f"newer one, or {distro.CONTAINER}"
        )
    _check_cpu(machine)


def _check_cpu(machine: Machine) -> None:
    """Raise Usage if QEMU lists its CPUs, and not this one."""
    name = machine.cpu.partition(",")[0]
    _, text = proc.attempt([binary(machine.arch), "-cpu", "help"], "qemu")
    # Lines such as "  cortex-a72" and "x86 EPYC-v4              AMD EPYC Processor", of CPUs and then of their features.
    names = {line.split()[line.startswith("x86 ")] for line in text.splitlines() if line.startswith(("  ", "x86 "))}
    if names and name not in names:
        near = difflib.get_close_matches(name, names, 1)
        raise Usage(
            f"{binary(machine.arch)} has no CPU '{name}'{f': is it {near[0]}?' if near else ''}; "
            f"`{binary(machine.arch)} -cpu help` lists its CPUs"
        )


def command(machine: Machine, kernel: Kernel, initrd: str | Path, folder: Path | None = None) -> list[str]:
    """The QEMU command line, as a list.

    kernel: a build.Kernel.  folder: gets job.log, which is what the job prints (the guest's
    /dev/hvc0), and the counters of a virtual clock; None for a machine to sit at.  The console is
    standard input and output.
    """
    # QEMU's stand-in for the pointer authentication algorithm: the architected one is most of what
    # an emulated kernel does.
    cpu = "host" if machine.accel == "kvm" else machine.cpu
    if (machine.arch, cpu) == ("arm64", "max"):
        cpu += ",pauth-impdef=on"
    if machine.trace and machine.cpu == "max":
        # The entries and range TLBIs of FEAT_LPA2, which KVM uses since 6.8, are not known to the trace.
        cpu += ",lpa2=off"
    accel = "kvm" if machine.accel == "kvm" else "tcg,thread=multi"
    # -nodefaults: nothing that is not named, such as a network card and its ROM.
    line = machine.qemu.words() if machine.qemu else [binary(machine.arch)]
    if machine.clock == "virtual":
        line = vtime.prefix(machine.arch)
    if machine.trace or machine.refills:
        line = vtime.qemu(machine.arch).words()
    line += f"-nodefaults -display none -no-reboot -accel {accel} -smp {machine.cpus} -m {machine.memory}M -cpu".split()
    line.append(cpu)
    if machine.arch == "arm64":
        gic = "host" if machine.accel == "kvm" else "3"
        line += ["-M", f"virt,virtualization=on,gic-version={gic}" + (",mte=on" if machine.mte else "")]
        console, bus = "ttyAMA0", "virtio-serial-device"
    else:
        line += ["-M", "q35"]
        console, bus = "ttyS0", "virtio-serial-pci"
    if folder:
        line += f"-serial stdio -device {bus} -device virtconsole,chardev=job".split()
        line += ["-chardev", f"file,id=job,path={folder / 'job.log'}"]
        # A CPU that resets, such as by a triple fault, prints nothing.
        line += ["-d", "cpu_reset", "-D", str(folder / "resets.log")]
    else:
        line += ["-serial", "mon:stdio"]
    # The kernel panics if the timer has not ticked after a wait that is counted in TSC cycles, which go on
    # where an overloaded host does not let QEMU's timers run.
    more = ["no_timer_check"] if machine.arch == "x86_64" and machine.accel == "tcg" else []
    if machine.trace and folder:
        line += stage2trace.plugin(kernel, folder)
    if machine.refills and folder:
        line += tlbrefills.plugin(kernel, folder, machine.block)
    if machine.clock == "virtual":
        if folder:
            vtime.marks(kernel, folder / "marks")
        line += vtime.plugin(machine.arch, machine.model, machine.slice_ns, folder)
        if machine.arch == "x86_64":
            # Nothing that waits by reading the TSC, every read of which is a signal: comparing the
            # CPUs' counters, calibrating a delay (lpj: 1 GHz by HZ=250), 10 ms for a CPU to start.
            more += ["tsc=reliable", "lpj=4000000", "cpu_init_udelay=0"]
    words = [f"console={console}", "panic=-1", *kernel.config.cmdline, *more, *machine.params]
    return line + ["-kernel", str(kernel.image), "-initrd", str(initrd), "-append", " ".join(words)]
