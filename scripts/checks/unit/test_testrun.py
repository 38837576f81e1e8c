"""Runs of pytest on checks that are made up."""

import json
import os
import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest

from checks import testrun
from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import write

CHECKS = """\
import os, pytest
@pytest.mark.boot
def test_boots(): note("boots")
@pytest.mark.boot
@pytest.mark.slow
def test_slow(): note("slow")
@pytest.mark.boot
def test_breaks():
    note("breaks")
    assert os.environ.get("MENDED")
@pytest.mark.boot
def test_breaks_at_its_end(broken): note("end")
@pytest.mark.build
def test_cannot(): pytest.skip("not here")
def test_quick(): note("quick")
@pytest.fixture
def broken():
    yield
    assert os.environ.get("MENDED")
def note(text):
    with open(os.environ["NOTES"], "a") as file:
        file.write(text + "\\n")
"""


@pytest.fixture(name="run")
def _run(tmp_path):
    """run("--go-on", MENDED="1"): (output, what ran) of a run of CHECKS."""
    write(tmp_path / "checks/test_0_made_up.py", CHECKS)

    def run(*options, **environment):
        notes = tmp_path / "notes"
        notes.unlink(missing_ok=True)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-c",
                str(paths.ROOT / "pyproject.toml"),
                "--rootdir",
                str(tmp_path),
                "-p",
                "checks.testrun",
                *options,
                str(tmp_path / "checks"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(paths.ROOT / "scripts"), "NOTES": str(notes), **environment},
        )
        return done.stdout + done.stderr, notes.read_text(encoding="utf-8").split() if notes.exists() else []

    return run


def _passed():
    return {json.loads(path.read_text(encoding="utf-8"))["check"] for path in paths.cache("passed").glob("*.json")}


def test_what_has_passed_is_not_run_again_and_all_else_is(run):
    _, ran = run()
    assert ran == ["boots", "slow", "breaks", "end", "quick"]
    text, ran = run("--go-on")
    assert ran == ["breaks", "end", "quick"]
    assert re.search(
        r"passed  checks/test_0_made_up.py::test_boots  \(not run: passed 20\d\d-.* for the same inputs\)", text
    )
    # passed, before, failed, skipped
    assert re.search(r"^checks/test_0_made_up.py +1 +2 +2 +1 +0:00$", text, re.M), text
    text, ran = run("--go-on", MENDED="1")
    assert ran == ["breaks", "end", "quick"]
    assert run("--go-on")[1] == ["quick"]


def test_without_being_asked_everything_is_run(run):
    run(MENDED="1")
    assert run(MENDED="1")[1] == ["boots", "slow", "breaks", "end", "quick"]


def test_what_has_passed_for_other_inputs_is_run_again(run):
    run()
    assert run("--go-on", SERIES_STRESS="600")[1] == ["boots", "slow", "breaks", "end", "quick"]
    # A check has one record, of what it passed with last.
    assert run("--go-on")[1] == ["boots", "slow", "breaks", "end", "quick"]


def test_a_fresh_clone_on_a_full_disk_is_told_at_once(run, monkeypatch, tmp_path):
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "out"))
    gigabyte = 10**9
    assert testrun.too_little_disk(12 * gigabyte) == ""
    assert re.search(
        r"the checks make 12 GB below .*/out, and 3.2 GB are free: remove something, or set SERIES_OUT",
        testrun.too_little_disk(3.2 * gigabyte),
    )
    (tmp_path / "out" / "trees").mkdir()
    assert testrun.too_little_disk(3.2 * gigabyte) == ""

    # Nothing has run then.
    write(tmp_path / "full.py", "import shutil\nshutil.disk_usage = lambda _: shutil._ntuple_diskusage(1, 1, 0)\n")
    output, ran = run(
        "-p", "full", "--ahead", SERIES_OUT=str(tmp_path / "new"), PYTHONPATH=f"{tmp_path}:{paths.ROOT / 'scripts'}"
    )
    assert "the checks make 12 GB below" in output and ran == []


