"""What a run of the checks leaves behind, a plugin of pytest (-p checks.testrun): how long each check took,
and which have passed, so that `make test-all` goes on where it was interrupted.

That a check that builds, boots or says what it reads has passed is kept in the cache directory.  With --go-on it is not
run again for the same inputs: what it reads (inputs.py), tools, environment.  The others take minutes together and
always run.

With --ahead the kernels that all checks need are built while those run that keep one CPU busy: this file as a program.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from checks import extra, inputs
from kvmseries.base import files, paths, progress
from kvmseries.base.errors import Fail
from kvmseries.kernel import build, toolchain
from kvmseries.source import catalog

_MARKS = ("build", "boot", "reads")
# Seconds from which on a check gets a line of its own.
LONG = 1
# Bytes that the checks of `make test` make below out/ of a fresh clone, as README.md says, too.
DISK = 12 * 10**9


@dataclass
class Check:
    """What became of one check."""

    outcome: str = "passed"  # "passed", "failed", "skipped"
    seconds: float = 0
    before: str = ""  # when it passed, if it was not run for that


def surroundings():
    """Lines about what else a check depends on: compilers, QEMUs, the user's own tree, how long it is to run."""
    lines = []
    for arch in ("arm64", "x86_64"):
        qemu = f"qemu-system-{toolchain.machine(arch)}"
        # The second QEMU is where emulator.newer() unpacks one.
        for program in (
            f"{toolchain.prefix(arch)}gcc",
            qemu,
            *sorted(paths.cache_root().glob(f"backports-*/usr/bin/{qemu}")),
        ):
            lines.append(_first_line([str(program), "--version"]))
    kernel = paths.own_tree()
    if kernel:
        lines.append(f"{kernel} {_first_line(['git', '-C', kernel, 'rev-parse', 'HEAD'])}")
    lines += [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith("SERIES_") and name not in ("SERIES_OUT", "SERIES_CACHE")
    ]
    return lines


def _first_line(command):
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0]


class Passed:
    """What has passed, of all clones of this user: a file for each check in the cache directory, {"check": nodeid,
    "inputs": id, "when": text, "seconds": number}, of its latest inputs."""

    def __init__(self):
        self.read = {}

    def collected(self, items):
        """These checks are to be run.  What is changed while they run was not what they have begun with."""
        sources = inputs.Sources()
        self.read = {item.nodeid: sources.id(item.path, inputs.areas(item)) for item in items}

    def inputs(self, nodeid):
        """The id of what the check depends on now.  Tools may be installed while checks run."""
        lines = [self.read[nodeid], *surroundings()]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def find(self, nodeid):
        """(when, seconds) of the check, if it has passed for the same inputs, else None."""
        try:
            data = json.loads(_record(nodeid).read_text(encoding="utf-8"))
            return (data["when"], data["seconds"]) if data["inputs"] == self.inputs(nodeid) else None
        except (OSError, ValueError, KeyError, TypeError):
            # Nothing is lost but time.
            return None

    def add(self, nodeid, seconds):
        """The check has passed."""
        files.write_json(
            _record(nodeid),
            {
                "check": nodeid,
                "inputs": self.inputs(nodeid),
                "when": time.strftime("%Y-%m-%d %H:%M"),
                "seconds": round(seconds, 1),
            },
        )


def _record(nodeid):
    return paths.cache("passed", f"{hashlib.sha256(nodeid.encode()).hexdigest()[:16]}.json")


