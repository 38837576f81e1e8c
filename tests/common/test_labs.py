"""KTAP, judged by the kernel's own parser: it takes what the tool writes, and refuses it with a mistake in it."""

import sys

import pytest

from kvmseries import labs
from kvmseries.base import proc
from kvmseries.source import catalog, trees
from kvmseries.test_labs import FOUND

pytestmark = pytest.mark.slow


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
