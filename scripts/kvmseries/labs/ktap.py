"""KTAP, version 1: the kernel's own format for test results (Documentation/dev-tools/ktap.rst)."""

from __future__ import annotations

from collections.abc import Sequence

from .outcomes import failed, Outcome

# Status of an outcome to KTAP's directive.
_DIRECTIVES = {"skip": "SKIP", "xfail": "XFAIL", "timeout": "TIMEOUT"}


def document(outcomes: Sequence[Outcome], title: str) -> str:
    """The KTAP text of `outcomes` (list of outcomes.Outcome); title: one line for its head."""
    lines = ["KTAP version 1", f"# {_plain(title)}", f"1..{len(outcomes)}"]
    for number, outcome in enumerate(outcomes, 1):
        lines += [f"# {_plain(note)}" for note in outcome.notes]
        if failed(outcome) and outcome.why not in outcome.notes:
            lines.append(f"# {_plain(outcome.why)}")
        lines.append(_result(number, outcome))
    return "\n".join(lines) + "\n"


def _result(number: int, outcome: Outcome) -> str:
    word = "not ok" if failed(outcome) else "ok"
    line = f"{word} {number} {_plain(outcome.name)}"
    directive = _DIRECTIVES.get(outcome.status)
    if not directive:
        return line
    return f"{line} # {directive} {_plain(outcome.why)}".rstrip()


def _plain(text: str) -> str:
    """`text` as part of a line: '#' begins a directive."""
    return " ".join("".join(letter for letter in text.replace("#", "") if letter.isprintable()).split())
