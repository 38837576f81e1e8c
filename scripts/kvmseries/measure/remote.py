"""bench --remote: build kernels for another machine, boot it with each in turn, run the tests there.

Each boot is for one time: a machine that does not come back boots its own kernel after a power cycle.  What a
boot has measured is kept below out/remote/, so that the same command goes on after an interruption.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..base import files, paths, progress
from ..base.errors import Fail
from ..base.progress import say
from ..data import ids, parse
from ..data.shape import Host as Facts, Ids, Run
from ..guest import run as guest
from ..kernel import hostkernel, kconfig, selftests, toolchain
from ..source import catalog, trees
from . import bench, bootloader, here
from .ssh import Host, Lost

# Where files are put on the machine; programs are not to be in /tmp, which may be noexec.
_PLACE = "/var/tmp/kvm-series"
# Read by update-grub of Debian and Ubuntu.
_DEFAULT = "/etc/default/grub.d/kvm-series.cfg"
_PROGRAMS = (
    "script",
    "timeout",
    "dpkg",
    "tar",
    "depmod",
    "update-initramfs",
    "dracut",
    "update-grub",
    "grub2-mkconfig",
    *bootloader.WAYS,
)
_FACTS = f"""\
echo "@@ machine=$(uname -m)"
echo "@@ release=$(uname -r)"
echo "@@ uid=$(id -u)"
sudo -n true 2> /dev/null && echo "@@ sudo=yes"
[ -c /dev/kvm ] && echo "@@ kvm=yes"
for p in {" ".join(_PROGRAMS)}; do
	PATH=$PATH:/usr/sbin:/sbin command -v $p > /dev/null && found="$found $p"
done
echo "@@ programs=$found"
echo "@@ cpu=$(LC_ALL=C lscpu | sed -n 's/^Model name: *//p' | head -n 1)"
echo "@@ cpus=$(nproc)"
echo "@@ memory=$(awk '/^MemTotal/ {{ print $2 * 1024 }}' /proc/meminfo)"
echo "@@ os=$(. /etc/os-release; echo "$PRETTY_NAME")"
"""


# Kernels by label and overlays.
Kernels = Mapping[tuple[str, tuple[str, ...]], hostkernel.HostKernel]


@dataclass
class Options:
    """How to treat the machine."""

    host: str  # ssh's destination
    ssh: str = "ssh"
    config: str = ""  # file with the kernel configuration; "": the machine's own
    way: str = ""  # "grub", "kexec"; "": what it has
    seconds: int = 600  # for a reboot


@dataclass
class Made:
    """What a job was made of, and where its boots' outputs are."""

    ids: Ids  # for results.save()
    kept: Path


@dataclass
class Machine:
    """A machine that can be used, and what it said of itself."""

    host: Host
    way: str
    form: str  # of hostkernel.FORMATS
    facts: dict[str, str] = field(default_factory=dict)


def look(options: Options, arch: str) -> Machine:
    """The Machine that `options` name.  Raises Fail if kernels of `arch` cannot be measured on it."""
    host = Host(options.host, options.ssh)
    facts = host.facts(_FACTS, "looking at the machine", root=False)
    if facts.get("machine") != toolchain.machine(arch):
        raise Fail(f"--remote {host.name} is {facts.get('machine') or 'no machine with Linux'}, --arch {arch} is not")
    if facts.get("uid") != "0":
        if not facts.get("sudo"):
            raise Fail(f"--remote {host.name}: the user is not root and sudo asks for a password: use root@...")
        host.sudo = "sudo -n "
    if not facts.get("kvm"):
        raise Fail(f"--remote {host.name} has no /dev/kvm: load KVM there, or turn on virtualisation in its firmware")
    programs = facts.get("programs", "").split()
    for program, package in (("script", "bsdutils or util-linux-script"), ("timeout", "coreutils")):
        if program not in programs:
            raise Fail(f"--remote {host.name} has no program {program}: install {package} there")
    try:
        way = bootloader.choose(programs, options.way)
    except Fail as error:
        raise Fail(f"--remote {host.name}: {error}") from None
    facts["own"] = _own_release(options, facts.get("release", ""))
    return Machine(host, way, "deb" if "dpkg" in programs else "tar", facts)


def _own_release(options: Options, running: str) -> str:
    """The release of the machine's own kernel: the one that runs, or was seen before an interruption left one of ours."""
    kept = _of_machine(options, "release")
    if not re.search(here.OWN, running):
        files.write(kept, running)
        return running
    return kept.read_text(encoding="utf-8") if kept.exists() else running


