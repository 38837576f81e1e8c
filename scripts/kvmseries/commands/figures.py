"""scripts/series figures"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..base.errors import Fail
from ..figures import compute, judge
from . import show

HELP = (
    "list the figures that README, cover letters and documents quote, with the results that they follow from; the"
    " exit status is 1 if one is wrong"
)
SERIES = False


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """What is done about them."""
    parser.add_argument(
        "--write",
        action="store_true",
        help="put the figures of the results into the texts, and name the sentences that must be read again",
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="print the commands that measure old results again, or"
        " those of too few rounds, in order, and how long they"
        " take",
    )
    parser.add_argument(
        "--strict", action="store_true", help="count old results, and those of too few rounds, as wrong"
    )


def run(options: Namespace) -> None:
    """Print what the texts say and what the results say; raise Fail if a text is not right."""
    data = judge.load()
    files = compute.Files(data["results"])
    judged = [judge.judge(data, files, where, strict=options.strict) for where in data["texts"]]
    if options.write:
        for one in judged:
            judge.write(one)
        show.lines(judge.reading(judged))
        judged = [judge.judge(data, files, where, strict=options.strict) for where in data["texts"]]
    problems = [line for one in judged for line in one.problems + judge.unsaid(data, files, one)]
    if options.measure:
        show.lines(judge.plan(data, files, judged))
    elif not options.write:
        show.lines(judge.table(judged))
    if problems:
        show.lines(problems)
        raise Fail(f"{len(problems)} of the figures' texts are not right, the first: {problems[0]}")
