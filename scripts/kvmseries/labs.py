"""The verdicts of `scripts/series test` in the formats that labs read: KTAP, version 1, the kernel's own for test results
(Documentation/dev-tools/ktap.rst); JUnit's XML, as CI servers read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as xml

from .verify.functional import Verdict

# The entry for complaints that are about no single test, such as a lockdep report on the console.
REPORTS = "kernel-reports"
# Characters that XML 1.0 cannot hold.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Outcome:
    """One line of a report: what became of one test on all kernels."""

    name: str
    status: str  # "pass", "fail", "skip", "timeout"; "xfail": fails as tests.yaml says that it does
    why: str  # the complaint, or the reason of an expected failure; ""
    notes: tuple[str, ...]  # further lines: the result on each kernel


def outcomes(verdicts: Iterable[Verdict], complaints: Iterable[str]) -> list[Outcome]:
    """Outcomes of `verdicts` (list of functional.Verdict) and of those of `complaints` that are none of theirs.

    complaints: as from functional.run().  The last outcome is always REPORTS.
    """
    own = {verdict.line for verdict in verdicts}
    others = tuple(line for line in complaints if line not in own)
    return [
        *map(_outcome, verdicts),
        Outcome(REPORTS, "fail" if others else "pass", others[0] if others else "", others),
    ]


def failed(found: Outcome) -> bool:
    """Whether an outcome counts as a failure."""
    return found.status in ("fail", "timeout")


def _outcome(verdict: Verdict) -> Outcome:
    results = set(verdict.results.values())
    notes = tuple(f"{label}: {result}" for label, result in verdict.results.items())
    if verdict.complaint:
        status, why = "timeout" if "timeout" in results else "fail", verdict.reason
    elif results == {"skip"}:
        status, why = "skip", verdict.known
    elif results & {"fail", "timeout"}:
        status, why = "xfail", verdict.known
    else:
        status, why = "pass", ""
    return Outcome(verdict.name, status, " ".join(why.split()), notes)


def ktap(outcomes: Sequence[Outcome], title: str) -> str:
    """The KTAP text of `outcomes` (list of outcomes.Outcome); title: one line for its head."""
    lines = ["KTAP version 1", f"# {_plain(title)}", f"1..{len(outcomes)}"]
    for number, outcome in enumerate(outcomes, 1):
        lines += [f"# {_plain(note)}" for note in outcome.notes]
        if failed(outcome) and outcome.why not in outcome.notes:
            lines.append(f"# {_plain(outcome.why)}")
        lines.append(_result(number, outcome))
    return "\n".join(lines) + "\n"


def _result(number: int, outcome: Outcome) -> str:
    line = f"{'not ok' if failed(outcome) else 'ok'} {number} {_plain(outcome.name)}"
    if outcome.status not in ("skip", "xfail", "timeout"):
        return line
    return f"{line} # {outcome.status.upper()} {_plain(outcome.why)}".rstrip()


def _plain(text: str) -> str:
    """`text` as part of a line: '#' begins a directive."""
    return " ".join("".join(letter for letter in text.replace("#", "") if letter.isprintable()).split())


def junit(outcomes: Sequence[Outcome], suite: str, properties: Mapping[str, object]) -> str:
    """The XML text of `outcomes` (list of outcomes.Outcome).

    suite: name of the test suite, "v5.10.arm64".  properties: dict of strings about the run.
    """
    counts = {
        "tests": len(outcomes),
        "failures": sum(map(failed, outcomes)),
        "errors": 0,
        "skipped": sum(outcome.status in ("skip", "xfail") for outcome in outcomes),
    }
    numbers = {key: str(value) for key, value in counts.items()}
    root = xml.Element("testsuites", numbers)
    top = xml.SubElement(root, "testsuite", {"name": suite, **numbers})
    held = xml.SubElement(top, "properties")
    for name, value in properties.items():
        xml.SubElement(held, "property", {"name": name, "value": _legal(str(value))})
    for outcome in outcomes:
        _case(top, suite, outcome)
    xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def _case(top: xml.Element, suite: str, outcome: Outcome) -> None:
    case = xml.SubElement(top, "testcase", {"name": _legal(outcome.name), "classname": suite})
    why = _legal(outcome.why)
    if failed(outcome):
        xml.SubElement(case, "failure", {"message": why, "type": outcome.status}).text = why
    elif outcome.status == "xfail":
        xml.SubElement(case, "skipped", {"message": f"expected failure: {why}"})
    elif outcome.status == "skip":
        xml.SubElement(case, "skipped", {"message": why})
    if outcome.notes:
        xml.SubElement(case, "system-out").text = _legal("\n".join(outcome.notes))


def _legal(text: str) -> str:
    return _NOT_XML.sub("?", text)
