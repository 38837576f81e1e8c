"""The formats for labs, judged by those projects' own schemas, parsers and linters: each takes what the tool
writes, and refuses it with a mistake in it."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import yaml

from kvmseries.base import debian, paths, proc
from kvmseries.guest.machine import Machine
from kvmseries.labs import junit, kcidb, ktap, lava, outcomes
from kvmseries.labs.test_labs import COMPLAINTS, DATA, VERDICTS
from kvmseries.source import catalog, trees

pytestmark = pytest.mark.build
REQUIREMENTS = paths.ROOT / "scripts/requirements-labs.txt"

# Each prints nothing, and ends with a traceback if what is on its standard input is not right.
JUDGES = {
    "ktap": """
import sys, tap.parser
lines = list(tap.parser.Parser().parse_text(sys.stdin.read()))
tests = [line for line in lines if line.category == "test"]
plan, = [line for line in lines if line.category == "plan"]
assert plan.expected_tests == len(tests) and [test.number for test in tests] == list(range(1, len(tests) + 1))
assert [test.ok for test in tests] == [True, False, True, True, False, False]
assert [test.skip for test in tests] == [False, False, False, True, False, False]
""",
    "junit": """
import sys, junitparser
suites = junitparser.JUnitXml.fromstring(sys.stdin.read().encode())
cases = [case for suite in suites for case in suite]
assert (suites.tests, suites.failures, suites.skipped) == (len(cases), 3, 2)
assert sum(bool(case.result) and isinstance(case.result[0], junitparser.Failure) for case in cases) == 3
""",
    "kcidb": """
import json, sys, kcidb_io
kcidb_io.schema.V5_3.validate(json.load(sys.stdin))
""",
    "lava": """
import sys, yaml
from lava_common.schemas import validate
validate(yaml.safe_load(sys.stdin.read()))
""",
}


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


@pytest.fixture(scope="module")
def schemas():
    """Where LAVA's schemas are."""
    # Debian 13 has no LAVA.
    deb = debian.fetch_of("lava-common", "bookworm")
    folder = paths.out("lava-common")
    with paths.whole(folder) as part:
        proc.run(["dpkg-deb", "-x", str(deb), str(part)], "dpkg-deb")
    return folder / "usr/lib/python3/dist-packages"


@pytest.fixture
def takes(venv, schemas):
    """takes(name, text): whether the judge `name` of JUDGES takes the text."""

    def judge(name, text):
        done = subprocess.run(
            [str(venv / "bin/python"), "-c", JUDGES[name]],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(schemas), "PATH": "/usr/bin:/bin"},
        )
        print(done.stderr)
        assert "ModuleNotFoundError" not in done.stderr and "ImportError" not in done.stderr
        return done.returncode == 0

    return judge


def test_ktap(takes):
    text = ktap.document(outcomes.outcomes(VERDICTS, COMPLAINTS), "v5.10 arm64")
    assert takes("ktap", text)
    assert not takes("ktap", text.replace("not ok 2", "ok 2"))
    assert not takes("ktap", text.replace("1..6", "1..7"))


def test_the_kernel_s_own_parser_takes_ktap(tmp_path):
    def parse(text):
        file = tmp_path / "x.ktap"
        file.write_text(text, encoding="utf-8")
        # -B: nothing is written to the tree.
        return proc.run([sys.executable, "-B", str(program), "parse", str(file)], "kunit.py parse", check=False)[1]

    program = trees.base(catalog.load("v7.3")).path / "tools/testing/kunit/kunit.py"
    text = ktap.document(outcomes.outcomes(VERDICTS, COMPLAINTS), "v5.10 arm64")
    found = parse(text)
    assert "Ran 6 tests: passed: 2, failed: 3, skipped: 1\n" in f"{found}\n" and "[ERROR]" not in found, found
    for mistake in (("1..6", "1..7"), ("ok 3 ", "ok 4 "), ("KTAP version 1\n", "")):
        assert "[ERROR]" in parse(text.replace(*mistake)), mistake


def test_junit(takes):
    text = junit.document(outcomes.outcomes(VERDICTS, COMPLAINTS), "v5.10.arm64", {"cpu": "max"})
    assert takes("junit", text)
    assert not takes("junit", text.replace("<failure ", "<error "))
    assert not takes("junit", text.replace("</testsuites>", ""))


def test_kcidb(takes, tmp_path):
    for name in ("0001-a.patch", "0002-b.patch"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    series = SimpleNamespace(name="mini", tag="v5.10.262", patches=tuple(sorted(tmp_path.glob("*.patch"))))
    made = kcidb.document(DATA, series, {"base": 0, "series": 2}, "my_lab", "2026-01-02T03:04:05Z")
    assert takes("kcidb", json.dumps(made))
    made["tests"][0]["status"] = "FAST"
    assert not takes("kcidb", json.dumps(made))


@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
def test_lava(takes, arch):
    text = lava.document(
        "kvm", Machine(arch), "console=ttyAMA0", ("file:///Image", "file:///i.cpio"), [("one", 60, ["/tests/one"])]
    )
    assert takes("lava", text)
    job = yaml.safe_load(text)
    job["actions"][2]["test"]["timeout"] = {"minutes": 10 * job["timeouts"]["job"]["minutes"]}
    assert not takes("lava", yaml.safe_dump(job))


def test_tmt(venv, tmp_path):
    def lint(folder):
        return proc.run([str(venv / "bin/tmt"), "--root", str(folder), "lint"], "tmt lint", check=False)

    status, text = lint(paths.ROOT / "scripts/tmt")
    assert status == 0 and "fail" not in text and "warn" not in text, text
    proc.run(["cp", "-r", f"{paths.ROOT}/scripts/tmt/.", str(tmp_path)], "cp")
    plans = tmp_path / "plans.fmf"
    plans.write_text(plans.read_text(encoding="utf-8").replace("how: fmf", "how: nonsense"), encoding="utf-8")
    assert lint(tmp_path)[0] != 0
