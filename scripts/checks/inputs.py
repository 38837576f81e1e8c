"""What a check depends on: an id that changes with what the check reads, and with nothing else, so that a pass is
worth as long as it can be.

A check reads the Python modules that its file imports, directly or not, the tests, the instrument and other files of
scripts/, which all checks may read, and of AREAS those that its mark `reads` names; all of them without the mark.  A pass of a check that has
opened a file of another area is not recorded, see Reads.  Of a patch the diff counts and not its message.
"""

import ast
import hashlib
import sys
from functools import lru_cache
from pathlib import Path

from kvmseries.base import paths

# What few checks read, by the name in the mark: how paths below the project's root begin.
AREAS = {
    **{
        name: (f"patches/{name}/", f"patches/mutants/{name}/", f"patches/instruments/{name}/")
        for name in sorted(path.name for path in paths.PATCHES.iterdir() if (path / "base").is_file())
    },
    "model": ("model/",),
    "qemu-migration": ("qemu-migration/",),
    # All .md files.
    "texts": (),
}
# What every check may read.
COMMON = ("patches/mutants/mutants.yaml", "tools-testing-selftests-kvm/", "scripts/", "pyproject.toml")
# But for modules of Python, which count where they are imported.
_MODULES = ("scripts/checks/", "scripts/kvmseries/")
_CONFTEST = "scripts/checks/conftest.py"


def is_test(path):
    """Whether the file is a unit test: a check does not read it."""
    return path.name.startswith("test_") and path.parent.name != "checks"


def area(name):
    """The area of the file `name`, a path below the project's root: a name of AREAS, "" if every check may read it, None
    if none does, or only as a module of Python."""
    path = Path(name)
    if path.suffix == ".pyc" or path.name.startswith("0000-") or is_test(path) or path.parent.name == "letters":
        return None
    if path.suffix == ".md":
        return "texts"
    if path.name == "soak.yaml":
        # Read when checks are collected only: what they take of it is in their parameters.
        return None
    if path.suffix == ".py" and name.startswith(_MODULES):
        return None
    if name.endswith("/base") or name.startswith(COMMON):
        return ""
    return next((title for title, starts in AREAS.items() if name.startswith(starts)), None)


def content(path):
    """The bytes of the file that count: of a patch of a series those from its diff on."""
    data = path.read_bytes()
    if path.suffix == ".patch" and path.name[:4].isdigit():
        return data[max(data.find(b"\ndiff --git "), 0) :]
    return data


class Sources:
    """The project's files as they are now: what is changed while checks run was not what they have begun with."""

    def __init__(self, root=paths.ROOT):
        self.root, self.digests = Path(root), {}
        for top in sorted(self.root.iterdir()):
            if top.name != "out" and not top.name.startswith("."):
                for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                    name = str(path.relative_to(self.root))
                    if area(name) is not None and path.is_file():
                        self.digests[name] = hashlib.sha256(content(path)).hexdigest()

    def data(self, areas):
        """Lines with name and digest of the files of COMMON and of `areas`."""
        return [f"{name} {digest}" for name, digest in self.digests.items() if area(name) in ("", *areas)]

    def code(self, file):
        """Lines with name and digest of the modules that the check's file imports, itself among them."""
        found = set()
        for start in (Path(file), self.root / _CONFTEST):
            found |= modules(start, self.root / "scripts")
        return [f"{path} {_digest(path)}" for path in sorted(found)]

    def id(self, file, areas):
        """The id of what a check of `file` reads that reads `areas`."""
        lines = [line.replace(f"{self.root}/", "") for line in self.code(file)] + self.data(areas)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@lru_cache(maxsize=None)
def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@lru_cache(maxsize=None)
def modules(file, top):
    """Paths of `file` and of all modules below `top` that it imports.  A module that imports others by their names in
    a string imports all modules in its folder."""
    found, todo = set(), [file]
    while todo:
        path = todo.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        text = path.read_text(encoding="utf-8")
        if path.is_relative_to(top) and "importlib" in text:
            todo += [other for other in path.parent.glob("*.py") if not is_test(other) and path.parent.name != "checks"]
        for name in _imported(ast.parse(text), path, top):
            todo += _files(name, top)
    return frozenset(found)


def _imported(tree, path, top):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(top).parent.parts if node.level else ()
            parts = [*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
            yield from (".".join([*parts, alias.name]) for alias in node.names)


def _files(name, top):
    """The files of module `name` and of the packages that it is in."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        where = top.joinpath(*parts[:count])
        yield where.with_suffix(".py")
        yield where / "__init__.py"


def areas(item):
    """The names in the check's mark `reads`: the nearest one counts.  Without it all are."""
    mark = item.get_closest_marker("reads")
    return mark.args if mark else tuple(AREAS)


class Reads:
    """The areas of which the process has opened files, or has named them to a program that it started."""

    def __init__(self, root=paths.ROOT):
        self.root, self.seen = f"{root}/", set()
        self.watches = True
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if not self.watches:
            return
        if event == "open":
            self._note(arguments[0])
        elif event == "subprocess.Popen":
            _, words, folder, _ = arguments
            for word in (*words, folder):
                self._note(word)

    def _note(self, name):
        if isinstance(name, (str, Path)) and str(name).startswith(self.root) and Path(name).exists():
            self.seen.add(area(str(name)[len(self.root) :] + "/" * Path(name).is_dir()))
            self.seen -= {None, ""}
