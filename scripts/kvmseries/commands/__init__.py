"""The commands of scripts/series, one module each:

    HELP                             one line: what it does
    SERIES                           whether it takes a series
    PROJECTS                         only where it is not for all: the projects whose series it takes
    COMMAND                          True where what comes after -- is a command to run
    add_arguments(parser, project)   its options for series of that project; of None: all that there are
    run(options)                     does it; returns the exit status, None for 0

A module is loaded when its command is run, or when all are listed: it may import what it needs.
"""

import importlib

NAMES = ("list", "deps", "fetch", "apply", "export", "check", "litmus", "build", "hostkernel", "boot", "bench", "calibrate", "test",
         "soak", "hunt", "report", "compare", "figures", "model", "mutants", "proof")


def load(name):
    """The module of the command `name`."""
    return importlib.import_module(f".{name}", __package__)
