"""Which checks `make test` and `make test-all` run, for all series and for one."""

import itertools
import os
import re
import shlex
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from kvmseries.base import paths
from tests import ahead, conftest

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
    for series in ("v5.10", "v7.3"):
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


@pytest.mark.parametrize("series, other", [("v7.3", "v5.10"), ("v5.10", "v7.3"), ("qemu-10.0", "v7.3")])
def test_one_series_is_that_series_alone(quick, series, other):
    found = _collected("test", f"SERIES={series}")
    checks = [name for name in found if not name.startswith(UNIT)]
    assert checks and set(found) < set(quick)
    assert [name for name in quick if name.startswith("tests/unit/")] == [
        n for n in found if n.startswith("tests/unit/")
    ]
    assert all(name.startswith(f"tests/{series}/") or f"[{series}" in name for name in checks)
    assert not any(name.startswith((f"tests/{other}/", "tests/common/")) for name in found)


def test_every_file_of_checks_is_in_test_all():
    files = {str(path.relative_to(paths.ROOT)) for path in (paths.ROOT / "tests").rglob("test_*.py")}
    assert len(files) > 30 and files == {name.partition("::")[0] for name in _collected("test-all")}


def test_an_unknown_series_is_refused():
    done = _run(sys.executable, "-m", "pytest", "--series", "v9.9", "tests/unit")
    assert done.returncode == 4 and "unknown series 'v9.9': there is" in done.stderr


def test_what_is_built_ahead(monkeypatch):
    """Of each linux that has patches, in the order of the checks; what fails to build stops nothing."""
    built = []

    def kernel(series, count, arch, **_):
        built.append((series.name, arch, bool(count)))
        raise ahead.Fail("no compiler")

    monkeypatch.setattr(ahead.build, "kernel", kernel)
    ahead.main(["qemu-10.0", "v5.10", "v7.3"])
    assert built == list(itertools.product(("v5.10", "v7.3"), ("arm64", "x86_64"), (False, True)))


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


BUILDER = """\
#!/bin/sh
echo "$*" > notes
trap 'echo ended >> notes; exit' TERM
while :; do sleep 0.05; done
"""


def test_kernels_are_built_meanwhile_if_a_check_wants_them_and_no_longer(monkeypatch, tmp_path):
    """Of the series of the checks that build; and not without --ahead."""
    program, notes = tmp_path / "python", tmp_path / "notes"
    program.write_text(BUILDER, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    # As in a clone that has built before: how much disk is free now is not what is tested.
    paths.out("trees", "x")
    path = conftest.HERE / "v7.3/test_x.py"
    item = SimpleNamespace(path=path, get_closest_marker=lambda name: name == "build")
    for ahead_too in (False, True):
        config = SimpleNamespace(getoption={"--series": "", "--ahead": ahead_too, "collectonly": False}.get)
        session = SimpleNamespace(config=config, items=[item])
        conftest.pytest_collection_finish(session)
        assert hasattr(config, "builder") == ahead_too
    while not notes.exists() or not notes.read_text(encoding="utf-8"):
        time.sleep(0.05)
    conftest.pytest_sessionfinish(session)
    assert notes.read_text(encoding="utf-8") == "-m tests.ahead v7.3\nended\n"
