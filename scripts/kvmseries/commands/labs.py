"""test --ktap, --junit: what other labs read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base import files
from ..base.progress import say
from ..labs import junit, ktap, outcomes
from ..verify import functional
from . import show


def add_reports(parser: ArgumentParser) -> None:
    """--ktap, --junit"""
    parser.add_argument("--ktap", action="store_true", help="print KTAP instead of the table")
    parser.add_argument("--junit", metavar="FILE", help="also write JUnit's XML")


def check_reports(options: Namespace) -> None:
    """Find out before minutes of work that a file cannot be written."""
    if options.junit:
        show.check_writable(Path(options.junit), "--junit")


def reports(
    options: Namespace, verdicts: Sequence[functional.Verdict], complaints: Sequence[str], about: Mapping[str, str]
) -> bool:
    """Print KTAP and write JUnit's XML where they are asked for; returns whether KTAP was printed.

    about: dict of strings about the run: series, arch, cpu, config."""
    found = outcomes.outcomes(verdicts, complaints)
    if options.junit:
        text = junit.document(found, f"{about['series']}.{about['arch']}", about)
        files.write(options.junit, text)
        say(f"JUnit's XML in {options.junit}")
    if options.ktap:
        print(ktap.document(found, " ".join(str(value) for value in about.values() if value)), end="")
    return options.ktap
