"""What is compiled of an applied tree: files as they are, and definitions cut out by name.

model/functions.arm64 and .x86 list them.  Each has the declaration that the shims were written for: one that is
not there, or has changed, is one line and the end.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from kvmseries.base.errors import Fail
from kvmseries.source import ccode

from . import ROOM

_STRAY = re.compile(r"^#\s*include\s*[<\"]([^>\"]+)[>\"]", re.M)
# Of arm64 and of x86, as Arch.whole.
_PGTABLE = {"arch/arm64/kvm/hyp/pgtable.c": "pgtable.c", "arch/arm64/include/asm/kvm_pgtable.h": "asm/kvm_pgtable.h"}
_TDP = {
    f"arch/x86/kvm/mmu/{name}": name
    for name in "spte.c spte.h mmu_internal.h tdp_iter.c tdp_iter.h tdp_mmu.c tdp_mmu.h".split()
}


class Arch(NamedTuple):
    """What is compiled for an architecture, of the kernel of one series."""

    name: str
    series: str  # the directory of patches/
    shims: tuple[str, ...]  # of model/shim, what is compiled besides
    whole: dict[str, str]  # compiled as they are: path in the tree, and where the shims look for them
    units: tuple[str, ...]  # files of those that are compiled by themselves
    first: str  # the milestone, or the number of patches, that there is something to check from
    before: str  # why there is nothing before it

    @property
    def list(self) -> Path:
        """The file that lists what is cut out."""
        return ROOM / f"functions.{self.name}"


ARCHES = {
    arch.name: arch
    for arch in (
        Arch(
            "arm64",
            "v5.10",
            ("arm64.c", "ksm.c"),
            _PGTABLE,
            ("pgtable.c",),
            "21",
            "mmu_lock is a spinlock, and no code changes page tables without it",
        ),
        *(
            Arch(
                f"arm64-{series}",
                series,
                ("arm64-v7.3.c",),
                _PGTABLE,
                ("pgtable.c",),
                "bounded",
                "the code is that of base, but for the fixes",
            )
            for series in ("v7.3", "v6.12")
        ),
        Arch(
            "x86",
            "v5.10",
            ("x86.c", "ksm.c"),
            _TDP,
            ("spte.c", "tdp_iter.c", "tdp_mmu.c"),
            "aging-x86",
            "mmu_lock is a spinlock, and no code runs without it that does not on base",
        ),
    )
}


class Section(NamedTuple):
    """Definitions that are cut out of one file."""

    kind: str  # "defines", "inlines", "functions", "mm", "header": the whole file, or "config": whether a Kconfig file selects it
    path: str  # in the tree
    same: str  # a file that must have the same definitions, "" for none
    wanted: tuple[str, ...]  # declarations


def sections(text: str) -> list[Section]:
    """The Sections that the text of a list (model/functions.*) has; Fail if a line means nothing."""
    found: list[Section] = []
    for number, line in enumerate(text.splitlines(), 1):
        head = re.fullmatch(r"\[(config|defines|inlines|functions|header|mm)\] (\S+)(?: = (\S+))?", line)
        if head:
            found.append(Section(head[1], head[2], head[3] or "", ()))
        elif line and not line.startswith("# "):
            if not found:
                raise Fail(f"model/functions.*:{number}: a declaration before the first file")
            found[-1] = found[-1]._replace(wanted=(*found[-1].wanted, line))
    return found


def of_series(series: str) -> tuple[str, ...]:
    """The names of the Arches that are of a series."""
    return tuple(arch.name for arch in ARCHES.values() if arch.series == series)


def files(*arches: Arch) -> list[str]:
    """Every path of a tree that is read for these Arches (default: all)."""
    found: set[str] = set()
    for arch in arches or ARCHES.values():
        listed = sections(arch.list.read_text(encoding="utf-8"))
        found |= {*arch.whole, *(s.path for s in listed), *(s.same for s in listed if s.same)}
    return sorted(found)


def collect(tree: Path, folder: Path, arch: Arch) -> None:
    """Write what is compiled of the kernel in `tree` for an Arch into the directory `folder`: the files that are taken
    as they are, defines.inc, inlines.inc, functions.inc, mm.inc, and empty files for the headers that are included."""
    for path, name in arch.whole.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(checked(tree, path), target)
    parts: dict[str, list[str]] = {"defines": [], "inlines": [], "functions": [], "mm": []}
    for section in sections(arch.list.read_text(encoding="utf-8")):
        source = _read(tree, section.path)
        if section.kind == "header":
            parts["functions"].append(f'#line 1 "{section.path}"\n{source}')
            continue
        if section.kind == "config":
            selected = {line.strip() for line in source.splitlines()}
            parts["defines"] += [
                f"#define S2_CONFIG_{name_of(line)} {int(line in selected)}" for line in section.wanted
            ]
            continue
        for wanted in present(source, section):
            text = cut(source, wanted, section.path)
            other = cut(_read(tree, section.same), wanted, section.same) if section.same else text
            # But for #line.
            if text.partition("\n")[2] != other.partition("\n")[2]:
                raise Fail(
                    f"{section.same}: {name_of(wanted)}() is not the same as in {section.path}, "
                    "and the model takes one for both"
                )
            parts[section.kind].append(text)
            if f"? {wanted}" in section.wanted:
                # What a milestone may lack: the shims ask whether it is there.
                parts["defines"].append(f"#define S2_HAS_{name_of(wanted)}")
    for kind, texts in parts.items():
        (folder / f"{kind}.inc").write_text("\n".join(texts), encoding="utf-8")
    for text in [*parts["functions"], *((folder / name).read_text(encoding="utf-8") for name in arch.whole.values())]:
        for header in _STRAY.findall(text):
            if not (folder / header).exists() and not (ROOM / "shim" / header).exists():
                (folder / header).parent.mkdir(parents=True, exist_ok=True)
                (folder / header).write_text("", encoding="utf-8")


def compiled(tree: Path, arch: Arch) -> list[str]:
    """What collect() writes, wherever in their files the declarations are."""
    with tempfile.TemporaryDirectory() as folder:
        collect(tree, Path(folder), arch)
        texts = [path.read_text(encoding="utf-8") for path in sorted(Path(folder).rglob("*")) if path.is_file()]
    return [re.sub(r"(?m)^#line .*$", "", text) for text in texts]


def present(source: str, section: Section) -> list[str]:
    """The declarations of a Section that are to be cut out of the text `source` of its file. One that begins with "? " may be
    missing, since the milestones before it lack it, and one with "< ", which only they have. Of several, with " || " between them, it is the one that is there."""
    found = []
    for line in section.wanted:
        choices = _plain(line).split(" || ")
        if line != _plain(line) and not _find(source, choices[0]):
            continue
        found.append(next((c for c in choices[:-1] if _declared(source, c) == c), choices[-1]))
    return found


def absent(tree: Path, arch: Arch) -> list[str]:
    """Names of definitions that may be missing, and are, in `tree` for an Arch."""
    return [
        name_of(line)
        for section in sections(arch.list.read_text(encoding="utf-8"))
        for line in section.wanted
        if line.startswith("? ") and not _find(_read(tree, section.path), _plain(line))
    ]


def _plain(wanted: str) -> str:
    return wanted.removeprefix("? ").removeprefix("< ")


def _find(source: str, wanted: str) -> re.Match[str] | None:
    kind = "variable" if wanted.endswith(" =") else "function" if "(" in wanted else wanted.split()[0].removeprefix("#")
    return ccode.find(source, kind, re.escape(name_of(wanted)))


def _declared(source: str, wanted: str) -> str:
    match = _find(source, wanted)
    return " ".join(match[0].partition("{")[0].split()).replace("( ", "(") if match else ""


def checked(tree: Path, path: str) -> Path:
    """The path of a file of `tree`; Fail if it is not there."""
    if not (tree / path).is_file():
        raise Fail(f"{tree} has no {path}: the model needs a tree made by scripts/series apply")
    return tree / path


def _read(tree: Path, path: str) -> str:
    return checked(tree, path).read_text(encoding="utf-8")


def name_of(wanted: str) -> str:
    """The name that a declaration declares."""
    wanted = _plain(wanted)
    match = (
        re.match(r"(?:#define|enum|struct|union|select) (\w+)(?!.*\()", wanted)
        or re.search(r"(\w+) =$", wanted)
        or re.search(r"(FNAME\(\w+\)|\w+)\(", wanted)
    )
    if not match:
        raise Fail(f"model/functions.*: '{wanted}' declares nothing")
    return match[1]


def cut(source: str, wanted: str, path: str) -> str:
    """The definition in the text `source`, of the file `path`, that the declaration `wanted` is of,
    with a #line before it; Fail if there is none, or if it is declared otherwise."""
    name, function = name_of(wanted), "(" in wanted
    match = _find(source, wanted)
    if not match:
        raise Fail(f"{path}: {name}{'()' * function} is not there, which the model compiles")
    if function:
        declared = _declared(source, wanted)
        if declared != wanted:
            raise Fail(
                f"{path}: {name}() is declared otherwise than the model's shims expect: '{declared}', not '{wanted}'"
            )
    number = source.count("\n", 0, match.start()) + 1
    return f'#line {number} "{path}"\n{match[0]}'
