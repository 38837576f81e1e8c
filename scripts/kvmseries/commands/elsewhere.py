"""bench --remote: its options, and what it does with a bench.Job; bench --kcidb."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from ..base import files
from ..base.errors import Usage
from ..base.progress import say
from ..data import results
from ..data.shape import Host, Ids, Run
from ..labs import kcidb
from ..measure import bench, remote, ssh
from . import options as shared, show

# Options of bench that say what is emulated: (name, value when it is not given).
_EMULATED: tuple[tuple[str, object], ...] = (
    ("param", []),
    ("config", []),
    ("cpu", None),
    ("here", None),
    ("accel", None),
)


def add_arguments(parser: ArgumentParser) -> None:
    """--remote and what belongs to it."""
    group = parser.add_argument_group("another machine with real KVM, see Documentation/real-hardware.md")
    group.add_argument(
        "--remote",
        metavar="HOST",
        help="build kernels for the machine HOST (of ssh, such as root@server), "
        "install them there, boot each in turn, run the test, fetch the results",
    )
    group.add_argument("--ssh", metavar="COMMAND", help="ssh with its options, such as 'ssh -p 2222' (default: ssh)")
    group.add_argument("--host-config", metavar="FILE", help="kernel configuration (default: the machine's own)")
    group.add_argument("--boot", choices=("grub", "kexec"), help="how to boot a kernel once (default: what HOST has)")
    group.add_argument("--boot-timeout", type=shared.number(), metavar="S", help="for a reboot (default: 600)")
    group = parser.add_argument_group("KernelCI's database")
    group.add_argument("--kcidb", metavar="FILE", help="also write the results as KCIDB's JSON")
    group.add_argument("--kcidb-origin", metavar="NAME", help="the lab's name there (default: kvm_series)")


def check(options: Namespace) -> None:
    """Raise Usage for options that --remote does not have, or that need it."""
    if options.remote is None:
        needs = [name for name in ("ssh", "host_config", "boot", "boot_timeout") if getattr(options, name) is not None]
        if needs:
            raise Usage(f"--{needs[0].replace('_', '-')} is for --remote HOST")
    elif options.clock == "virtual":
        raise Usage("--remote runs on a machine whose clock is the wall's: no --clock virtual")
    else:
        for name, unset in _EMULATED:
            if getattr(options, name) != unset:
                raise Usage(f"--remote runs on the machine itself: no --{name}")
    if options.host_config is not None and not Path(options.host_config).is_file():
        raise Usage(f"--host-config {options.host_config}: no such file")
    if options.remote is not None:
        ssh.Host(options.remote, "ssh" if options.ssh is None else options.ssh)
    if options.kcidb_origin is not None:
        if not options.kcidb:
            raise Usage("--kcidb-origin is for --kcidb FILE")
        kcidb.check_origin(options.kcidb_origin)
    if options.kcidb:
        show.check_writable(Path(options.kcidb), "--kcidb")


def run(job: bench.Job, options: Namespace) -> tuple[list[Run], Host, Callable[[], Ids], Callable[[], None]]:
    """(runs, host, function that returns the ids, function to call once the results are kept) of the bench.Job on the other machine."""
    wanted = remote.Options(
        options.remote, options.ssh or "ssh", options.host_config or "", options.boot or "", options.boot_timeout or 600
    )
    runs, versions, machine, made = remote.run(job, wanted)

    def kept() -> None:
        remote.forget(made.kept)
        remote.leave(machine, wanted.seconds)

    return runs, remote.host_info(machine, versions, results.host_info(["gcc"], versions)), lambda: made.ids, kept


def save_kcidb(job: bench.Job, options: Namespace, target: Path, begun: float) -> None:
    """Write what --kcidb asks for of the results file `target`; begun: seconds since the epoch."""
    if not options.kcidb:
        return
    counts = {point.label: point.count if point.series.name == job.series.name else None for point in job.points}
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun))
    made = kcidb.document(results.load(target), job.series, counts, options.kcidb_origin or "kvm_series", stamp)
    files.write_json(options.kcidb, made)
    say(f"KCIDB's JSON in {options.kcidb}")
