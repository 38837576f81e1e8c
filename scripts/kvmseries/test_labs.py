"""KTAP and JUnit: their shape.  Whether other projects' parsers take them is tests/common/test_labs.py's."""

import re
from xml.etree import ElementTree

import pytest

from kvmseries import labs
from kvmseries.verify.functional import Verdict

VERDICTS = [
    Verdict("alpha", {"base": "pass", "series": "pass"}, "", ""),
    Verdict(
        "beta_-p_3",
        {"base": "pass", "series": "fail"},
        "",
        "fail on series, but pass on base",
        ("on series: x.c:3: no",),
    ),
    Verdict("gamma", {"base": "fail", "series": "fail"}, "the emulator has # no PMU", ""),
    Verdict("delta", {"base": "skip", "series": "skip"}, "", ""),
    Verdict("epsilon", {"base": "pass", "series": "timeout"}, "", "timeout on series, but pass on base"),
]
COMPLAINTS = [*(verdict.line for verdict in VERDICTS if verdict.complaint), "series: the kernel reported: BUG: bad\x00"]


@pytest.fixture
def found():
    return labs.outcomes(VERDICTS, COMPLAINTS)


def test_every_verdict_and_the_kernels_reports_are_outcomes(found):
    assert [(one.name, one.status) for one in found] == [
        ("alpha", "pass"),
        ("beta_-p_3", "fail"),
        ("gamma", "xfail"),
        ("delta", "skip"),
        ("epsilon", "timeout"),
        ("kernel-reports", "fail"),
    ]
    assert labs.outcomes(VERDICTS[:1], [])[-1].status == "pass"


def test_ktap_has_a_line_for_each_outcome_and_says_why(found):
    lines = labs.ktap(found, "v5.10 arm64").splitlines()
    assert lines[:3] == ["KTAP version 1", "# v5.10 arm64", "1..6"]
    assert [line for line in lines if re.match("(not )?ok", line)] == [
        "ok 1 alpha",
        "not ok 2 beta_-p_3",
        "ok 3 gamma # XFAIL the emulator has no PMU",
        "ok 4 delta # SKIP",
        "not ok 5 epsilon # TIMEOUT timeout on series, but pass on base",
        "not ok 6 kernel-reports",
    ]
    assert lines[-2:] == ["# series: the kernel reported: BUG: bad", "not ok 6 kernel-reports"]
    at = lines.index("not ok 2 beta_-p_3")
    assert lines[at - 3 : at] == [
        "# base: pass",
        "# series: fail",
        "# fail on series, but pass on base; on series: x.c:3: no",
    ]


def test_junit_counts_what_it_holds_and_is_xml_whatever_a_kernel_prints(found):
    root = ElementTree.fromstring(labs.junit(found, "v5.10.arm64", {"cpu": "max\x1b"}))
    suite = root.find("testsuite")
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["6", "3", "2"]
    assert len(suite.findall("testcase")) == 6 and len(suite.findall("testcase/failure")) == 3
    assert suite.find("properties/property").get("value") == "max?"
    why = suite.findall("testcase")[1].find("failure").get("message")
    assert why == "fail on series, but pass on base; on series: x.c:3: no"
