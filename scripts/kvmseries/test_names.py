"""Every name that the tool's code uses is defined where it is used: what a unit test never runs, too."""

from pyflakes import api, reporter

from kvmseries.base import paths


class _Complaints(reporter.Reporter):
    def __init__(self):
        super().__init__(None, None)
        self.found = []

    def unexpectedError(self, filename, msg):
        self.found.append(f"{filename}: {msg}")

    def syntaxError(self, filename, msg, lineno, offset, text):
        self.found.append(f"{filename}:{lineno}: {msg}")

    def flake(self, message):
        self.found.append(str(message))


def complaints(text, name="x.py"):
    found = _Complaints()
    api.check(text, name, found)
    return found.found


def test_names():
    files = sorted((paths.ROOT / "scripts").rglob("*.py"))
    assert files
    assert not [line for path in files for line in complaints(path.read_text(encoding="utf-8"), str(path))]


def test_negative_control_a_local_that_hides_a_function():
    text = "def f():\n    f = f()\n    return f\n"
    assert "referenced before assignment" in complaints(text)[0]
