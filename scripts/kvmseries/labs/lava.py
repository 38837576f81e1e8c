"""A LAVA job that boots one kernel with the selftests in QEMU and runs them, each with a result of its own.

LAVA puts its shell into the initramfs (an overlay).  The tests run through /job.sh, as everywhere.  The kernels
of the tool boot QEMU's machines only; for a board see Documentation/real-hardware.md.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import yaml

from ..guest import firstcpu
from ..guest.image import Command
from ..guest.machine import Machine

# What guest/init's shell shows in /tests.
_PROMPT = "/tests # "
# Seconds that booting and LAVA's own work may take.
_BOOT, _OWN = 600, 1800
_REPORT = (
    'report() { run "$@"; case $? in 0) result=pass ;; 4) result=skip ;; *) result=fail ;; esac; '
    'lava-test-case "$1" --result $result; }'
)


def case(name: str) -> str:
    """`name` of a test as LAVA takes it."""
    return re.sub(r"[^-\w.]", "_", name, flags=re.A)


def document(name: str, machine: Machine, append: str, urls: tuple[str, str], commands: Sequence[Command]) -> str:
    """The job definition, YAML text.

    name: of the job.  machine: the machine.Machine to emulate.  append: the kernel's command line.
    urls: (kernel's, initramfs's).  commands: list of (name, seconds, [program, argument...]).
    """
    machine, before = firstcpu.spare(machine)
    seconds = _OWN + _BOOT + sum(limit for _, limit, _ in commands)
    job = {
        "job_name": name,
        "device_type": "qemu",
        "priority": "medium",
        "visibility": "public",
        "timeouts": {"job": _minutes(seconds), "action": _minutes(900), "connection": _minutes(600)},
        "context": _context(machine),
        "actions": [
            {"deploy": _deploy(append, urls)},
            {"boot": {"timeout": _minutes(_BOOT), "method": "qemu", "media": "tmpfs", "prompts": [_PROMPT]}},
            {"test": _test(commands, seconds, before)},
        ],
    }
    return yaml.safe_dump(job, sort_keys=False, width=1000)


def _minutes(seconds: float) -> dict[str, int]:
    return {"minutes": -(-int(seconds) // 60)}


def _context(machine: Machine) -> dict[str, Any]:
    return {
        "arch": {"x86_64": "amd64"}.get(machine.arch, machine.arch),
        "cpu": machine.cpu,
        "memory": machine.memory,
        "no_kvm": machine.accel == "tcg",
        "machine": "virt,virtualization=on,gic-version=3" if machine.arch == "arm64" else "q35",
        "extra_options": ["-smp", str(machine.cpus), "-no-reboot"],
    }


def _deploy(append: str, urls: tuple[str, str]) -> dict[str, Any]:
    kernel = {"url": urls[0], "image_arg": f"-kernel {{kernel}} -append {shlex.quote(append)}"}
    initrd = {"url": urls[1], "image_arg": "-initrd {initrd}", "format": "cpio.newc", "overlays": {"lava": True}}
    return {"timeout": _minutes(900), "to": "tmpfs", "images": {"kernel": kernel, "initrd": initrd}}


def _test(commands: Sequence[Command], seconds: float, before: Sequence[str]) -> dict[str, Any]:
    steps = [". /job.sh", *before, _REPORT]
    steps += [f"report {case(name)} {int(limit)} {shlex.join(command)}" for name, limit, command in commands]
    definition = {
        "metadata": {
            "format": "Lava-Test Test Definition 1.0",
            "name": "kvm-selftests",
            "description": "KVM selftests of the series",
        },
        "run": {"steps": steps},
    }
    return {
        "timeout": _minutes(seconds),
        "definitions": [
            {"repository": definition, "from": "inline", "name": "kvm-selftests", "path": "inline/kvm-selftests.yaml"}
        ],
    }
