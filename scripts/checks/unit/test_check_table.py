"""The table of checks in tools-testing-selftests-kvm/README.md is of the checks that there are."""

import os
import re
import subprocess
import sys
from collections import Counter

from kvmseries.base import paths
from kvmseries.verify import mutants

CHECKS = "scripts/checks"
_ROW = re.compile(r"^\| (\d_\w+: \w+) \| (yes|no|\d+ of \d+) \| ~?\d+ \|$", re.M)


def collect(*options):
    """What pytest says that it collects: a node id a line."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, CHECKS],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
    ).stdout


def collected(*options):
    """{"5_stress: faults_that_race_lose_nothing": number of checks} of what pytest collects."""
    text = collect(*options)
    found = re.findall(rf"^{CHECKS}/test_(\w+)\.py::test_(\w+)(?:\[|$)", text, re.M)
    assert found, text
    return Counter(f"{file}: {name}" for file, name in found)


def test_each_check_that_must_find_a_mutant_is_there():
    wanted = {mutant.by for mutant in mutants.load() if "::" in mutant.by}
    assert wanted and wanted - set(collect().splitlines()) == set()


def where(everything, quick):
    """{check: "yes", "no", "2 of 5": how many of its cases are in make test}."""
    return {
        name: "yes" if quick[name] == count else f"{quick[name]} of {count}" if quick[name] else "no"
        for name, count in everything.items()
    }


def test_the_table_has_each_check_and_where_it_is():
    text = (paths.TESTS / "README.md").read_text(encoding="utf-8")
    rows = dict(_ROW.findall(text))
    assert rows == where(collected(), collected("-m", "not slow"))


def test_where_a_check_is():
    assert where(Counter(a=2, b=2, c=1), Counter(a=2, b=1)) == {"a": "yes", "b": "1 of 2", "c": "no"}
