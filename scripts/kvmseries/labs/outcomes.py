"""The verdicts of `scripts/series test` as a list of outcomes, for the formats that labs read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..verify.functional import Verdict

# The entry for complaints that are about no single test, such as a lockdep report on the console.
REPORTS = "kernel-reports"


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
