"""Which checks are run again, by checks/conftest.py, that none is so without a word, and that its logs are
kept."""

import re
import subprocess
import sys

import pytest

from checks.conftest import UNEXPLAINED
from kvmseries.base import paths
from kvmseries.conftest import write
from kvmseries.guest import run as guest
from kvmseries.qemu import soak

TEST = """\
from pathlib import Path

import pytest

from kvmseries.base import paths
from kvmseries.guest import machine, run as guest

def boot(arch, name):
    folder = paths.out("runs", name)
    folder.mkdir(parents=True, exist_ok=True)
    console = folder / "console.log"
    console.write_text(console.read_text() + arch if console.exists() else arch)
    for watcher in guest.watchers:
        watcher(machine.Machine(arch), folder)

def fail(name, fails, words, archs):
    for arch in archs:
        boot(arch, f"guest-{{name}}")
    times = Path({count!r}) / name
    times.write_text(times.read_text() + "x" if times.exists() else "x")
    assert len(times.read_text()) > fails, words

"""
CHECK = """\
@pytest.mark.{mark}
def test_{name}():
    fail({name!r}, {fails}, {words!r}, {archs})

"""
SHUTDOWN = "==== Test Assertion Failure ====\n  vCPU 1: unexpected exit, exit_reason=SHUTDOWN\n"
SHUTDOWN_TOO = "vCPU 3: unexpected exit, reason 8, ucall 0"
ENDED = "the guest ended before its job during stress by a triple fault; it last printed: 'x' (see y)"
LOST = "vCPU 1: page 3 of 512, word 4: lost"
IO = "vCPU 3: unexpected exit, reason 80, ucall 0"
X86, BOTH = ("x86_64",), ("arm64", "x86_64")


@pytest.fixture(name="run")
def _run(tmp_path, monkeypatch):
    """run(CHECK's fields...): (what pytest printed, whether all passed, {name: times it ran})."""

    def run(*checks, text=""):
        counts = tmp_path / "counts"
        counts.mkdir()
        write(tmp_path / "conftest.py", "from checks.conftest import *\n")
        write(
            tmp_path / "test_it.py",
            TEST.format(count=str(counts)) + text + "".join(CHECK.format(**check) for check in checks),
        )
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-s",
                "-v",
                "-c",
                paths.ROOT / "pyproject.toml",
                f"--rootdir={tmp_path}",
                tmp_path / "test_it.py",
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env={"PYTHONPATH": str(paths.ROOT / "scripts"), "SERIES_OUT": str(tmp_path / "out")},
        )
        return (
            done.stdout,
            not done.returncode,
            {path.name: len(path.read_text(encoding="utf-8")) for path in counts.iterdir()},
        )

    return run


def _check(name="a", mark="boot", words=SHUTDOWN, fails=1, archs=X86):
    return {"name": name, "mark": mark, "words": words, "fails": fails, "archs": archs}


@pytest.mark.parametrize(
    "mark, words, fails, archs, ran, passes",
    [
        ("boot", SHUTDOWN, 1, X86, 2, True),
        ("boot", SHUTDOWN_TOO, 1, X86, 2, True),
        ("boot", ENDED, 1, X86, 2, True),
        ("boot", SHUTDOWN, 2, X86, 2, False),
        ("boot", LOST, 1, X86, 1, False),
        ("boot", IO, 1, X86, 1, False),
        ("build", SHUTDOWN, 1, X86, 1, False),
        ("boot", SHUTDOWN, 0, X86, 1, True),
        # As a migration of QEMU: its emulated host is arm64's.
        ("boot", SHUTDOWN, 1, ("arm64",), 1, False),
        ("boot", ENDED, 1, ("arm64",), 1, False),
        ("boot", SHUTDOWN, 1, BOTH, 1, False),
        # What another check's fixture has booted is not made again.
        ("boot", SHUTDOWN, 1, (), 1, False),
    ],
)
def test_what_is_run_again(run, mark, words, fails, archs, ran, passes):
    text, passed, counts = run(_check(mark=mark, words=words, fails=fails, archs=archs))
    assert (counts, passed) == ({"a": ran}, passes), text
    assert ("RUN AGAIN" in text) == ("= run again: 1, not explained" in text) == (ran == 2), text


def test_a_second_one_of_a_session_fails(run):
    text, passed, counts = run(_check("a"), _check("b"))
    assert (counts, passed) == ({"a": 2, "b": 1}, False), text
    assert "= run again: 1, not explained" in text and "FAILED" in text and "::test_b" in text


def test_the_logs_of_what_is_run_again_are_kept_and_named(run, tmp_path):
    text, passed, _ = run(_check("a"), _check("b", fails=0))
    kept = tmp_path / "out/run-again/guest-a"
    assert passed and f"test_a: logs of the failure in {kept}" in text
    # Of the first run alone.
    assert (kept / "console.log").read_text(encoding="utf-8") == "x86_64"
    assert "exit_reason=SHUTDOWN" in (kept / "failure.txt").read_text(encoding="utf-8")


def test_a_check_that_is_run_again_does_what_it_has_remembered_again(run, tmp_path):
    """And nothing that another check did."""
    boots = """\
from checks.remember import remembered

@remembered
def measured(name):
    boot("x86_64", name)
    return len((paths.out("runs", name) / "console.log").read_text())

@pytest.mark.boot
def test_before():
    assert measured("one") == 6

@pytest.mark.boot
def test_it():
    assert measured("one") == 6
    assert measured("two") == 12, "unexpected exit, exit_reason=SHUTDOWN"

@pytest.mark.boot
def test_behind():
    assert measured("one") == 6 and measured("two") == 12
"""
    text, passed, _ = run(_check("a", fails=0), text=boots)
    assert passed and text.count("RUN AGAIN") == 1, text


@pytest.mark.parametrize(
    "line", ["pages_lost 3\nfirst_lost 0x40203000", "stale 2", "target_lives 0", "error hang: source: no answer"]
)
def test_a_migration_that_fails_is_not_run_again(line):
    """Only one whose machine has gone, as with other checks of x86_64."""
    outcome = guest.Outcome("m", 1 if "error" in line else 0, 1.0, f"completed 1\n{line}\n")
    _, wrong = soak.judge(outcome)
    assert wrong and not [text for text in wrong if re.search("|".join(UNEXPLAINED), text)]