def _of_machine(options: Options, suffix: str) -> Path:
    """The file in which something of the machine is kept."""
    return paths.out("remote", f"{hashlib.sha256(options.host.encode()).hexdigest()[:12]}.{suffix}")


def read_config(machine: Machine, options: Options, arch: str) -> str:
    """The text of the kernel configuration to build with."""
    if options.config:
        return hostkernel.read_config(options.config, arch)
    release = machine.facts["release"]
    kept = _of_machine(options, "config")
    if re.search(here.OWN, release):
        # An interrupted run has left it with one of our kernels.
        if not kept.exists():
            raise Fail(
                f"{machine.host.name} runs {release}, a kernel of this tool: boot its own one, or name a "
                "configuration with --host-config"
            )
        return hostkernel.read_config(kept, arch)
    where = f"{machine.host.name}:/boot/config-{release}"
    status, text = machine.host.run(
        f"cat /boot/config-{shlex.quote(release)} 2> /dev/null || zcat /proc/config.gz 2> /dev/null",
        f"reading {where}",
        check=False,
    )
    if status:
        raise Fail(
            f"{machine.host.name} has neither /boot/config-{release} nor /proc/config.gz: copy a configuration "
            "from it and name it with --host-config"
        )
    hostkernel.check_config(text, where, arch)
    files.write(kept, text)
    return text


def run(job: bench.Job, options: Options) -> tuple[list[Run], dict[str, str], Machine, Made]:
    """Run the bench.Job `job`; returns (runs, versions, Machine, Made)."""
    machine = look(options, job.arch)
    text = read_config(machine, options, job.arch)
    configs = list(dict.fromkeys(entry.config for entry in bench.rounds(job)))
    boots = bench.turns(job, bench.rounds(job))
    steps = progress.Steps(
        [
            (
                f"hostkernel-{job.arch}-{kconfig.name(config)}",
                f"build {point.label} for {options.host} ({kconfig.name(config)})",
                1800,
            )
            for config in configs
            for point in job.points
        ]
        + [("remote-copy", f"copy kernels and tests to {options.host}, install", 180)]
        + [
            (
                "remote-boot",
                f"{job.test} on {point.label}, round {entry.number + 1} ({kconfig.name(entry.config)})",
                300,
            )
            for entry, point in boots
        ]
    )
    kernels = {}
    for config in configs:
        for point in job.points:
            with steps.step(f"hostkernel-{job.arch}-{kconfig.name(config)}") as note:
                tree = trees.worktree(point.series, point.count, job.kernel)
                kernels[point.label, config] = hostkernel.build(tree, job.arch, text, machine.form, config, note)
    kept = _kept(job, options, kernels)
    with steps.step("remote-copy"):
        folder = _copy(machine, job)
        for kernel in kernels.values():
            _install(machine, kernel)
        _keep_default(machine)
    table: bench.Table = {}
    versions: dict[str, str] = {}
    for entry, point in boots:
        kernel = kernels[point.label, entry.config]
        with steps.step("remote-boot"):
            outputs = _measured(machine, job, entry, point, kernel, folder, kept, options.seconds)
        versions[f"{point.label} {job.arch} {kconfig.name(entry.config)}"] = kernel.release
        for count in job.vcpus:
            bench.collect(
                table,
                job,
                point,
                entry.config,
                list(job.line),
                count,
                parse.parse(job.test, outputs[str(count)]),
                ("here", "wall", ""),
            )
    return list(table.values()), versions, machine, Made(_made_of(job, kernels), kept)


def leave(machine: Machine, seconds: float) -> None:
    """Boot the machine's own kernel again."""
    try:
        back = machine.host.reboot("systemctl reboot || reboot", seconds)
    except Lost:
        back = False
    if not back:
        say(f"{machine.host.name} has not come back to its own kernel yet: look at it, and power cycle it if need be")


def forget(kept: Path) -> None:
    """Remove the outputs in `kept`: their results are in a file now."""
    paths.remove(kept)


def host_info(machine: Machine, versions: Mapping[str, str], info: Facts) -> Facts:
    """The `host` of a results file: `info`, from results.host_info(), with the machine's own facts in it."""
    facts = machine.facts
    return {
        **info,
        "machine": facts["machine"],
        "cpu": facts.get("cpu") or facts["machine"],
        "cpus": int(facts.get("cpus") or 0),
        "memory": int(float(facts.get("memory") or 0)),
        "os": facts.get("os") or "unknown",
        "kernel": facts["own"],
        "kernels": dict(versions),
    }


