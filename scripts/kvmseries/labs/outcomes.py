"""The verdicts of `scripts/series test` as a list of outcomes, for the formats that labs read."""

from dataclasses import dataclass

# The entry for complaints that are about no single test, such as a lockdep report on the console.
REPORTS = "kernel-reports"


@dataclass(frozen=True)
class Outcome:
    """One line of a report: what became of one test on all kernels."""

    name: str
    status: str      # "pass", "fail", "skip", "timeout"; "xfail": fails as tests.yaml says that it does
    why: str         # the complaint, or the reason of an expected failure; ""
    notes: tuple     # further lines: the result on each kernel


def outcomes(verdicts, complaints):
    """Outcomes of `verdicts` (list of functional.Verdict) and of the `complaints` that belong to no verdict.

    complaints: as from functional.run().  The last outcome is always REPORTS.
    """
    found, others = {}, []
    for line in complaints:
        # "NAME: COMPLAINT", and behind it what the test printed.
        name = next((verdict.name for verdict in verdicts if verdict.complaint
                     and line.startswith(f"{verdict.name}: {verdict.complaint}")), None)
        if name is None:
            others.append(line)
        else:
            found[name] = line[len(name) + 2:]
    others = tuple(others)
    return [*(_outcome(verdict, found.get(verdict.name)) for verdict in verdicts),
            Outcome(REPORTS, "fail" if others else "pass", others[0] if others else "", others)]


def failed(found):
    """Whether an outcome counts as a failure."""
    return found.status in ("fail", "timeout")


def _outcome(verdict, complaint):
    results = set(verdict.results.values())
    notes = tuple(f"{label}: {result}" for label, result in verdict.results.items())
    if verdict.complaint:
        status, why = "timeout" if "timeout" in results else "fail", complaint or verdict.complaint
    elif results == {"skip"}:
        status, why = "skip", verdict.known
    elif results & {"fail", "timeout"}:
        status, why = "xfail", verdict.known
    else:
        status, why = "pass", ""
    return Outcome(verdict.name, status, " ".join(why.split()), notes)
