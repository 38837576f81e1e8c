"""scripts/series figures

The exit status is 1 if a figure is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ..base.errors import Fail
from ..figures import compute, judge
from . import shared

PARAMS = [
    shared.flag("--write", "put the figures of the results into the texts, and name the sentences to be read again"),
    shared.flag("--measure", "print the commands that measure old results again, or those of too few rounds"),
    shared.flag("--strict", "count old results, and those of too few rounds, as wrong"),
]


def run(options: shared.Options) -> None:
    """Print what the texts say and what the results say; raise Fail if a text is not right."""
    data = judge.load()
    files = compute.Files(data["results"])
    judged = [judge.judge(data, files, where, strict=options.strict) for where in data["texts"]]
    if options.write:
        for one in judged:
            judge.write(one)
        _lines(judge.reading(judged))
        judged = [judge.judge(data, files, where, strict=options.strict) for where in data["texts"]]
    problems = [line for one in judged for line in one.problems + judge.unsaid(data, files, one)]
    if options.measure:
        _lines(judge.plan(data, files, judged))
    elif not options.write:
        _lines(judge.table(judged))
    if problems:
        _lines(problems)
        raise Fail(f"{len(problems)} of the figures' texts are not right, the first: {problems[0]}")


def _lines(texts: Iterable[str]) -> None:
    for line in texts:
        print(line)
