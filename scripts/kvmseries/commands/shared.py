"""What commands share: options, and how they print."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.console import Console, RenderableType

from ..base import paths
from ..base.errors import Fail, Usage
from ..base.progress import say
from ..kernel import kconfig
from ..source import catalog

# The options of a command: an attribute for each, `command` (what stands after --) and `given`, the names of those given.
Options = SimpleNamespace


class Option(click.Option):
    """An option for series of `project`, or of all.  Its value is not empty, and no other option, unless it is `raw`."""

    project: str | None = None

    def __init__(self, name: str, metavar: str | None, text: str, raw: bool = False, **keys: Any) -> None:
        super().__init__([name], metavar=metavar, help=text, **keys)
        self.raw = raw

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        for text in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(text, str) and not self.raw and (not text or text.startswith("--")):
                raise Usage(f"{self.opts[0]} '{text}': give a value")
        return super().process_value(ctx, value)


def flag(name: str, text: str) -> Option:
    """An option without a value."""
    return Option(name, None, text, is_flag=True, show_default=False)


def several(name: str, metavar: str, text: str) -> Option:
    """An option that may be repeated."""
    return Option(name, metavar, f"{text}; may be repeated", multiple=True)


def of(project: str, *options: Option) -> list[Option]:
    """`options`, for series of `project` alone."""
    for option in options:
        option.project = project
    return list(options)


class Number(click.ParamType):
    """A number from `low` to `high`; of kind=float one above `low`."""

    name = "number"

    def __init__(self, low: float, high: float = 1e12, kind: type[int] | type[float] = int) -> None:
        self.low, self.high, self.kind = low, high, kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        whole = self.kind is int
        try:
            found = self.kind(value)
        except ValueError:
            found = math.nan
        # NaN is not above anything.
        if not (found >= self.low if whole else found > self.low) or found > self.high:
            upper = f" to {self.high:g}" if self.high < 1e12 else " on" if whole else ""
            self.fail(f"{value}: give a number {'from' if whole else 'above'} {self.low:g}{upper}", param, ctx)
        return found


COUNT = Number(1)


class Series(click.ParamType):
    """A catalog.Series, by its name."""

    name = "series"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> catalog.Series:
        return value if isinstance(value, catalog.Series) else catalog.load(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in catalog.names() if name.startswith(incomplete)]


class Output(click.ParamType):
    """A file to write, as a Path.  That it cannot be written is found out before minutes of work; no directory is made."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return writable(Path(value), param.opts[0] if param else "file")


def writable(target: Path, option: str) -> Path:
    """`target`, which `option` names; Usage or Fail if it cannot be written."""
    if target.is_dir():
        raise Usage(f"{option} {target} is a directory: name a file")
    if not target.parent.is_dir():
        raise Usage(f"{option} {target}: there is no directory {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise Fail(f"no permission to write {target.parent}: choose another {option}")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise Fail(f"no file can be made in {target.parent} ({error.strerror}): choose another {option}") from None
    return target


SERIES = click.Argument(["series"], type=Series())
ARCH = Option("--arch", "ARCH", "arm64 or x86_64", default="arm64")
ANY_ARCH = Option("--arch", "ARCH", "arm64 or x86_64 alone (default: all that the series has)")
TREE = Option(
    "--tree",
    "TREE",
    "your own git tree or tarball as the base; it is only read",
    raw=True,
    default=paths.own_tree,
    show_default="$TREE",
    callback=lambda _context, _option, value: value or None,
)
CONFIG = several(
    "--config", "NAME", f"overlay on the normal kernel: {', '.join(sorted({*kconfig.overlays()} - {'normal'}))}"
)
UPTO = Option("--upto", "N", "only the first N patches, or those up to the milestone N")
PARAM = several("--param", "WORD", "kernel parameter, such as kvm_amd.npt=0")


def accel(default: str | None = "tcg") -> Option:
    """--accel"""
    text = "kvm needs a host of the same arch, with nested virtualisation"
    return Option("--accel", None, text, default=default, type=click.Choice(["tcg", "kvm"]))


def cpu(default: str | None = "max", text: str = "QEMU's CPU: max, cortex-a72, ...") -> Option:
    """--cpu"""
    return Option("--cpu", "CPU", text, default=default)


def kernels(default: str | None, text: str) -> Option:
    """--kernels"""
    return Option("--kernels", "K,...", f"{text}: base, series, upto:MILESTONE, OTHER:base", default=default)


def point(series: catalog.Series, option: str, label: str) -> catalog.Point:
    """The one kernel that `option` names by `label`."""
    found = catalog.points(series, label)
    if len(found) > 1:
        raise Usage(f"{option} {label}: give one kernel")
    return found[0]


def words(command: Sequence[str]) -> list[str]:
    """What runs `command`: a shell if it is one word, so that it may be a pipeline."""
    return list(command) if len(command) > 1 else ["sh", "-c", command[0]]


def console(width: int = 120) -> Console:
    """Standard output: as wide as the terminal, `width` columns where it is none."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else width)


def table(view: RenderableType) -> None:
    """Print a table of rich."""
    console().print(view)


def complain(complaints: Sequence[str], where: object) -> None:
    """Say each of `complaints`, lines, and raise Fail if there is one."""
    for complaint in complaints:
        say(complaint)
    if complaints:
        raise Fail(
            f"{len(complaints)} complaint{'s' if len(complaints) > 1 else ''}, the first: {complaints[0]} (see {where})"
        )
