"""The verdicts of `scripts/series test` for labs: KTAP, version 1, the kernel's own format of test results
(Documentation/dev-tools/ktap.rst), and JUnit's XML, as CI servers read it."""

from collections.abc import Iterable, Sequence

import junitparser

from .verify.functional import Verdict

# What became of one test: its name; "pass", "skip", "fail", or "xfail" if it fails as tests.yaml says; and why.
Outcome = tuple[str, str, str]


def outcomes(verdicts: Sequence[Verdict], complaints: Iterable[str]) -> list[Outcome]:
    """One for each verdict, and "kernel-reports" for the complaints, as from functional.run(), that are of none."""
    own = {verdict.line for verdict in verdicts}
    others = [line for line in complaints if line not in own]
    found = [_outcome(verdict) for verdict in verdicts]
    found.append(("kernel-reports", "fail" if others else "pass", "; ".join(others)))
    return [(name, status, "".join(filter(str.isprintable, " ".join(why.split())))) for name, status, why in found]


def _outcome(verdict: Verdict) -> Outcome:
    results = set(verdict.results.values())
    if verdict.complaint:
        return verdict.name, "fail", verdict.line
    if results == {"skip"}:
        return verdict.name, "skip", verdict.known
    return (verdict.name, "xfail", verdict.known) if results & {"fail", "timeout"} else (verdict.name, "pass", "")


def ktap(found: Sequence[Outcome]) -> str:
    """The text of `found`, as from outcomes()."""
    lines = ["KTAP version 1", f"1..{len(found)}"]
    for number, (name, status, why) in enumerate(found, 1):
        # '#' begins a directive.
        why = why.replace("#", "")
        lines += [f"# {why}", f"not ok {number} {name}"] if status == "fail" else [f"ok {number} {name}"]
        if status in ("skip", "xfail"):
            lines[-1] = f"{lines[-1]} # {status.upper()} {why}".rstrip()
    return "\n".join(lines) + "\n"


def junit(found: Sequence[Outcome], suite: str) -> str:
    """The text of `found`, as from outcomes(); suite: its name, "v5.10.arm64"."""
    top = junitparser.TestSuite(suite)
    for name, status, why in found:
        case = junitparser.TestCase(name, suite)
        if status != "pass":
            case.result = [junitparser.Failure(why) if status == "fail" else junitparser.Skipped(why)]
        top.add_testcase(case)
    root = junitparser.JUnitXml()
    root.add_testsuite(top)
    text: bytes = root.tostring()
    return text.decode()
