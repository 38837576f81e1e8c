"""What commands share: options, and how they print."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
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


class Positive(click.FloatRange):
    """A number above 0, up to `high`."""

    def __init__(self, high: float | None = None) -> None:
        super().__init__(0, high, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        # NaN is in each range for click.
        return found if math.isfinite(found) else self.fail(f"{value} is not a number", param, ctx)


COUNT = click.IntRange(1)


class Series(click.ParamType):
    """A catalog.Series, by its name."""

    name = "series"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> catalog.Series:
        return value if isinstance(value, catalog.Series) else catalog.load(value)


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
    paths.check_folder(target.parent, f"choose another {option}")
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


def complain(complaints: Sequence[str], where: object = None) -> None:
    """Say each of `complaints`, lines, and raise Fail if there is one; where: what has more about them."""
    for complaint in complaints:
        say(complaint)
    if complaints:
        many = f"{len(complaints)} complaint{'s' if len(complaints) > 1 else ''}"
        raise Fail(f"{many}, the first: {complaints[0]}" + (f" (see {where})" if where else ""))