def _kept(job: bench.Job, options: Options, kernels: Kernels) -> Path:
    """The directory for what boots have measured of this job, on this machine, with these kernels."""
    what = [
        options.host,
        job.test,
        job.line,
        job.vcpus,
        sorted(
            (label, list(config), list(map(_digest, kernel.packages))) for (label, config), kernel in kernels.items()
        ),
    ]
    return paths.out("remote", hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12], "x").parent


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copy(machine: Machine, job: bench.Job) -> str:
    """Copy the test programs; returns their directory on the machine."""
    tests = selftests.build(job.series, job.arch, job.kernel)
    folder = f"{_PLACE}/tests"
    for name in (job.test, "lockphase"):
        machine.host.put(tests / name, f"{folder}/{name}")
    return folder


def _install(machine: Machine, kernel: hostkernel.HostKernel) -> None:
    """Install the packages of `kernel`, unless they are."""
    mark = f"{_PLACE}/{kernel.release}.installed"
    for package in kernel.packages:
        digest = _digest(package)
        # The mark is still there when the package was removed.
        there = f"[ -e /boot/vmlinuz-{kernel.release} ] && cat {mark}"
        status, text = machine.host.run(there, "looking for the kernel", check=False)
        if status == 0 and text.strip() == digest:
            continue
        machine.host.put(package, f"{_PLACE}/{package.name}")
        machine.host.run(
            f"PATH=$PATH:/usr/sbin:/sbin; set -e; {_installs(machine, kernel, package)}; "
            f"rm {_PLACE}/{package.name}; echo {digest} > {mark}",
            f"installing {kernel.release}",
        )


def _installs(machine: Machine, kernel: hostkernel.HostKernel, package: Path) -> str:
    """Shell commands that install `package`."""
    path, release = shlex.quote(f"{_PLACE}/{package.name}"), shlex.quote(kernel.release)
    if package.suffix == ".deb":
        return f"DEBIAN_FRONTEND=noninteractive dpkg -i {path}"
    programs = machine.facts["programs"].split()
    steps = [f"tar -xf {path} -C / --no-same-owner --keep-directory-symlink", f"depmod {release}"]
    if "dracut" in programs:
        steps.append(f"dracut --force --kver {release}")
    elif "update-initramfs" in programs:
        steps.append(f"update-initramfs -c -k {release}")
    if "update-grub" in programs:
        steps.append("update-grub")
    elif "grub2-mkconfig" in programs:
        steps.append("grub2-mkconfig -o /boot/grub2/grub.cfg")
    return "; ".join(steps)


def _keep_default(machine: Machine) -> None:
    """Have the machine's own kernel be what its boot menu boots by default, also if ours are newer."""
    if "update-grub" not in machine.facts["programs"].split():
        return
    host = machine.host

    def usurped() -> tuple[str, str | None] | None:
        text = host.run("cat /boot/grub/grub.cfg 2> /dev/null || true", "reading grub.cfg")
        return bootloader.usurped(text, lambda release: re.search(here.OWN, release))

    found = usurped()
    if not found:
        return
    if found[1]:
        setting = shlex.quote(f"GRUB_DEFAULT={shlex.quote(found[1])}")
        host.run(
            "PATH=$PATH:/usr/sbin:/sbin; set -e; mkdir -p /etc/default/grub.d; "
            f"echo {setting} > {_DEFAULT}; update-grub",
            "keeping the default of the boot menu",
        )
    if usurped():
        raise Fail(
            f"{host.name} would boot {found[0]} after a power cycle, as its newest kernel: set GRUB_DEFAULT in "
            "/etc/default/grub to the entry of its own kernel, run update-grub there, and repeat the command"
        )
    say(
        f"{host.name}: {_DEFAULT} keeps its own kernel the default of the boot menu, where {found[0]} is newer: "
        "remove that file with the kernels"
    )


def _measured(
    machine: Machine,
    job: bench.Job,
    entry: bench.Round,
    point: catalog.Point,
    kernel: hostkernel.HostKernel,
    folder: str,
    kept: Path,
    seconds: float,
) -> dict[str, str]:
    """{number of vCPUs: what the test printed} of one boot, measured now or before."""
    path = kept / f"{entry.number}-{kconfig.name(entry.config)}-{point.label.replace(':', '-')}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    try:
        outputs = _boot_and_test(machine, job, entry, kernel, folder, seconds)
    except Lost as error:
        raise Fail(
            f"{error}; with {kernel.release} booted for one time: power cycle it (it then boots its own kernel), "
            "and repeat the command: it goes on with what is left"
        ) from None
    files.write_json(path, outputs, indent=None)
    return outputs


