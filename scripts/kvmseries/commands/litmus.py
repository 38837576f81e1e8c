"""scripts/series litmus"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from rich.table import Table

from ..base.errors import Fail, Usage
from ..base.progress import say
from ..source import trees
from ..verify import litmus
from . import options as shared, show

HELP = "run herd7 on the litmus tests, with the memory model of the base"
SERIES = True
PROJECTS = ("linux",)


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which tests."""
    parser.add_argument("tests", nargs="*", metavar="TEST", help="only this test and its variants (default: all)")
    shared.tree(parser)


def run(options: Namespace) -> None:
    """Print a table; raise Fail if a test is not as expected."""
    every = litmus.tests()
    chosen = [
        test for test in every if not options.tests or test.name in options.tests or test.twin_of in options.tests
    ]
    unknown = set(options.tests) - {test.name for test in every}
    if unknown:
        raise Usage(f"no test '{sorted(unknown)[0]}' in {' or '.join(map(str, litmus.FOLDERS))}")
    program = litmus.herd()
    base = trees.base(options.series, options.tree)
    view = Table("test", "model", "expected", "herd7", "s")
    complaints = litmus.unpaired(every)
    for test in chosen:
        verdict = litmus.run(program, test, base.path / "tools/memory-model")
        complaints.append(litmus.complaint(test, verdict))
        view.add_row(test.name, test.model, test.result, verdict.result, f"{verdict.seconds:.2f}")
    show.table(view)
    complaints = list(filter(None, complaints))
    for complaint in complaints:
        say(complaint)
    if complaints:
        raise Fail(f"{len(complaints)} of the litmus tests are not as expected, the first: {complaints[0]}")
    say(f"{len(chosen)} tests as expected by herd7 {program.version}; LKMM is that of linux {base.version}")
