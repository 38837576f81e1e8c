"""The command line of scripts/series: the commands, which of their options exclude each other, and failures as one line."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import click
from click.core import ParameterSource

from .base import paths
from .base.errors import Fail, Usage
from .commands.shared import Option, Options
from .kernel import kconfig
from .source import catalog, git, trees

# In the order in which they are used: {what for: {command: what it does}}.  A command is a module of commands/ that is
# loaded when it runs:
#     the text below its first line   more of its help
#     PARAMS       its arguments and options
#     PROJECT      only where it is for series of one project
#     COMMAND      True where it takes -- COMMAND
#     settle()     only where a default depends on other options: sets it
#     run()        does it; returns the exit status, None for 0
COMMANDS = {
    "Patches": {
        "list": "list the series: base, patches, milestones, trees",
        "apply": "make a git tree of a series: a tag for the base, a commit a patch",
        "export": "write patches/ from the commits of such a tree",
        "verify": "check the patches: apply, checkpatch, export, a build after each",
    },
    "Build and run": {
        "build": "build kernels, or packages for a machine; for QEMU, the emulator",
        "boot": "boot a kernel with the selftests in /tests: a shell or a command",
    },
    "Test": {
        "test": "functional tests on base and series; soak; trace TLB maintenance",
        "prove": "model checker, litmus tests, mutants that must be found",
    },
    "Measure": {
        "bench": "measure kernels against each other; for QEMU, live migrations",
        "report": "tables, plots and a page of results; make the texts that quote them",
    },
    "Set up": {"deps": "install the Debian packages that the commands need"},
}
NAMES = {name: text for group in COMMANDS.values() for name, text in group.items()}


class Rule(NamedTuple):
    """What holds for each option of `given`, words.  An option is a name, with =VALUE that value alone; an argument is its name."""

    given: str
    no: str = ""  # excludes these
    only: str = ""  # excludes all but these
    needs: str = ""  # needs one of these
    why: str = ""


RULES: dict[str, tuple[Rule, ...]] = {
    "apply": (
        Rule("--fetch-only", only="--tree", why="it makes no tree of the series"),
        Rule("--upto", no="--milestone"),
    ),
    "build": (Rule("--host-config", needs="--package"),),
    "boot": (Rule("--timeout", needs="COMMAND"),),
    "test": (
        Rule("--trace", only="COMMAND --kernels --config --tree --cpu --param"),
        Rule("--soak", only="--arch --accel --only --json --repeat --seed"),
        Rule("--json --seed", needs="--soak"),
        Rule("COMMAND", needs="--trace"),
    ),
    "prove": (
        Rule("--litmus", no="--model --mutants"),
        Rule("--litmus", only="NAMES --tree", why="litmus tests are of no patches"),
        Rule("--model", no="--mutants --guests"),
        Rule("--mutants", no="--schedules"),
        Rule("--plant --engine --bound --seed --coverage", needs="--model"),
        Rule("--guests", needs="--mutants"),
        Rule("NAMES", needs="--litmus --model --mutants"),
        Rule("--applied", no="--upto --tree", why="it is a tree with patches"),
        Rule("--guests", no="--applied --upto --arch --tree", why="the checks are of the whole series"),
        Rule("--coverage", no="NAMES --engine --bound --schedules --seed", why="it is of all short scenarios"),
        Rule("--engine=random --engine=pct", no="--bound", why="schedules have no bound of preemptions"),
        Rule("--engine=loom", no="--schedules --seed", why="loom runs every execution"),
        Rule("--seed", needs="--engine=random --engine=pct", why="loom runs every execution"),
    ),
    "bench": (
        Rule("--calibrate", only="--arch --tree", why="it measures what was published"),
        Rule("--no-counts", no="--no-times", why="nothing is left to measure"),
        Rule("--case", no="--test-args", why="a case brings its own arguments"),
        Rule("--here", no="--clock=virtual", why="this machine's clock is the wall's"),
        Rule("--here", no="--param --config --cpu --accel --kernels", why="it runs on the kernel that is booted"),
        Rule("--here", no="--no-counts --no-times", why="the kernel that is booted counts or does not"),
        Rule("--here --accel=kvm --clock=wall", no="--sensitivity --retry", why="that is for --clock virtual"),
        Rule("--no-times", no="--sensitivity --retry", why="lock counts are of one boot and of no model"),
    ),
    "report": (
        Rule("--texts", only="--check --old", why="it makes the texts from the results that they name"),
        Rule("--check", no="--old"),
        Rule("--check --old", needs="--texts"),
    ),
}


class Command(click.Command):
    """A command, from its module."""

    def __init__(self, name: str) -> None:
        self.module = importlib.import_module(f".commands.{name}", __package__)
        self.takes_command = getattr(self.module, "COMMAND", False)
        more = (self.module.__doc__ or "").partition("\n\n")[2]
        super().__init__(name, params=self.module.PARAMS, help=f"{NAMES[name][0].upper()}{NAMES[name][1:]}.\n\n{more}")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.obj = []
        if self.takes_command and "--" in args:
            at = args.index("--")
            args, ctx.obj = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return super().collect_usage_pieces(ctx) + (["[-- COMMAND...]"] if self.takes_command else [])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for project, title in ((None, "Options"), ("linux", "Options for kernels"), ("qemu", "Options for QEMU")):
            own = [param for param in self.get_params(ctx) if getattr(param, "project", None) == project]
            if rows := list(filter(None, (param.get_help_record(ctx) for param in own))):
                with formatter.section(title):
                    formatter.write_dl(rows)


class _Group(click.Group):
    """All commands; loads those that are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        return Command(cmd_name) if cmd_name in NAMES else None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(group.items()), col_max=12)


