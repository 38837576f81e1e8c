"""scripts/size, on a project of eight files."""

import shutil
import subprocess
import sys

import pytest

from kvmseries.base import paths
from kvmseries.conftest import git, write

HELP = """\
import sys
print("usage: x [-h] [--of-no-line]\\n\\n    one   does it\\n    two\\n          more" if sys.argv[1] == "-h" else
      "options:\\n  -h, --help  x\\n  --all       see --other\\n  -n N, --number N")
"""
PATCH = "Subject: x\n\ndiff --git a/tools/testing/a.c b/tools/testing/a.c\n+++ b\n+one\n+two\n-three\n"
ROWS = """\
patches (s, t)                                  2, 1
lines of patches                                21
C of selftests: added by patches + beside them  6 + 2
Python, code + tests                            3 + 1
YAML and JSON Schema                            1
words of Markdown                               3
commands, options                               2, 6
"""


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    for name, text in {
        "patches/s/0000-cover-letter.patch": PATCH,
        "patches/s/0001-x.patch": PATCH,
        "patches/s/0002-x.patch": PATCH,
        "patches/t/0001-x.patch": PATCH,
        "scripts/kvmseries/__main__.py": HELP,
        "scripts/test_x.py": "pass\n",
        "tools-testing-selftests-kvm/tests/a.c": "int a;\nint b;\n",
        "x.yaml": "a: 1\n",
        "README.md": "Three short words\n",
    }.items():
        write(root / name, text)
    shutil.copy(paths.ROOT / "scripts/size", root / "scripts/size")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x")
    return root


def size(project, *words):
    line = [sys.executable, project / "scripts/size", *words]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_what_git_knows_is_counted_or_a_commit_as_it_is_there(project):
    write(project / "more.md", "not tracked\n")
    assert size(project) == (0, ROWS, "")
    (project / "patches/t/0001-x.patch").unlink()
    write(project / "README.md", "four words are here\n")
    assert size(project, "HEAD") == (0, ROWS, "")
    status, text, _ = size(project)
    assert status == 0 and "patches (s)  " in text and "words of Markdown                               4\n" in text


def test_a_commit_that_is_none_is_told_in_one_line(project):
    status, text, said = size(project, "nope")
    assert (status, text, len(said.splitlines())) == (1, "", 1) and "nope" in said
    assert size(project, "a", "b")[0] == 2
