"""Which checks `make test` and `make test-all` run, for all series and for one."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from kvmseries.base import paths
from tests import conftest

UNIT = ("scripts/", "model/", "qemu-migration/", "tools-testing-selftests-kvm/", "tests/unit/")
# The make that runs this has its own flags in the environment.
ENV = {
    name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST_", "SERIES"))
}


def _run(*words):
    return subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, check=False, env=ENV)


def _collected(*words):
    """Ids of the tests that `make WORDS` runs, in order."""
    done = _run("make", "-n", *words)
    line = next(shlex.split(line) for line in done.stdout.splitlines() if " -m pytest " in line)
    others = re.compile(r"-[sv]$|--junit|--durations|-rs$|-q$|scripts|model/|qemu-migration|tools-")
    options = [word for word in line[line.index("pytest") + 1 :] if not others.match(word)]
    done = _run(sys.executable, "-m", "pytest", *options, "--collect-only", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.fixture(scope="module", name="quick")
def _quick():
    return _collected("test")


def test_each_series_is_built_booted_raced_and_has_a_mutant_found(quick):
    for series in ("v5.10", "v6.12", "v7.3"):
        for arch in ("arm64", "x86_64"):
            for check in (
                f"test_builds.py::test_base_and_series_build_without_new_warnings[{series}-{arch}]",
                f"test_builds.py::test_the_kernel_is_made_of_every_file_that_the_series_changes[{series}-{arch}]",
                f"test_selftests.py::test_selftests_pass_on_the_series[{series}-{arch}]",
            ):
                assert f"tests/each/{check}" in quick
        boots = [name for name in quick if name.startswith(f"tests/{series}/") and "test_model" not in name]
        assert sum("negative_control" in name for name in boots) >= 2 and sum("los" in name for name in boots) >= 2
    assert "tests/qemu-10.0/test_builds.py::test_qemus_new_unit_tests_pass" in quick


def test_quick_ones_come_first(quick):
    stages = [
        0 if name.startswith(UNIT) else 2 if "/test_selftests.py" in name else 1 if "/test_builds.py" in name else None
        for name in quick
    ]
    known = [stage for stage in stages if stage is not None]
    assert known == sorted(known) and set(known) == {0, 1, 2}


@pytest.mark.parametrize("series", ["v7.3", "v6.12", "v5.10", "qemu-10.0"])
def test_one_series_is_that_series_alone(quick, series):
    found = _collected("test", f"SERIES={series}")
    assert set(found) < set(quick)
    assert [name for name in quick if name.startswith(UNIT)] == [name for name in found if name.startswith(UNIT)]
    checks = [name for name in found if not name.startswith(UNIT)]
    assert checks and all(name.startswith(f"tests/{series}/") or f"[{series}" in name for name in checks)


def test_every_file_of_checks_is_in_test_all():
    files = {str(path.relative_to(paths.ROOT)) for path in (paths.ROOT / "tests").rglob("test_*.py")}
    assert len(files) > 30 and files == {name.partition("::")[0] for name in _collected("test-all")}


def test_an_unknown_series_is_refused():
    done = _run(sys.executable, "-m", "pytest", "--series", "v9.9", "tests/unit")
    assert done.returncode == 4 and "unknown series 'v9.9': there is" in done.stderr


def test_a_fresh_clone_on_a_full_disk_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "out"))
    gigabyte = 10**9
    assert conftest.too_little_disk(18 * gigabyte, False) == conftest.too_little_disk(10 * gigabyte, True) == ""
    assert re.search(
        r"the checks make 18 GB below .*/out, and 3.2 GB are free: remove something, or set SERIES_OUT",
        conftest.too_little_disk(3.2 * gigabyte, False),
    )
    (tmp_path / "out" / "trees").mkdir()
    assert conftest.too_little_disk(3.2 * gigabyte, False) == ""
