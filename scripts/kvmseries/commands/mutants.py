"""scripts/series mutants"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..base.errors import Fail, Usage
from ..base.progress import say
from ..model import build, mutants, prove
from . import modeltree

HELP = "check that the model finds each mistake of model/mutants"
SERIES = True
PROJECTS = ("linux",)


def add_arguments(parser: ArgumentParser, _project: str | None) -> None:
    """Which tree, which mistakes."""
    modeltree.add_arguments(parser)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants (default: all)")


def run(options: Namespace) -> None:
    """Print which are found; raise Fail if one is not, that must be."""
    every = modeltree.mutants_of(options)
    unknown = set(options.names) - {mutant.name for mutant in every}
    if unknown:
        raise Usage(f"no mutant '{sorted(unknown)[0]}' in {mutants.FOLDER}")
    chosen = [mutant for mutant in every if not options.names or mutant.name in options.names]
    tree = modeltree.find(options)
    program = build.checker()
    outcomes = mutants.judge_all(chosen, tree, program, lambda outcome: say(outcome.line))
    say(prove.summary(outcomes))
    bad = [outcome for outcome in outcomes if not outcome.good]
    if bad:
        raise Fail(f"{len(bad)} of {len(outcomes)} mutants are not found, the first: {bad[0].line}")
