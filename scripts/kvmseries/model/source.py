"""What is compiled of an applied tree: files as they are, and definitions cut out by name.

model/functions lists them.  Each has the declaration that the shims were written for: one that is
not there, or has changed, is one line and the end.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

from ..base.errors import Fail
from ..source import ccode
from . import ROOM

LIST = ROOM / "functions"
# Compiled as they are: path in the tree, and where the shims look for them.
_WHOLE = {"arch/arm64/kvm/hyp/pgtable.c": "pgtable.c", "arch/arm64/include/asm/kvm_pgtable.h": "asm/kvm_pgtable.h"}
_STRAY = re.compile(r"^#\s*include\s*<([^>]+)>", re.M)


class Section(NamedTuple):
    """Definitions that are cut out of one file."""

    kind: str        # "defines", "functions", "mm", or "header": the whole file
    path: str        # in the tree
    same: str        # a file that must have the same definitions, "" for none
    wanted: tuple[str, ...]  # declarations


def sections(text: str) -> list[Section]:
    """The Sections that the text of model/functions lists; Fail if a line means nothing."""
    found: list[Section] = []
    for number, line in enumerate(text.splitlines(), 1):
        head = re.fullmatch(r"\[(defines|functions|header|mm)\] (\S+)(?: = (\S+))?", line)
        if head:
            found.append(Section(head[1], head[2], head[3] or "", ()))
        elif line and not line.startswith("# "):
            if not found:
                raise Fail(f"model/functions:{number}: a declaration before the first file")
            found[-1] = found[-1]._replace(wanted=(*found[-1].wanted, line))
    return found


def files() -> list[str]:
    """Every path of a tree that is read."""
    listed = sections(LIST.read_text(encoding="utf-8"))
    return sorted({*_WHOLE, *(s.path for s in listed), *(s.same for s in listed if s.same)})


def collect(tree: Path, folder: Path) -> None:
    """Write what is compiled of the kernel in `tree` into the directory `folder`: pgtable.c,
    functions.inc, mm.inc, defines.inc, and empty files for the headers that are included."""
    for path, name in _WHOLE.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_checked(tree, path), target)
    parts: dict[str, list[str]] = {"defines": [], "functions": [], "mm": []}
    for section in sections(LIST.read_text(encoding="utf-8")):
        source = _read(tree, section.path)
        if section.kind == "header":
            parts["functions"].append(f'#line 1 "{section.path}"\n{source}')
            continue
        for wanted in section.wanted:
            text = cut(source, wanted, section.path)
            if section.same and _body(text) != _body(cut(_read(tree, section.same), wanted, section.same)):
                raise Fail(f"{section.same}: {name_of(wanted)}() is not the same as in {section.path}, "
                           "and the model takes one for both")
            parts[section.kind].append(text)
    for kind, texts in parts.items():
        (folder / f"{kind}.inc").write_text("\n".join(texts), encoding="utf-8")
    for text in [*parts["functions"], *((folder / name).read_text(encoding="utf-8") for name in _WHOLE.values())]:
        for header in _STRAY.findall(text):
            if not (folder / header).exists():
                (folder / header).parent.mkdir(parents=True, exist_ok=True)
                (folder / header).write_text("", encoding="utf-8")


def _body(text: str) -> str:
    return text.partition("\n")[2]


def _checked(tree: Path, path: str) -> Path:
    if not (tree / path).is_file():
        raise Fail(f"{tree} has no {path}: the model needs a tree made by scripts/series apply")
    return tree / path


def _read(tree: Path, path: str) -> str:
    return _checked(tree, path).read_text(encoding="utf-8")


def name_of(wanted: str) -> str:
    """The name that a declaration declares."""
    for pattern in (r"#define (\w+)", r"enum (\w+)", r"(\w+)\("):
        match = re.match(pattern, wanted) if pattern[0] in "#e" else re.search(pattern, wanted)
        if match:
            return match[1]
    raise Fail(f"model/functions: '{wanted}' declares nothing")


def cut(source: str, wanted: str, path: str) -> str:
    """The definition in the text `source`, of the file `path`, that the declaration `wanted` is of,
    with a #line before it; Fail if there is none, or if it is declared otherwise."""
    name, word = name_of(wanted), wanted.split()[0]
    kind = {"#define": "define", "enum": "enum"}.get(word, "function")
    match = ccode.find(source, kind, name)
    if not match:
        raise Fail(f"{path}: {name}{'()' * (kind == 'function')} is not there, which the model compiles")
    if kind == "function":
        declared = " ".join(match[0].partition("{")[0].split())
        if declared.replace("( ", "(") != wanted:
            raise Fail(f"{path}: {name}() is declared otherwise than the model's shims expect: '{declared}', "
                       f"not '{wanted}'")
    return _line(source, match.start(), path) + match[0]


def _line(source: str, start: int, path: str) -> str:
    return f'#line {source.count(chr(10), 0, start) + 1} "{path}"\n'
