"""KTAP and JUnit, judged by other projects' parsers: each takes what the tool writes, and refuses it with a mistake in
it."""

import subprocess
import sys

import pytest

from kvmseries.base import paths, proc
from kvmseries import labs
from kvmseries.test_labs import FOUND
from kvmseries.source import catalog, trees

pytestmark = pytest.mark.slow
REQUIREMENTS = paths.ROOT / "scripts/requirements-labs.txt"

# Prints nothing, and ends with a traceback if what is on its standard input is not right.
JUDGE = """
import sys, junitparser
suites = junitparser.JUnitXml.fromstring(sys.stdin.read().encode())
cases = [case for suite in suites for case in suite]
assert (suites.tests, suites.failures, suites.skipped) == (len(cases), 2, 2)
assert sum(bool(case.result) and isinstance(case.result[0], junitparser.Failure) for case in cases) == 2
"""


@pytest.fixture(scope="module")
def venv():
    """The environment of REQUIREMENTS."""
    folder, wanted = paths.out("venv-labs"), REQUIREMENTS.read_text(encoding="utf-8")
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        paths.remove(folder)
        proc.run([sys.executable, "-m", "venv", str(folder)], "venv")
        proc.run([str(folder / "bin/python"), "-m", "pip", "install", "-q", "-r", str(REQUIREMENTS)], "pip install")
        stamp.write_text(wanted, encoding="utf-8")
    return folder


def test_the_kernel_s_own_parser_takes_ktap(tmp_path):
    def parse(text):
        file = tmp_path / "x.ktap"
        file.write_text(text, encoding="utf-8")
        # -B: nothing is written to the tree.
        return proc.attempt([sys.executable, "-B", str(program), "parse", str(file)], "kunit.py parse")[1]

    program = trees.base(catalog.load("v7.3")).path / "tools/testing/kunit/kunit.py"
    text = labs.ktap(FOUND)
    found = parse(text)
    assert "Ran 5 tests: passed: 2, failed: 2, skipped: 1\n" in f"{found}\n" and "[ERROR]" not in found, found
    for mistake in (("1..5", "1..6"), ("ok 3 ", "ok 4 "), ("KTAP version 1\n", "")):
        assert "[ERROR]" in parse(text.replace(*mistake)), mistake


def test_another_parser_takes_junit(venv):
    def takes(text):
        line = [str(venv / "bin/python"), "-c", JUDGE]
        done = subprocess.run(
            line, input=text, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
        )
        assert "ModuleNotFoundError" not in done.stderr and "ImportError" not in done.stderr, done.stderr
        return done.returncode == 0

    text = labs.junit(FOUND, "v5.10.arm64")
    assert takes(text)
    assert not takes(text.replace("<failure ", "<error "))
    assert not takes(text.replace("</testsuites>", ""))
