"""What the checks of the model share: 5.10's and 7.3's."""

import re

from kvmseries.base.errors import Fail
from kvmseries.conftest import lacking
from kvmseries.source import catalog, trees
from runner import build, coverage, prove, ROOM, runs, source
from tests import extra


def patched(name, milestone=None):
    """(series, its tree with all patches or those up to a milestone).  Skipped, and in CI a failure, where the checker
    cannot be built."""
    try:
        build.need()
    except Fail as error:
        lacking(error)
    series = catalog.load(name)
    count = series.upto(milestone) if milestone else len(series.patches)
    return series, trees.worktree(series, count, extra.own_base(series)).path


def ready(name, tree):
    """(checker, {arch: library}) of the code of `tree`."""
    return runs.ready(tree, source.of_series(name))


def failures(results, series, count):
    """What of `results` does not hold, although it must with the first `count` patches."""
    later = prove.later(series, count)
    return [result.line + "\n" + result.trace for result in results if not result.good and result.name not in later]


def as_covered_as_the_readme_says(tree, program, arch):
    """By 2 points: compilers differ in what they count as a line."""
    found = coverage.percent(coverage.measure(tree, program, arch))
    row = re.search(rf"^\| `{arch}` \| (\d+) % \| (\d+) % \|$", (ROOM / "README.md").read_text(encoding="utf-8"), re.M)
    assert row, f"model/README.md has no row of {arch}"
    assert max(abs(int(row[i + 1]) - found[i]) for i in (0, 1)) <= 2, (
        f"{arch}: {found[0]:.0f} % of lines, {found[1]:.0f} % of branches"
    )
