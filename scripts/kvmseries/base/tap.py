"""TAP, the lines in which tests say how they ended."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# "ok 3 /name # SKIP why"; a description has no '#'.
_RESULT = re.compile(r"^(?P<not>not )?ok \d+(?: (?P<name>[^#\n]*?))?(?: *#(?P<directive>.*))?$", re.M)
_LINE = re.compile(r"TAP version \d+$|1\.\.\d+$|(not )?ok \d+( .*)?$|# ")


class Result(NamedTuple):
    """One test's."""

    name: str
    passed: bool  # "ok", which a test that is skipped has, too
    skipped: bool


def results(text: str) -> Iterator[Result]:
    """The Results in a program's output, in order."""
    for match in _RESULT.finditer(text):
        yield Result(match["name"] or "", not match["not"], bool(re.match(r"\s*SKIP", match["directive"] or "", re.I)))


def line(text: str) -> bool:
    """Whether a line is TAP: version, plan, result or comment."""
    return bool(_LINE.match(text))


def told(text: str) -> bool:
    """Whether a line says which tests ended how, and not why: a result, or the sums of kselftest."""
    return bool(re.match(r"(not )?ok \d+ |# Totals: |# Planned tests ", text))
