"""Letters: patches/<series>/0000-cover-letter.patch for the whole series, letters/<milestone>.txt for a part of it.

A letter of a milestone is plain text: its first line is the subject, the second is empty.  What sends it adds the list
of patches and the diffstat.
"""

from __future__ import annotations

import email
import email.policy
import re

from ..base.errors import Fail
from .catalog import Series

LINES, WIDTH = 60, 75
# git shortlog's first author, with a first subject under it.
_LISTING = re.compile(r"^[^\n]+ \(\d+\):\n(?=  \S)", re.M)
_TRAILER = re.compile(r"^[A-Z][\w-]*-by: .*$", re.M)
# What b4 takes for a trailer if it is a line of the last paragraph: it moves the line to the end of the letter.
_MOVED = re.compile(r"^\s*\w\S+:\s+\S")


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
    if len(lines) > LINES:
        wrong.append(f"it has {len(lines)} lines, and at most {LINES} are to be there")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH:
            wrong.append(f"line {number} has {len(line)} characters, and at most {WIDTH} are to be there")
        if line.startswith(("#", "---")):
            wrong.append(
                f"line {number} begins with '{'#' if line[0] == '#' else '---'}': b4 takes it for something else than text"
            )
    wrong += [f"it carries '{found[0]}': whoever submits adds it" for found in _TRAILER.finditer(text)]
    last = len(lines) - lines[::-1].index("") if "" in lines else 0
    wrong += [
        f"line {number} begins with '{line.split()[0]}' in the last paragraph: b4 takes it for a trailer"
        for number, line in enumerate(lines[last:], last + 1)
        if _MOVED.match(line)
    ]
    return wrong


def check(series: Series) -> None:
    """Raise Fail with the first thing that is wrong with the letters of the milestones of `series`, of those that
    are there."""
    for path in sorted((series.path / "letters").glob("*")):
        if path.suffix != ".txt" or path.stem not in series.milestones:
            raise Fail(
                f"{path}: {series.name} has no milestone '{path.stem}' (milestones: "
                f"{', '.join(series.milestones) or 'none'})"
            )
        for line in problems(path.read_text(encoding="utf-8")):
            raise Fail(f"{path}: {line}")


def text(series: Series, milestone: str | None = None) -> str:
    """The letter of a milestone, or of the whole series: subject, an empty line, text.  Raises Fail if there is
    none."""
    if milestone:
        path = series.letter(milestone)
        if not path.exists():
            raise Fail(
                f"the milestone '{milestone}' of {series.name} has no cover letter: write patches/{series.name}/letters/"
                f"{path.name}, or leave out --b4"
            )
        check(series)
        return path.read_text(encoding="utf-8")
    if not series.cover.exists():
        raise Fail(f"{series.name} has no cover letter: {series.cover.name}")
    message = email.message_from_string(
        without_listing(series.cover.read_text(encoding="utf-8")), policy=email.policy.default
    )
    subject = re.sub(r"^\[[^]]*\]\s*", "", " ".join(message["Subject"].split()))
    return f"{subject}\n\n{str(message.get_payload()).strip()}\n"
