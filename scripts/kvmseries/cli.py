"""The command line of scripts/series: it finds the command's module, and turns failures into one line."""

from __future__ import annotations

import argparse
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import commands
from .base import paths
from .base.errors import Fail, Usage
from .source import catalog, git, projects, trees

# Options whose value may begin with a minus sign: -p is not an option of the tool in --test-args -p.
_TAKE_ANY = ("--test-args",)
# Options that may be empty (--tree in a script that has no TREE means the default), or have a line of their own for it.
_MAY_BE_EMPTY = (*_TAKE_ANY, "--tree")


class _Parser(argparse.ArgumentParser):
    """Reports mistakes as everything else is reported: in one line."""

    def __init__(self, **keys: Any) -> None:
        super().__init__(allow_abbrev=False, **keys)

    def error(self, message: str) -> NoReturn:
        # Of options.number(): "argument --samples: 0: give a number from 1 on".
        plain = re.sub(r"^argument (-\S+): (?=.*: give a number)", r"\1 ", message)
        raise Usage(f"{plain} (see {self.prog} -h)")


def parser(names: Iterable[str] = commands.NAMES, project: str | None = None) -> _Parser:
    """The parser of the commands `names`, with the options for series of `project`; of None: all options."""
    found = _Parser(
        prog="scripts/series",
        description="Patch series on a base: fetch, apply, build, boot, "
        "measure, compare. Everything is made under out/.",
    )
    verbs = found.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name in names:
        module = commands.load(name)
        one = verbs.add_parser(name, help=module.HELP, description=module.HELP)
        if module.SERIES:
            one.add_argument("series", help="a directory of patches/, such as v5.10")
        module.add_arguments(one, project)
    return found


def parse(arguments: list[str]) -> tuple[commands.Command, Namespace]:
    """(module of the command, its options) from the command line; options.series is a catalog.Series."""
    arguments, command = _split(arguments)
    _no_empty_value(arguments)
    name = next((word for word in arguments if not word.startswith("-")), None)
    names = (name,) if name in commands.NAMES else commands.NAMES
    project = _project(arguments)
    options, unknown = parser(names, project).parse_known_args(arguments)
    module = commands.load(options.verb)
    if command and not getattr(module, "COMMAND", False):
        raise Usage(f"{options.verb} takes no command after --")
    options.command = command
    unknown = _more_of_a_list(options, module, unknown)
    if module.SERIES:
        options.series = catalog.load(options.series)
        allowed = getattr(module, "PROJECTS", tuple(projects.PROJECTS))
        if options.series.project not in allowed:
            raise Usage(_not_for(options.series, f"'{options.verb}'", allowed))
    if unknown:
        raise Usage(_unknown(options, unknown))
    if module.SERIES:
        getattr(module, "settle", lambda _: None)(options)
        _check(options)
    return module, options


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """(arguments, command after --): values that begin with a minus sign are joined to their options."""
    command = []
    if "--" in arguments:
        # argparse's own way to take the rest would take options that come before it, too.
        command = arguments[arguments.index("--") + 1 :]
        arguments = arguments[: arguments.index("--")]
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] in _TAKE_ANY:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined, command


def _no_empty_value(arguments: Sequence[str]) -> None:
    """Raise Usage for --NAME '' and --NAME=, which argparse takes for a value like others."""
    for word, value in zip(arguments, [*arguments[1:], None]):
        name, equals, rest = word.partition("=")
        if not name.startswith("--") or name in _MAY_BE_EMPTY:
            continue
        if (equals and not rest) or (not equals and value == ""):
            raise Usage(f"{name} '': give a value")


def _more_of_a_list(options: Namespace, module: commands.Command, unknown: list[str]) -> list[str]:
    """What is left of `unknown`: names behind an option are of the command's list, too, as those before it.  argparse takes a
    list once: of `report A --quiet B` it leaves B."""
    if not unknown or any(word.startswith("-") for word in unknown):
        return unknown
    alone = _Parser()
    module.add_arguments(alone, None)
    lists = [
        action.dest
        for action in alone._actions  # pylint: disable=protected-access
        if not action.option_strings and action.nargs in ("*", "+")
    ]
    if not lists:
        return unknown
    (name,) = lists
    setattr(options, name, [*getattr(options, name), *unknown])
    return []


def _project(arguments: Iterable[str]) -> str | None:
    """The project of the series that the command line names; None if it names none."""
    known = catalog.names()
    name = next((word for word in arguments if word in known), None)
    return catalog.load(name).project if name else None


def _not_for(series: catalog.Series, what: str, allowed: Sequence[str]) -> str:
    """The line for `what` that a series' project does not have."""
    titles = {"linux": "kernels", "qemu": "series of QEMU"}
    title = "QEMU" if series.project == "qemu" else series.project
    others = [name for name in commands.NAMES if _takes(name, series.project)]
    return f"{series.name} is for {title}: {what} is for {' and '.join(titles[name] for name in allowed)}" + (
        f" (for {title}: {', '.join(others)})" if what.startswith("'") else ""
    )


def _takes(name: str, project: str) -> bool:
    module = commands.load(name)
    return module.SERIES and project in getattr(module, "PROJECTS", (project,))


def _unknown(options: Namespace, unknown: Sequence[str]) -> str:
    """The line for arguments that the command does not have for the series, or not at all."""
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    series = getattr(options, "series", None)
    if series:
        (other,) = (name for name in projects.PROJECTS if name != series.project)
        option = word.partition("=")[0]
        known = _Parser()
        commands.load(options.verb).add_arguments(known, other)
        if option in known._option_string_actions:  # pylint: disable=protected-access
            return _not_for(series, option, (other,))
    return f"unrecognized arguments: {' '.join(unknown)} (see scripts/series {options.verb} -h)"


def _check(options: Namespace) -> None:
    """Raise Usage or Fail, before minutes of work, for an arch, a configuration or a tree that cannot be."""
    series = options.series
    if getattr(options, "arch", None):
        catalog.check_arch(series, options.arch)
        if series.project == "linux":
            from .kernel import kconfig  # pylint: disable=import-outside-toplevel

            # The tree's version is not known yet.
            kconfig.load(options.arch, getattr(options, "config", []), series.kernel)
    if getattr(options, "tree", None):
        trees.check(series, options.tree)


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command line `arguments` (default: sys.argv); returns the exit status."""
    try:
        git.forget_environment()
        module, options = parse(list(sys.argv[1:] if arguments is None else arguments))
        return module.run(options) or 0
    except Fail as error:
        print(f"series: error: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("series: interrupted; repeat the command to go on where it stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"series: error: {paths.os_fail(error, Path.cwd())}", file=sys.stderr)
        return 1