GROUP = _Group(
    help="Patch series on a base: apply, build, boot, test, prove, measure. Everything is made under out/.",
    epilog="scripts/series COMMAND -h has a command's options. To begin: scripts/series apply v5.10 DIR makes a patched "
    "kernel tree.",
    no_args_is_help=False,
    subcommand_metavar="COMMAND ...",
    options_metavar="",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
)


def parse(words: Iterable[str]) -> tuple[ModuleType, Options]:
    """(module of the command, its options) from the command line; Usage or Fail for what cannot be."""
    words = list(words)
    top = GROUP.make_context("scripts/series", list(words))
    if not words:
        top.fail("Give a command.")
    name, command, rest = GROUP.resolve_command(top, words)
    assert isinstance(command, Command)
    context = command.make_context(name, rest, parent=top)
    given = {_name(param): param for param in command.params if _given(context, param)}
    values = {f"{option}={context.params[str(param.name)]}" for option, param in given.items()}
    words = [*given, *(["COMMAND"] if context.obj else [])]
    options = Options(**context.params, command=context.obj, given=set(words))
    if "series" in context.params:
        _check_project(options.series, command, given)
    _check_rules(name or "", words, values)
    if hasattr(command.module, "settle"):
        command.module.settle(options)
    if "series" in context.params:
        _check_values(options)
    return command.module, options


def _name(param: click.Parameter) -> str:
    """--json, or for an argument FILES."""
    return param.opts[0] if isinstance(param, click.Option) else str(param.name).upper()


def _given(context: click.Context, param: click.Parameter) -> bool:
    """Whether the command line has it."""
    name = str(param.name)
    source = context.get_parameter_source(name)
    return param.name != "series" and source is ParameterSource.COMMANDLINE and context.params[name] not in ((), None)


_TITLES = {"linux": "kernels", "qemu": "series of QEMU"}


def _check_project(series: catalog.Series, command: Command, given: Mapping[str, click.Parameter]) -> None:
    """Raise Usage for a command, or an option, that a series' project does not have."""
    own = getattr(command.module, "PROJECT", series.project)
    about = f"{series.name} is for {'QEMU' if series.project == 'qemu' else series.project}"
    if own != series.project:
        raise Usage(f"{about}: '{command.name}' is for {_TITLES[own]}")
    for option, param in given.items():
        if isinstance(param, Option) and param.project not in (None, series.project):
            raise Usage(f"{about}: {option} is for {_TITLES[param.project or '']}")


def _check_rules(command: str, given: list[str], values: set[str]) -> None:
    """Raise Usage for options that RULES does not have together."""
    there = {*given, *values}
    for rule in RULES.get(command, ()):
        for one in (word for word in rule.given.split() if word in there):
            why = f": {rule.why}" if rule.why else ""
            bad = [word for word in rule.no.split() if word in there]
            if rule.only:
                bad += [word for word in given if word not in (*rule.only.split(), one)]
            if bad:
                raise Usage(f"{one} excludes {bad[0]}{why}".replace("=", " "))
            if rule.needs and not there.intersection(rule.needs.split()):
                raise Usage(f"{one} needs {rule.needs.replace(' ', ' or ')}{why}".replace("=", " "))


def _check_values(options: Options) -> None:
    """Raise Usage or Fail, before minutes of work, for an arch, a configuration or a tree that cannot be."""
    series, found = options.series, vars(options)
    if found.get("arch"):
        catalog.check_arch(series, options.arch)
    if found.get("config"):
        # The tree's version is not known yet.
        kconfig.load(options.arch or series.arches[0], options.config, series.kernel)
    if found.get("tree"):
        trees.check(series, options.tree)


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the command line `arguments` (default: sys.argv); returns the exit status."""
    try:
        git.forget_environment()
        module, options = parse(sys.argv[1:] if arguments is None else arguments)
        return module.run(options) or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "scripts/series"
        print(f"series: error: {Usage(error.format_message().rstrip('.'))} (see {command} -h)", file=sys.stderr)
        return 2
    except Fail as error:
        print(f"series: error: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("series: interrupted; what was built is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"series: error: {paths.os_fail(error, Path.cwd())}", file=sys.stderr)
        return 1
