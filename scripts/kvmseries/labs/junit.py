"""JUnit's XML, as CI servers read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as xml

from .outcomes import failed, Outcome

# Characters that XML 1.0 cannot hold.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(outcomes: Sequence[Outcome], suite: str, properties: Mapping[str, object]) -> str:
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
