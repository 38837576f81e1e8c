"""KTAP and JUnit: their shape.  Whether the kernel's parser takes KTAP is tests/common/test_labs.py's."""

from xml.etree import ElementTree

from kvmseries import labs
from kvmseries.verify.functional import Verdict

BAD = Verdict("beta_-p_3", {"base": "pass", "series": "fail"}, "", "fail on series, but pass on base", ("x.c:3: # no",))
VERDICTS = [
    Verdict("alpha", {"base": "pass", "series": "pass"}, "", ""),
    BAD,
    Verdict("gamma", {"base": "fail", "series": "timeout"}, "the emulator has # no PMU", ""),
    Verdict("delta", {"base": "skip", "series": "skip"}, "", ""),
]
FOUND = labs.outcomes(VERDICTS, [BAD.line, "series: the kernel reported: BUG: bad\x00"])


def test_ktap_has_a_line_for_each_outcome_and_says_why():
    assert labs.ktap(FOUND).splitlines() == [
        "KTAP version 1",
        "1..5",
        "ok 1 alpha",
        "# beta_-p_3: fail on series, but pass on base; x.c:3:  no",
        "not ok 2 beta_-p_3",
        "ok 3 gamma # XFAIL the emulator has  no PMU",
        "ok 4 delta # SKIP",
        "# series: the kernel reported: BUG: bad",
        "not ok 5 kernel-reports",
    ]
    assert labs.ktap(labs.outcomes(VERDICTS[:1], [])).endswith("ok 2 kernel-reports\n")


def test_junit_counts_what_it_holds_and_is_xml_whatever_a_kernel_prints():
    (suite,) = ElementTree.fromstring(labs.junit(FOUND, "v5.10.arm64"))
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["5", "2", "2"]
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [[], ["failure"], ["skipped"], ["skipped"], ["failure"]]
    assert suite[1][0].get("message") == BAD.line
