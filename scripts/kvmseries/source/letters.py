"""Letters: patches/<series>/0000-cover-letter.patch for the whole series, letters/<milestone>.txt for a part of it.

A letter of a milestone is plain text: its first line is the subject, the second is empty.  What sends it adds the list
of patches and the diffstat.

It names each of its patches in quotes: by subject, with or without its prefix, or by the first words of one or of several
subjects and " ...".  Patches of a milestone without a letter are named in the cover letter or in another letter.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from ..base.errors import Fail
from .catalog import Series, subject

WIDTH = 75
# git shortlog's first author, with a first subject under it.
_LISTING = re.compile(r"^[^\n]+ \(\d+\):\n(?=  \S)", re.M)
_TRAILER = re.compile(r"^[A-Z][\w-]*-by: .*$", re.M)
# What b4 takes for a trailer if it is a line of the last paragraph: it moves the line to the end of the letter.
_MOVED = re.compile(r"^\s*\w\S+:\s+\S")
_QUOTED = re.compile(r'"([^"]+)"')
_NUMBERED = re.compile(r"\bpatch(?:es)?(?: |\n\s*)\d", re.I)


def without_listing(text: str) -> str:
    """The text of a cover letter up to its list of patches."""
    return _LISTING.split(text, maxsplit=1)[0]


def problems(text: str) -> list[str]:
    """What is wrong with the letter of a milestone: a list of lines."""
    lines = text.splitlines()
    wrong = []
    if len(lines) < 3 or not lines[0].strip() or lines[1].strip():
        wrong.append("its first line must be the subject, the second empty, and text must follow")
    elif lines[0].startswith("["):
        wrong.append(f"its subject begins with '{lines[0].split()[0]}', which what sends it adds")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH:
            wrong.append(f"line {number} has {len(line)} characters, and at most {WIDTH} are to be there")
        if line.startswith(("#", "---")):
            begin = "#" if line[0] == "#" else "---"
            wrong.append(f"line {number} begins with '{begin}': b4 takes it for something else than text")
    wrong += [f"it carries '{found[0]}': whoever submits adds it" for found in _TRAILER.finditer(text)]
    last = len(lines) - lines[::-1].index("") if "" in lines else 0
    wrong += [
        f"line {number} begins with '{line.split()[0]}' in the last paragraph: b4 takes it for a trailer"
        for number, line in enumerate(lines[last:], last + 1)
        if _MOVED.match(line)
    ]
    return wrong


def named(text: str, subjects: Iterable[str]) -> set[str]:
    """Those of `subjects` that `text` names."""
    quotes = _quotes(text)
    return {one for one in subjects if any(_is(quote, one) for quote in quotes)}


def _quotes(text: str) -> list[str]:
    return [" ".join(quote.split()) for quote in _QUOTED.findall(text)]


def _is(quote: str, subject_: str) -> bool:
    """Whether `quote` names the patch with that subject."""
    begin = quote[:-3] if quote.endswith(" ...") else None
    if begin and len(begin.rpartition(": ")[2].split()) > 1:
        return subject_.startswith(begin) or subject_.rpartition(": ")[2].startswith(begin)
    return quote in (subject_, subject_.rpartition(": ")[2])


def check(series: Series) -> None:
    """Raise Fail with the first thing that is wrong with the letters of the milestones of `series`, of those that
    are there, or if a patch is named nowhere."""
    texts: dict[Path, str] = {}
    for path in sorted((series.path / "letters").glob("*")):
        if path.suffix != ".txt" or path.stem not in series.milestones:
            names = ", ".join(series.milestones) or "none"
            raise Fail(f"{path}: {series.name} has no milestone '{path.stem}' (milestones: {names})")
        texts[path] = path.read_text(encoding="utf-8")
        for line in problems(texts[path]):
            raise Fail(f"{path}: {line}")
    if series.cover.exists():
        texts[series.cover] = without_listing(series.cover.read_text(encoding="utf-8"))
    left = {subject(patch) for patch in series.patches}
    for path, written in texts.items():
        _check_names(path, written, left)
    for path in texts.keys() - {series.cover}:
        own = [subject(patch) for patch in series.milestone(path.stem).patches]
        _all_named(path, texts[path], own)
        left -= set(own)
    if series.cover.exists():
        _all_named(series.cover, "\n".join(texts.values()), sorted(left))


def _check_names(path: Path, written: str, subjects: set[str]) -> None:
    """Raise Fail for names in the text of `path` that are none."""
    number = _NUMBERED.search(written)
    if number:
        raise Fail(f"{path}: '{' '.join(number[0].split())}': name patches by subject")
    if written.count('"') % 2:
        raise Fail(f"{path}: it has a quotation mark that none belongs to")
    for quote in _quotes(written):
        if quote.endswith(" ...") and not any(_is(quote, one) for one in subjects):
            raise Fail(f'{path}: no patch is meant by "{quote}"')


def _all_named(path: Path, written: str, subjects: Iterable[str]) -> None:
    """Raise Fail unless `written` names all of `subjects`."""
    for one in subjects:
        if not named(written, [one]):
            raise Fail(f'{path}: it must name "{one}", in quotes')
