"""scripts/series trace"""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from stage2_trace import stage2check

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..kernel import build, selftests
from ..vm import image, machine as machines, run as guest
from . import options as shared, show

HELP = "run COMMAND in a guest, record stores to stage-2 page tables and TLBIs, and check them (arm64)"
SERIES = True
PROJECTS = ("linux",)
COMMAND = True
# Findings that are printed, and the default of --timeout.
_MOST, _SECONDS = 20, 600


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which kernel, on which machine; where the trace goes."""
    shared.point(parser)
    shared.configs(parser)
    shared.tree(parser)
    parser.add_argument("--cpu", help="QEMU's CPU: max, cortex-a72, ... (default: max)")
    parser.add_argument(
        "--param", action="append", default=[], metavar="WORD", help="kernel parameter; may be repeated"
    )
    parser.add_argument(
        "--timeout", type=shared.number(), metavar="S", help=f"time limit of COMMAND in seconds (default: {_SECONDS})"
    )
    parser.add_argument(
        "--keep",
        metavar="FILE",
        help="keep the trace in FILE; its format is described in tools-testing-selftests-kvm/stage2_trace/README.md",
    )
    parser.add_argument("--read", metavar="FILE", help="check the trace in FILE, and boot nothing")
    parser.usage = "scripts/series trace SERIES [options] -- COMMAND"


def run(options: Namespace) -> None:
    """Print what was checked and found; raise Fail if a rule is broken or nothing could break one."""
    if bool(options.read) == bool(options.command):
        raise Usage("trace needs a command, -- /tests/NAME ARGUMENT..., or --read FILE")
    if options.read and options.keep:
        raise Usage("--read and --keep exclude each other")
    if options.read:
        why = "--read checks a trace that is there, and boots nothing"
        shared.refuse(options, why, "base", "upto", "config", "cpu", "param", "timeout")
        if options.tree != paths.own_tree():
            raise Usage(f"{why}: no --tree")
    if options.keep:
        show.check_writable(Path(options.keep), "--keep")
    report = check(Path(options.read)) if options.read else _record(options)
    say(", ".join(f"{count} {what}" for what, count in sorted(report.counts.items())) or "nothing happened")
    for finding in report.findings[:_MOST]:
        say(f"{finding.rule}: {finding.text}")
    if report.findings:
        raise Fail(f"{len(report.findings)} rules of TLB maintenance are broken")
    if not stage2check.debts(report):
        raise Fail("the trace has shown nothing: no entry of a stage-2 page table was taken away or changed")


def check(path: Path) -> stage2check.Report:
    """The Report of the trace in the file `path`."""
    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            return stage2check.check(lines)
    except OSError as error:
        raise paths.os_fail(error, path) from None


def _record(options: Namespace) -> stage2check.Report:
    """Run the command; returns the Report of its trace."""
    machine = machines.Machine("arm64", options.cpu or "max", params=(machines.SWAP, *options.param), trace=True)
    machines.check(machine)
    kernel = build.kernel(options.series, shared.count(options), "arm64", options.config, options.tree)
    initrd = image.base("arm64", selftests.build(options.series, "arm64", options.tree))
    words = options.command if len(options.command) > 1 else ["sh", "-c", options.command[0]]
    result = guest.run(kernel, initrd, machine, [("trace", options.timeout or _SECONDS, words)], "trace")
    sys.stdout.write(result.outcomes[0].output)
    trace = result.folder / "trace"
    try:
        if options.keep:
            shutil.copy2(trace, options.keep)
        report = check(trace)
    except OSError as error:
        raise paths.os_fail(error, options.keep) from None
    finally:
        paths.remove(trace)
    for line in result.splats:
        say(f"the kernel reported: {line}")
    if result.outcomes[0].status:
        raise Fail(f"the command ended with {result.outcomes[0].why()} (see {result.folder})")
    return report
