"""What ruff and mypy say of the tool's code, with what pyproject.toml asks for: what no unit test runs, too."""

import subprocess
import sys

import pytest

from kvmseries.base import paths
from kvmseries.conftest import write

CONFIGURATION = paths.ROOT / "pyproject.toml"


def ruff(*words):
    """(complaints, a line each) of ruff on the files `words`."""
    return subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", "--quiet", "--output-format=concise",
                           f"--config={CONFIGURATION}", *map(str, words)], capture_output=True, text=True,
                          check=False).stdout.splitlines()


def mypy(cache, *words):
    """(complaints, a line each) of mypy on the files `words`; of none, on the tool."""
    done = subprocess.run([sys.executable, "-m", "mypy", f"--config-file={CONFIGURATION}", f"--cache-dir={cache}",
                           "--no-error-summary", *map(str, words)], cwd=paths.ROOT, capture_output=True, text=True,
                          check=False)
    return (done.stdout + done.stderr).splitlines()


def test_names():
    assert ruff(paths.ROOT / "scripts") == []


@pytest.mark.parametrize("text, wrong", [
    ("def f():\n    return nobody\n", "F821 Undefined name `nobody`"),
    ("import os\n", "F401 [*] `os` imported but unused"), ("from os import *\n", "F403"),
    ("def f():\n    f = f()\n    return f\n", "F823"), ("def f(x=[]):\n    return x\n", "B006"),
    ("def f(:\n", "invalid-syntax")])
def test_negative_control_code_that_ruff_refuses(tmp_path, text, wrong):
    write(tmp_path / "x.py", text)
    assert [line for line in ruff(tmp_path / "x.py") if wrong in line]


def test_types(tmp_path):
    assert mypy(tmp_path) == []


@pytest.mark.parametrize("text, wrong", [
    ("def f(number: int) -> str:\n    return number\n", "Incompatible return value type"),
    ("def f(number):\n    return number\n", "Function is missing a type annotation"),
    ("def f(numbers: list) -> None:\n    pass\n", "Missing type parameters for generic type"),
    # Python 3.9 evaluates the annotations of a class.
    ("class A:\n    path: str | None = None\n", "requires Python 3.10")])
def test_negative_control_code_that_mypy_refuses(tmp_path, text, wrong):
    write(tmp_path / "x.py", text)
    assert [wrong in line for line in mypy(tmp_path, tmp_path / "x.py")] == [True]
