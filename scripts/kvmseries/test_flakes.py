"""Which checks are run again, by checks/conftest.py, and that none is so without a word."""

import subprocess
import sys

import pytest

from kvmseries import paths
from kvmseries.conftest import write

TEST = """\
from pathlib import Path

import pytest

@pytest.mark.{mark}
def test_something():
    times = Path({count!r})
    times.write_text(times.read_text() + "x" if times.exists() else "x")
    assert len(times.read_text()) > {fails}, {words!r}
"""
SHUTDOWN = "==== Test Assertion Failure ====\n  vCPU 1: unexpected exit, exit_reason=SHUTDOWN\n"
SHUTDOWN_TOO = "vCPU 3: unexpected exit, reason 8, ucall 0"
ENDED = "the guest ended before its job during stress by a triple fault; it last printed: 'x' (see y)"
LOST = "vCPU 1: page 3 of 512, word 4: lost"
IO = "vCPU 3: unexpected exit, reason 80, ucall 0"


@pytest.mark.parametrize("mark, words, fails, ran, passes", [
    ("boot", SHUTDOWN, 1, 2, True), ("boot", SHUTDOWN_TOO, 1, 2, True), ("boot", ENDED, 1, 2, True),
    ("boot", SHUTDOWN, 2, 2, False), ("boot", LOST, 1, 1, False), ("boot", IO, 1, 1, False),
    ("build", SHUTDOWN, 1, 1, False), ("boot", SHUTDOWN, 0, 1, True)])
def test_what_is_run_again(tmp_path, mark, words, fails, ran, passes):
    count = tmp_path / "count"
    write(tmp_path / "conftest.py", "from kvmseries.checks.conftest import *\n")
    write(tmp_path / "test_it.py", TEST.format(mark=mark, count=str(count), fails=fails, words=words))
    config = paths.ROOT / "pytest.ini"
    run = subprocess.run([sys.executable, "-m", "pytest", "-s", "-v", "-c", config, f"--rootdir={tmp_path}",
                          tmp_path / "test_it.py"], stdout=subprocess.PIPE, text=True, check=False,
                         env={"PYTHONPATH": str(paths.ROOT / "scripts")})
    assert len(count.read_text(encoding="utf-8")) == ran, run.stdout
    assert (run.returncode == 0) == passes, run.stdout
    assert ("RUN AGAIN" in run.stdout) == (ran == 2), run.stdout
