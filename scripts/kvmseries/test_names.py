"""What ruff and mypy say of the tool's code, with what pyproject.toml asks for: what no unit test runs, too."""

import subprocess
import sys

import pytest

from kvmseries.base import paths
from kvmseries.conftest import write

CONFIGURATION = paths.ROOT / "pyproject.toml"


def said(*words):
    """What a program of Python, a module and its arguments, complains about: a list of lines."""
    line = [sys.executable, "-m", *map(str, words)]
    done = subprocess.run(line, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()


def names(*words):
    config = f"--config={CONFIGURATION}"
    return said("ruff", "check", "--output-format=concise", "--no-cache", "--quiet", config, *words)


def layout(*words):
    return said("ruff", "format", "--diff", "--no-cache", "--quiet", f"--config={CONFIGURATION}", *words)


def mypy(cache, *words):
    """mypy's, on the files `words`; of none, on the tool."""
    return said("mypy", f"--config-file={CONFIGURATION}", f"--cache-dir={cache}", "--no-error-summary", *words)


def test_names_and_layout():
    """`ruff format` in the project's root mends the latter."""
    assert names(paths.ROOT / "scripts") == [] and layout(paths.ROOT) == []


def test_negative_control_code_of_another_layout(tmp_path):
    assert "+x = (1, 2)" in layout(write(tmp_path / "x.py", "x=(1,2)\n"))


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("def f():\n    return nobody\n", "F821 Undefined name `nobody`"),
        ("import os\n", "F401 [*] `os` imported but unused"),
        ("from os import *\n", "F403"),
        ("def f():\n    f = f()\n    return f\n", "F823"),
        ("def f(x=[]):\n    return x\n", "B006"),
        ("def f(:\n", "invalid-syntax"),
    ],
)
def test_negative_control_code_that_ruff_refuses(tmp_path, text, wrong):
    assert [line for line in names(write(tmp_path / "x.py", text)) if wrong in line]


def test_types(tmp_path):
    assert mypy(tmp_path) == []


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("def f(number: int) -> str:\n    return number\n", "Incompatible return value type"),
        ("def f(number):\n    return number\n", "Function is missing a type annotation"),
        ("def f(numbers: list) -> None:\n    pass\n", "Missing type parameters for generic type"),
        # Python 3.9 evaluates the annotations of a class.
        ("class A:\n    path: str | None = None\n", "requires Python 3.10"),
    ],
)
def test_negative_control_code_that_mypy_refuses(tmp_path, text, wrong):
    write(tmp_path / "x.py", text)
    assert [wrong in line for line in mypy(tmp_path, tmp_path / "x.py")] == [True]
