"""scripts/series boot"""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..base import paths
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import build, selftests
from ..vm import image, machine as machines, run as guest
from . import options as shared

HELP = "boot a kernel with the selftests in /tests; run a shell, or COMMAND"
SERIES = True
PROJECTS = ("linux",)
COMMAND = True


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which kernel, on which machine."""
    shared.arch(parser)
    shared.point(parser)
    shared.configs(parser)
    shared.tree(parser)
    shared.machine(parser)
    parser.add_argument("--cpus", type=shared.number(), default=4, metavar="N", help="CPUs of the machine (default: 4)")
    parser.add_argument(
        "--memory", type=shared.number(), default=3072, metavar="MIB", help="memory of the machine (default: 3072)"
    )
    parser.add_argument(
        "--timeout",
        type=shared.number(),
        default=600,
        metavar="S",
        help="time limit of COMMAND in seconds (default: 600)",
    )
    parser.add_argument(
        "--silence",
        type=shared.number(),
        default=60,
        metavar="S",
        help="a guest that prints nothing for S seconds counts as hung (default: 60)",
    )
    parser.usage = (
        "scripts/series boot SERIES [options] [-- COMMAND]\n\nwith COMMAND: runs it in "
        "the guest, prints its output, exits with its status"
    )


def run(options: Namespace) -> int | None:
    """Become QEMU; with a command run that, and return its status."""
    machine = machines.Machine(
        options.arch, options.cpu, options.accel, options.cpus, options.memory, tuple(options.param)
    )
    machines.check(machine)
    kernel = build.kernel(options.series, shared.count(options), options.arch, options.config, options.tree)
    initrd = image.base(options.arch, selftests.build(options.series, options.arch, options.tree))
    if options.command:
        return _run(options, kernel, initrd, machine)
    line = machines.command(machine, kernel, initrd)
    say(shlex.join(line))
    sys.stdout.flush()
    return os.execvp(line[0], line)


def _run(options: Namespace, kernel: build.Kernel, initrd: Path, machine: machines.Machine) -> int:
    """Run the command in a guest; returns its status."""
    command = options.command
    # Through a shell, so that one quoted argument may be a pipeline.
    words = command if len(command) > 1 else ["sh", "-c", command[0]]
    result = guest.run(
        kernel,
        initrd,
        machine,
        [("command", options.timeout, words)],
        f"boot-{options.arch}-{os.getpid()}",
        silence=options.silence,
    )
    outcome = result.outcomes[0]
    sys.stdout.write(outcome.output)
    for line in result.splats:
        say(f"the kernel reported: {line}")
    if outcome.status == 124:
        raise Fail(f"the command ran out of time ({options.timeout} s; see {result.folder})")
    paths.remove(result.folder)
    return outcome.status