def _boot_and_test(
    machine: Machine, job: bench.Job, entry: bench.Round, kernel: hostkernel.HostKernel, folder: str, seconds: float
) -> dict[str, str]:
    """{number of vCPUs: what the test printed} with `kernel`."""
    _boot(machine, kernel, seconds)
    if not machine.host.facts("[ -c /dev/kvm ] && echo '@@ kvm=yes'", "looking for /dev/kvm"):
        raise Fail(
            f"{machine.host.name} has no /dev/kvm with {kernel.release}: its configuration builds KVM as a "
            "module that is not loaded, or not for this CPU"
        )
    before = set(machine.host.run("dmesg", "reading the kernel's log").splitlines())
    outputs = {str(count): _test(machine, job, entry, kernel, folder, count) for count in job.vcpus}
    for text in outputs.values():
        # What cannot be read is not kept for the next run.
        parse.parse(job.test, text)
    log = machine.host.run("dmesg", "reading the kernel's log").splitlines()
    for line in guest.splats("\n".join(line for line in log if line not in before))[:5]:
        say(f"{kernel.release} on {machine.host.name} reported while the tests ran: {line}")
    return outputs


def _boot(machine: Machine, kernel: hostkernel.HostKernel, seconds: float) -> None:
    """Have the machine run `kernel`."""
    host, release = machine.host, kernel.release
    entry = None
    if machine.way == "grub-reboot":
        entry = bootloader.grub_entry(host.run("cat /boot/grub/grub.cfg", "reading grub.cfg"), release)
    elif machine.way == "grub2-reboot":
        names = host.run("ls /boot/loader/entries 2> /dev/null || true", "reading the boot menu").split()
        entry = bootloader.bls_entry(names, release)
    once = bootloader.once(machine.way, release, entry)
    host.run(f"PATH=$PATH:/usr/sbin:/sbin; {once.prepare}", once.way)
    if not host.reboot(f"PATH=$PATH:/usr/sbin:/sbin; {once.reboot}", seconds):
        raise Fail(
            f"{host.name} did not come back within {seconds} s from booting {release}: power cycle it (it then "
            "boots its own kernel) and look at its console; the same command goes on with what is left"
        )
    running = host.run("uname -r", "uname", root=False).strip()
    if running != release:
        raise Fail(
            f"{host.name} came back with {running} instead of {release}: if you have power cycled it, repeat the "
            "command, which goes on with what is left; otherwise it does not follow "
            f"{machine.way}: boot it by hand, and use `bench --here` there"
        )


def _test(
    machine: Machine, job: bench.Job, entry: bench.Round, kernel: hostkernel.HostKernel, folder: str, count: int
) -> str:
    """What `job`'s test prints with `count` vCPUs."""
    setting = bench.settings(job.test)
    limit = setting["timeout"] * (4 if entry.counts else 1) * (1 + count)
    prefix = [f"{folder}/lockphase", "--"] if entry.counts else []
    command = shlex.join([*prefix, f"{folder}/{job.test}", setting["vcpus"], str(count), *job.line])
    pages = [
        word.partition("=")[2]
        for word in bench.kernel_params(job.test, list(job.line))
        if word.startswith("series.hugepages=")
    ]
    reserve = f"echo {pages[0]} > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages; " if pages else ""
    # The tests print line by line only on a terminal; lockphase needs lines.
    status, text = machine.host.run(
        f"{reserve}timeout -k 10 {limit} script -q -e -c {shlex.quote(command)} /dev/null", job.test, check=False
    )
    text = text.replace("\r", "")
    if status:
        last = text.strip().splitlines()[-1:] or ["nothing"]
        raise Fail(
            f"{job.test} with {count} vCPUs {'ran out of time' if status == 124 else 'failed'} on {kernel.release} "
            f"on {machine.host.name} (status {status}): {last[0].strip()[:200]}"
        )
    return text


def _made_of(job: bench.Job, kernels: Kernels) -> Ids:
    """The ids for results.save()."""
    tests = trees.worktree(job.series, len(job.series.patches), job.kernel).path
    return {
        "kernels": {label: ids.source(Path(kernel.source), job.arch) for (label, _), kernel in kernels.items()},
        "tests": {job.series.name: ids.tests(tests)},
        "guest": ids.guest(),
    }