class Run:
    """The checks of one run of pytest."""

    def __init__(self, go_on, ahead):
        self.go_on, self.ahead, self.passed = go_on, ahead, Passed()
        self.builder = None
        self.checks, self.marked, self.begun = {}, {}, time.monotonic()
        self.reads, self.unnamed = inputs.Reads(), {}

    def pytest_collection_modifyitems(self, config, items):
        """Leave out what has passed before."""
        marked = [item for item in items if any(map(item.get_closest_marker, _MARKS))]
        self.passed.collected(marked)
        self.marked = {item.nodeid: set(inputs.areas(item)) for item in marked}
        known = []
        for item in marked if self.go_on else ():
            before = self.passed.find(item.nodeid)
            if before:
                known.append(item)
                self.checks[item.nodeid] = Check("passed", before[1], before[0])
        config.hook.pytest_deselected(items=known)
        items[:] = [item for item in items if item not in known]

    def pytest_runtest_logstart(self):
        """A check begins."""
        self.reads.seen.clear()

    def pytest_collection_finish(self, session):
        """Begin to build, if checks that build are to run."""
        if self.ahead and any(item.get_closest_marker("build") for item in session.items):
            wrong = too_little_disk(shutil.disk_usage(paths.out("trees").parent).free)
            if wrong:
                pytest.exit(wrong, 1)
            with open(paths.out("logs", "ahead.log"), "wb") as log:
                self.builder = subprocess.Popen(  # pylint: disable=consider-using-with
                    [sys.executable, "-m", "checks.testrun"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def pytest_sessionfinish(self):
        """Leave no compiler behind."""
        self.reads.watches = False
        if self.builder:
            # What it has started is in sessions of their own, and ended by it.
            self.builder.terminate()
            self.builder.wait()

    def pytest_runtest_logreport(self, report):
        """Count a phase of a check."""
        check = self.checks.setdefault(report.nodeid, Check())
        check.seconds += report.duration
        if report.outcome != "passed":
            check.outcome = report.outcome
        if report.when == "teardown" and check.outcome == "passed" and report.nodeid in self.marked:
            unnamed = self.reads.seen - self.marked[report.nodeid]
            if unnamed:
                self.unnamed[report.nodeid] = unnamed
            else:
                self.passed.add(report.nodeid, check.seconds)

    def pytest_terminal_summary(self, terminalreporter):
        """The tables."""
        for title, lines in (("time of each check", longest(self.checks)), ("summary", summary(self.checks))):
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)
        for nodeid, unnamed in self.unnamed.items():
            terminalreporter.write_line(
                f"not recorded: {nodeid} has read files of {', '.join(sorted(unnamed))}; its mark `reads` names others"
            )
        terminalreporter.write_line(f"This run took {progress.clock(time.monotonic() - self.begun)}.")


def longest(checks):
    """Lines with the seconds of each check that takes LONG or more, in the order of the run."""
    return [
        f"{check.seconds:7.1f} s  {check.outcome:7s} {nodeid}"
        + (f"  (not run: passed {check.before} for the same inputs)" if check.before else "")
        for nodeid, check in checks.items()
        if check.seconds >= LONG or check.before
    ]


def summary(checks):
    """Lines with the number of checks by outcome and their time, a line for each file of checks/."""
    rows = {}
    for nodeid, check in checks.items():
        path = Path(nodeid.partition("::")[0])
        rows.setdefault(f"checks/{path.name}" if path.parent.name == "checks" else "unit tests", []).append(check)
    lines = [f"{'':28s} passed before failed skipped   time"]
    for name, found in [*rows.items(), ("all", list(checks.values()))]:
        now = [check for check in found if not check.before]
        counts = [
            sum(check.outcome == "passed" for check in now),
            len(found) - len(now),
            *(sum(check.outcome == outcome for check in now) for outcome in ("failed", "skipped")),
        ]
        lines.append(
            f"{name:28s} {counts[0]:6d} {counts[1]:6d} {counts[2]:6d} {counts[3]:7d} "
            f"{progress.clock(sum(check.seconds for check in now)):>6s}"
        )
    lines.append("before: passed before for the same inputs, and not run again")
    return lines


def pytest_addoption(parser):
    """--go-on."""
    parser.addoption(
        "--go-on", action="store_true", help="do not run again what builds or boots and has passed for the same inputs"
    )
    parser.addoption("--ahead", action="store_true", help="build kernels while quick checks run")


def pytest_configure(config):
    """Register the run, unless nothing is to be run."""
    if config.getoption("collectonly"):
        return
    try:
        config.pluginmanager.register(Run(config.getoption("--go-on"), config.getoption("--ahead")), "kvmseries-run")
    except Fail as error:
        raise pytest.UsageError(str(error)) from None


def too_little_disk(free):
    """A line about the disk of out/, of which `free` bytes are free, or "": not of a clone that has its trees, as some
    of what checks make is there then."""
    folder = paths.out("trees")
    if folder.exists() or free >= DISK:
        return ""
    return (
        f"the checks make {DISK / 10**9:.0f} GB below {folder.parent}, and {free / 10**9:.1f} GB are free: "
        "remove something, or set SERIES_OUT to a directory on another disk"
    )


def build_ahead():
    """Build base and series of each kernel series, as make test wants them.  What fails here fails in the check that
    wants it, too."""
    for name in catalog.names():
        series = catalog.load(name)
        if series.project == "linux" and series.patches and extra.quick(series):
            for arch in series.arches:
                for count in (0, len(series.patches)):
                    with contextlib.suppress(Fail):
                        build.kernel(series, count, arch, kernel_tree=extra.own_base(series))


def _terminated(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    with contextlib.suppress(KeyboardInterrupt):
        build_ahead()