def test_a_qemu_of_the_backports_is_one_that_checks_depend_on(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "cache_root", lambda: tmp_path)
    before = testrun.surroundings()
    program = tmp_path / "backports-qemu-system-arm/usr/bin/qemu-system-aarch64"
    for version in ("QEMU 98", "QEMU 99"):
        write(program, f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
        assert set(testrun.surroundings()) - set(before) == {version}


def test_what_a_check_reads_is_what_its_mark_names(run, tmp_path):
    """A check that reads a file of another series has passed, and is run again."""
    for name, recorded in (("v5.10", True), ("v7.3", False)):
        patch = next((paths.PATCHES / name).glob("0001-*.patch"))
        write(
            tmp_path / "checks/test_0_made_up.py",
            f"import pytest\n@pytest.mark.reads('v5.10')\ndef test_reads(): assert open({str(patch)!r}).read()\n",
        )
        text, _ = run()
        line = (
            "not recorded: checks/test_0_made_up.py::test_reads has read files of v7.3; its mark `reads` names others"
        )
        assert (line in text) != recorded and "1 passed" in text
        text, _ = run("--go-on")
        assert ("1 deselected" in text) == recorded, text


@pytest.mark.parametrize("text", ["", "{", "[]", '{"inputs": 1}', '{"inputs": "x", "when": []}'])
def test_a_record_that_was_cut_short_costs_time_alone(run, text):
    run("-k", "boots")
    (record,) = paths.cache("passed").glob("*.json")
    write(record, text)
    assert run("--go-on", "-k", "boots")[1] == ["boots"]
    assert run("--go-on", "-k", "boots")[1] == []


def test_make_test_leaves_out_what_is_slow(run):
    assert run("-m", "not slow")[1] == ["boots", "breaks", "end", "quick"]
    assert _passed() == {"checks/test_0_made_up.py::test_boots"}


def _collected(target):
    """Files of which `make TARGET` collects tests."""
    # The make that runs this has its own flags in the environment.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    text = subprocess.run(
        ["make", "-n", target], cwd=paths.ROOT, stdout=subprocess.PIPE, text=True, check=True, env=env
    ).stdout
    words = shlex.split(next(line for line in text.splitlines() if " -m pytest " in line))
    where = words[words.index("pytest") + 1 :]
    where = [word for word in where if not word.startswith(("--junit", "--ahead", "--go-on"))]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *where, "--collect-only", "-qq"],
        cwd=paths.ROOT,
        text=True,
        stdout=subprocess.PIPE,
        check=False,
        env={**os.environ, "PYTHONPATH": str(paths.ROOT / "scripts")},
    )
    return {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line}


def test_make_test_has_tests_of_each_file_of_checks():
    """Arguments of pytest that overlap are not collected twice, and then not at all."""
    files = {str(path.relative_to(paths.ROOT)) for path in (paths.ROOT / "scripts/checks").rglob("test_*.py")}
    only_slow = {
        f"scripts/checks/test_{name}.py"
        for name in (
            "3_dirty_log_fixes",
            "3_mte",
            "3_stage2_trace",
            "3_tlb_refills",
            "3_v73_trace",
            "4_bounded_holds",
            "4_dirty_faults",
            "6_v73_aging",
            "9_qemu",
        )
    }
    assert len(files) > 12 and files - only_slow <= _collected("test")
    assert files <= _collected("test-all")


def test_an_interrupted_run_keeps_what_has_passed(run):
    text, _ = run("-x")
    assert "test_breaks" in text
    assert _passed() == {f"checks/test_0_made_up.py::test_{name}" for name in ("boots", "slow")}


# A stand-in for the module that builds: it says when it begins, and when it is told to end.
BUILDER = """\
import os, pathlib, signal, time
def note(text):
    with open(os.environ["NOTES"], "a") as file:
        file.write(text + "\\n")
def ended(*_):
    note("ended")
    raise SystemExit
signal.signal(signal.SIGTERM, ended)
note("builds")
while True:
    time.sleep(0.1)
"""
# What stands in CHECKS for test_quick(): where nothing must be built, time in which a builder would say that it begins; and a
# check that passes as soon as the builder has begun, which on a busy machine takes seconds.
SLEEPS = "def test_quick():\n    import time\n    time.sleep(3)"
WAITS = """\
def test_quick():
    import pathlib, time
    for _ in range(600):
        if "builds" in pathlib.Path(os.environ["NOTES"]).read_text():
            return
        time.sleep(0.1)
    raise AssertionError("nothing is built")"""


@pytest.mark.parametrize("options, builds", [(["--ahead"], True), ([], False), (["--ahead", "-k", "quick"], False)])
def test_kernels_are_built_meanwhile_if_a_check_wants_them_and_no_longer(run, tmp_path, options, builds):
    write(
        tmp_path / "checks/test_0_made_up.py",
        CHECKS.replace('def test_quick(): note("quick")', WAITS if builds else SLEEPS),
    )
    write(tmp_path / "bin/python", f"#!/bin/sh\nexec {sys.executable} {tmp_path}/builder.py\n")
    (tmp_path / "bin/python").chmod(0o755)
    write(tmp_path / "builder.py", BUILDER)
    write(tmp_path / "checks/conftest.py", f"import sys\nsys.executable = {str(tmp_path / 'bin/python')!r}\n")
    # As in a clone that has built before: how much disk is free now is not what is tested.
    (tmp_path / "out/trees").mkdir(parents=True)
    _, ran = run(*options)
    assert [word for word in ran if word in ("builds", "ended")] == (["builds", "ended"] if builds else [])


def test_what_make_test_wants_is_built_ahead(monkeypatch):
    """Of each linux that has patches; and what fails to build stops nothing."""
    built = []

    def kernel(series, count, arch, **_):
        built.append((series.name, arch, count))
        raise Fail("no compiler")

    def load(name):
        return SimpleNamespace(
            name=name,
            project="qemu" if name == "qemu-10.0" else "linux",
            arches=("arm64", "x86_64"),
            patches=() if name == "v6.1" else (1, 2),
        )

    monkeypatch.setattr(testrun.catalog, "names", lambda: ["qemu-10.0", "v5.10", "v6.1", "v7.3"])
    monkeypatch.setattr(testrun.catalog, "load", load)
    monkeypatch.setattr(testrun.build, "kernel", kernel)
    testrun.build_ahead()
    assert built == [("v5.10", "arm64", 0), ("v5.10", "arm64", 2), ("v5.10", "x86_64", 0), ("v5.10", "x86_64", 2)]
