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


REFUSED = {
    "F821 Undefined name `nobody`": "def f():\n    return nobody\n",
    "F401 [*] `os` imported but unused": "import os\n",
    "F403": "from os import *\n",
    "F823": "def f():\n    f = f()\n    return f\n",
    "B006": "def f(x=[]):\n    return x\n",
    "invalid-syntax": "def f(:\n",
}
MISTYPED = {
    "Incompatible return value type": "def f(number: int) -> str:\n    return number\n",
    "Function is missing a type annotation": "def g(number):\n    return number\n",
    "Missing type parameters for generic type": "def h(numbers: list) -> None:\n    pass\n",
    # Python 3.9 evaluates the annotations of a class.
    "requires Python 3.10": "class A:\n    path: str | None = None\n",
}


def test_negative_control_code_that_ruff_refuses(tmp_path):
    for number, text in enumerate(REFUSED.values()):
        write(tmp_path / f"x{number}.py", text)
    lines = names(tmp_path)
    assert not [
        wrong
        for number, wrong in enumerate(REFUSED)
        if not any(f"x{number}.py" in line and wrong in line for line in lines)
    ]


def test_types(tmp_path):
    assert mypy(tmp_path) == []


def test_negative_control_code_that_mypy_refuses(tmp_path):
    lines = mypy(tmp_path, write(tmp_path / "x.py", "".join(MISTYPED.values())))
    assert len(lines) == len(MISTYPED) and all(wrong in line for wrong, line in zip(MISTYPED, lines))
