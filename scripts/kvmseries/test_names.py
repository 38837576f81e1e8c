"""What ruff and mypy say of the tool's code, with what pyproject.toml asks for: what no unit test runs, too."""

import subprocess
import sys

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


def test_negative_control_code_that_ruff_refuses(tmp_path):
    lines = names(write(tmp_path / "x.py", "def f(x=[]):\n    return nobody\n"))
    assert [rule for rule in ("B006", "F821") if not any(rule in line for line in lines)] == []


def test_types(tmp_path):
    assert mypy(tmp_path) == []


def test_negative_control_code_that_mypy_refuses(tmp_path):
    # Python 3.9 evaluates the annotations of a class.
    text = "def g(number):\n    return number\nclass A:\n    path: str | None = None\n"
    first, second = mypy(tmp_path, write(tmp_path / "x.py", text))
    assert "Function is missing a type annotation" in first and "requires Python 3.10" in second
