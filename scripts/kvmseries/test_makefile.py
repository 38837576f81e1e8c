"""What `make run` does with results whose rounds do not agree: it has them measured again, and if that does not help
they have a page, too.  What is there before the checks begin.  The tool is a shell script here."""

import os
import shutil
import subprocess

import pytest

from kvmseries.base import paths
from kvmseries.conftest import write

RESULTS = "out/results/v5.10-arm64-dirty_log_perf_test.json"
SERIES = (
    """\
#!/bin/sh
echo "$1" >> said
case "$*" in "bench "*" --retry 6 "*) echo retry >> said ;; esac
[ "$1" = report ] && exit
[ -z "$WRITES" ] || echo new > "%s"
exit "$STATUS"
"""
    % RESULTS
)
# What a make that runs the tests would hand on.
KEPT = {name: value for name, value in os.environ.items() if name not in ("SERIES_OUT", "MAKEFLAGS", "MAKELEVEL")}


@pytest.mark.parametrize(
    "writes, status, said",
    [("1", "0", ["bench", "retry", "report"]), ("1", "1", ["bench", "retry", "report"]), ("", "1", ["bench", "retry"])],
)
def test_results_have_a_page_also_where_bench_fails_and_older_ones_are_left_alone(tmp_path, writes, status, said):
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    write(tmp_path / "scripts/series", SERIES).chmod(0o755)
    write(tmp_path / RESULTS, "old")
    os.utime(tmp_path / RESULTS, (1, 1))
    environment = {**KEPT, "WRITES": writes, "STATUS": status}
    done = subprocess.run(["make", "run"], cwd=tmp_path, env=environment, check=False, capture_output=True)
    assert (done.returncode != 0) == (status != "0")
    assert (tmp_path / "said").read_text(encoding="utf-8").split() == said


def test_what_they_need_is_installed_before_the_checks_begin(tmp_path):
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    for name in ("scripts/bootstrap", "scripts/series", "out/venv/bin/python"):
        write(tmp_path / name, f'#!/bin/sh\necho {name} "$1" "$2" >> said\n').chmod(0o755)
    wanted = ["scripts/bootstrap", "scripts/series deps --checks", "out/venv/bin/python -m pytest"]
    for goal in "check", "test", "test-all":
        subprocess.run(["make", goal], cwd=tmp_path, env=KEPT, check=True, capture_output=True)
        said = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
        (tmp_path / "said").unlink()
        assert [line.rstrip() for line in said] == wanted


def _make(*words):
    """(status, what it would run and says) of make."""
    line = ["make", "-n", *words]
    done = subprocess.run(line, cwd=paths.ROOT, env=KEPT, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("goal", ["run", "proof", "soak"])
def test_what_is_of_one_series_is_of_5_10_unless_it_is_named(goal):
    assert " v5.10 " in f"{_make(goal)[1]} ".replace("\n", " ")
    assert " v7.3 " in f"{_make(goal, 'SERIES=v7.3')[1]} ".replace("\n", " ")


@pytest.mark.parametrize("goal", ["test", "test-all", "check"])
def test_tests_are_of_all_series_unless_one_is_named(goal):
    assert "--series" not in _make(goal)[1] and "--series" not in _make(goal, "SERIES=")[1]
    assert " --series v7.3 " in _make(goal, "SERIES=v7.3")[1]


@pytest.mark.parametrize("name", ["v9.9", "v5.10 v7.3"])
def test_a_series_that_is_not_there_is_refused_in_one_line(name):
    status, text = _make("run", f"SERIES={name}")
    assert status == 2 and text.count("\n") == 1 and f"unknown series '{name}': SERIES is one of " in text, text
