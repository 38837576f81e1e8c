"""scripts/series boot

Without COMMAND, a shell: the line that starts QEMU is printed.  With COMMAND: runs it in the guest, prints its output, exits with its status."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from ..base import paths
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import build, selftests
from ..vm import image, machine as machines, run as guest
from . import shared
from .shared import COUNT, Option

PROJECT = "linux"
COMMAND = True
PARAMS = [
    shared.SERIES,
    shared.ARCH,
    Option("--kernel", "K", "base, series or upto:MILESTONE", default="series"),
    shared.CONFIG,
    shared.TREE,
    shared.cpu(),
    shared.accel(),
    shared.PARAM,
    Option("--timeout", "S", "time limit of COMMAND in seconds", type=COUNT, default=600),
]


def run(options: shared.Options) -> int | None:
    """Become QEMU; with a command run that, and return its status."""
    point = shared.point(options.series, "--kernel", options.kernel)
    machine = machines.Machine(options.arch, options.cpu, options.accel, params=options.param)
    machines.check(machine)
    kernel = build.kernel(point.series, point.count, options.arch, options.config, options.tree)
    initrd = image.base(options.arch, selftests.build(options.series, options.arch, options.tree))
    if options.command:
        return _run(options, kernel, initrd, machine)
    line = machines.command(machine, kernel, initrd)
    say(shlex.join(line))
    sys.stdout.flush()
    return os.execvp(line[0], line)


def _run(options: shared.Options, kernel: build.Kernel, initrd: Path, machine: machines.Machine) -> int:
    """Run the command in a guest; returns its status."""
    commands = [("command", options.timeout, shared.words(options.command))]
    result = guest.run(kernel, initrd, machine, commands, f"boot-{options.arch}-{os.getpid()}")
    outcome = result.outcomes[0]
    sys.stdout.write(outcome.output)
    for line in result.splats:
        say(f"the kernel reported: {line}")
    if outcome.status == 124:
        raise Fail(f"the command ran out of time ({options.timeout} s; see {result.folder})")
    paths.remove(result.folder)
    return outcome.status
