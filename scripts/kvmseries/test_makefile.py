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
    tool = tmp_path / "scripts/series"
    tool.parent.mkdir()
    tool.write_text(SERIES, encoding="utf-8")
    tool.chmod(0o755)
    (tmp_path / RESULTS).parent.mkdir(parents=True)
    (tmp_path / RESULTS).write_text("old", encoding="utf-8")
    os.utime(tmp_path / RESULTS, (1, 1))
    done = subprocess.run(
        ["make", "run"],
        cwd=tmp_path,
        env={**KEPT, "WRITES": writes, "STATUS": status},
        check=False,
        capture_output=True,
    )
    assert (done.returncode != 0) == (status != "0")
    assert (tmp_path / "said").read_text(encoding="utf-8").split() == said


@pytest.mark.parametrize("goal", ["check", "test", "test-all"])
def test_what_they_need_is_installed_before_the_checks_begin(tmp_path, goal):
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    for name in ("scripts/bootstrap", "scripts/series", "out/venv/bin/python"):
        write(tmp_path / name, f'#!/bin/sh\necho {name} "$1" "$2" >> said\n')
        (tmp_path / name).chmod(0o755)
    subprocess.run(["make", goal], cwd=tmp_path, env=KEPT, check=True, capture_output=True)
    said = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
    assert [line.rstrip() for line in said] == [
        "scripts/bootstrap",
        "scripts/series deps --checks",
        "out/venv/bin/python -m pytest",
    ]
