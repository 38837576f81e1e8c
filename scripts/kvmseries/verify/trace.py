"""TLB maintenance of a command: a guest runs it, a plugin of QEMU records, stage2check reads what was recorded (arm64)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from stage2_trace import stage2check

from ..base import paths
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import build, selftests
from ..source import catalog
from ..vm import image, machine as machines, run as guest

# Findings that are printed; time limit of the command.
_MOST, _SECONDS = 20, 3600


def check(path: Path) -> stage2check.Report:
    """The Report of the trace in the file `path`."""
    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            return stage2check.check(lines)
    except OSError as error:
        raise paths.os_fail(error, path) from None


def verdict(report: stage2check.Report) -> None:
    """Print what was checked and found; raise Fail if a rule is broken or nothing could break one."""
    say(", ".join(f"{count} {what}" for what, count in sorted(report.counts.items())) or "nothing happened")
    for finding in report.findings[:_MOST]:
        say(f"{finding.rule}: {finding.text}")
    if report.findings:
        raise Fail(f"{len(report.findings)} rules of TLB maintenance are broken")
    if not stage2check.debts(report):
        raise Fail("the trace has shown nothing: no entry of a stage-2 page table was taken away or changed")


def record(
    point: catalog.Point,
    command: Sequence[str],
    target: Path,
    configs: Sequence[str],
    cpu: str,
    params: Sequence[str],
    tree: str | None,
) -> stage2check.Report:
    """Run `command`; returns the Report of its trace, which `target` keeps."""
    machine = machines.Machine("arm64", cpu, params=(machines.SWAP, *params), trace=True)
    machines.check(machine)
    kernel = build.kernel(point.series, point.count, "arm64", configs, tree)
    initrd = image.base("arm64", selftests.build(point.series, "arm64", tree))
    result = guest.run(kernel, initrd, machine, [("trace", _SECONDS, list(command))], "trace")
    sys.stdout.write(result.outcomes[0].output)
    trace = result.folder / "trace"
    try:
        shutil.copy2(trace, target)
        report = check(trace)
    except OSError as error:
        raise paths.os_fail(error, target) from None
    finally:
        paths.remove(trace)
    for line in result.splats:
        say(f"the kernel reported: {line}")
    if result.outcomes[0].status:
        raise Fail(f"the command ended with {result.outcomes[0].why()} (see {result.folder})")
    return report
