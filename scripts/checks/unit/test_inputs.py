"""What a check depends on, on trees that are made up."""

import ast
import subprocess
from types import SimpleNamespace

import pytest

from checks import inputs
from kvmseries.base import paths
from kvmseries.conftest import write

# What a check reads whose mark is reads("v5.10").
NAMES = {
    "patches/v5.10/0001-x.patch": True,
    "patches/v5.10/milestones": True,
    "patches/v5.10/0000-cover-letter.patch": False,
    "patches/v5.10/letters/fixes.txt": False,
    "patches/v7.3/0001-x.patch": False,
    "patches/v7.3/base": True,
    "patches/instruments/v5.10/delays.patch": True,
    "patches/mutants/v7.3/mutants.patch": False,
    "patches/mutants/README.md": False,
    "model/src/main.rs": False,
    "qemu-migration/driver/main.c": False,
    "scripts/vtime/clock.c": True,
    "scripts/vtime/selftest/expected.py": True,
    "scripts/tmt/plans.fmf": True,
    "scripts/kvmseries/report/templates/page.html": True,
    "scripts/kvmseries/vm/run.py": True,
    "scripts/kvmseries/base/paths.py": True,
    "scripts/kvmseries/report/page.py": False,
    "scripts/kvmseries/vm/test_guest.py": False,
    "scripts/checks/unit/test_claims.py": False,
    "scripts/checks/test_5_stress.py": True,
    "scripts/checks/conftest.py": True,
    "scripts/README.md": False,
    "tools-testing-selftests-kvm/tests.yaml": True,
    "tools-testing-selftests-kvm/soak.yaml": False,
    "Documentation/method.md": False,
    "out/trees/x": False,
}


@pytest.fixture(name="root")
def _root(tmp_path):
    for name in NAMES:
        write(tmp_path / name, "")
    for name in ("scripts/kvmseries/__init__.py", "scripts/kvmseries/vm/__init__.py"):
        write(tmp_path / name, "")
    write(tmp_path / "scripts/checks/test_5_stress.py", "from kvmseries.vm import run\n")
    write(tmp_path / "scripts/kvmseries/vm/run.py", "import os\nfrom ..base import paths\n")
    return tmp_path


def _id(root, *areas):
    # A run of pytest reads each file once.
    inputs.modules.cache_clear()
    inputs._digest.cache_clear()  # pylint: disable=protected-access
    return inputs.Sources(root).id(root / "scripts/checks/test_5_stress.py", areas)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_check_reads(root, name):
    before = _id(root, "v5.10")
    text = (root / name).read_text(encoding="utf-8")
    write(root / name, f"{text}# more\n")
    assert (_id(root, "v5.10") != before) == NAMES[name]


def test_a_module_that_is_imported_now(root):
    before = _id(root, "v5.10")
    write(root / "scripts/kvmseries/base/paths.py", "from kvmseries.report import page\n")
    now = _id(root, "v5.10")
    write(root / "scripts/kvmseries/report/page.py", "# more\n")
    assert len({before, now, _id(root, "v5.10")}) == 3


def test_modules_that_are_named_in_strings(root):
    write(root / "scripts/kvmseries/base/paths.py", "from kvmseries import report\n")
    write(root / "scripts/kvmseries/report/__init__.py", "import importlib\n")
    before = _id(root)
    write(root / "scripts/kvmseries/report/page.py", "# more\n")
    assert _id(root) != before


def test_a_check_of_guests_does_not_depend_on_pages_and_models():
    """In this project as it is: else each change makes all checks run again."""
    code = inputs.Sources().code(paths.ROOT / "scripts/checks/test_5_stress.py")
    found = {line.split()[0].removeprefix(f"{paths.ROOT}/scripts/") for line in code}
    assert {"checks/guests.py", "checks/conftest.py", "kvmseries/vm/run.py"} <= found
    assert not [
        name for name in found if name.startswith(("kvmseries/report/", "kvmseries/model/", "kvmseries/commands/"))
    ]


def test_the_areas_of_a_mark(root):
    each = {(area,): _id(root, area) for area in inputs.AREAS}
    assert len(set(each.values())) == len(each)
    write(root / "model/src/main.rs", "// more")
    assert [area for (area,), before in each.items() if _id(root, area) != before] == ["model"]


def test_the_message_of_a_patch_does_not_count_and_its_diff_does(root):
    patch = root / "patches/v5.10/0001-x.patch"
    ids = []
    for message, line in (("one", "+a"), ("two", "+a"), ("two", "+b")):
        write(patch, f"From x\nSubject: {message}\n\n---\n\ndiff --git a/x b/x\n{line}\n")
        ids.append(_id(root, "v5.10"))
    assert ids[0] == ids[1] != ids[2]


def _item(*marks):
    return SimpleNamespace(get_closest_marker=lambda name: next((mark for mark in marks if mark.name == name), None))


def test_a_check_without_the_mark_reads_all():
    assert inputs.areas(_item(pytest.mark.reads("v7.3").mark)) == ("v7.3",)
    assert inputs.areas(_item()) == tuple(inputs.AREAS)
    assert {"v5.10", "v7.3", "qemu-10.0", "model", "texts"} <= set(inputs.AREAS)


def test_marks_name_areas():
    """Those in the files of checks/; a name that is computed is a series'."""
    for path in (paths.ROOT / "scripts/checks").glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.reads":
                found = {word.value for word in node.args if isinstance(word, ast.Constant)}
                assert node.args and found <= set(inputs.AREAS), (path, ast.unparse(node))


@pytest.mark.parametrize(
    "name, expected",
    [
        ("patches/v5.10/0001-x.patch", {"v5.10"}),
        ("patches/v7.3/base", set()),
        ("model", {"model"}),
        ("model/src/main.rs", {"model"}),
        ("scripts/README.md", {"texts"}),
        ("tools-testing-selftests-kvm/tests.yaml", set()),
        ("patches/v5.10/0009-not-there.patch", set()),
    ],
)
@pytest.mark.parametrize("how", ["open", "program", "folder"])
def test_what_is_read_is_noticed(root, name, expected, how):
    path, reads = root / name, inputs.Reads(root)
    try:
        if how == "open" and not path.is_dir() and path.exists():
            path.read_bytes()
        elif how == "folder" and path.is_dir():
            subprocess.run(["true"], cwd=path, check=True)
        else:
            subprocess.run(["true", str(path)], check=True)
    finally:
        reads.watches = False
    assert reads.seen == expected
