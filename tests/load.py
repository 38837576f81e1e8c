"""Load of the host, while something runs."""

import contextlib
import os
import subprocess

from kvmseries.base import proc


@contextlib.contextmanager
def one_cpu():
    """No more than one of the host's CPUs, for what is started here."""
    all_cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cpus)


@contextlib.contextmanager
def loaded():
    """Two other programs that want all of the host's CPUs."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True) for _ in range(2)]
    try:
        yield
        assert all(process.poll() is None for process in loops)
    finally:
        for process in loops:
            proc.end(process)
