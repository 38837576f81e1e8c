"""The commands of scripts/series, one module each:

    HELP                             one line: what it does
    SERIES                           whether it takes a series
    PROJECTS                         only where it is not for all: the projects whose series it takes
    COMMAND                          True where what comes after -- is a command to run
    add_arguments(parser, project)   its options for series of that project; of None: all that there are
    settle(options)                  only where a default depends on other options: sets it
    run(options)                     does it; returns the exit status, None for 0

A module is loaded when its command is run, or when all are listed: it may import what it needs.
"""

from __future__ import annotations

import importlib
from argparse import ArgumentParser, Namespace
from typing import cast, Protocol

NAMES = (
    "list",
    "deps",
    "fetch",
    "apply",
    "export",
    "check",
    "litmus",
    "build",
    "hostkernel",
    "boot",
    "bench",
    "calibrate",
    "test",
    "soak",
    "trace",
    "report",
    "compare",
    "model",
    "mutants",
    "proof",
)


class Command(Protocol):
    """A module of a command, see above."""

    HELP: str
    SERIES: bool

    def add_arguments(self, parser: ArgumentParser, project: str | None) -> None: ...

    def run(self, options: Namespace) -> int | None: ...


def load(name: str) -> Command:
    """The module of the command `name`."""
    return cast(Command, importlib.import_module(f".{name}", __package__))
