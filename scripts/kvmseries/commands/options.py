"""Options that commands share, and the types of their values."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from ..base import paths
from ..base.errors import Usage
from ..kernel import kconfig


def number(low: float = 1, high: float | None = None, kind: type[int] | type[float] = int) -> Callable[[str], float]:
    """The type of an option: a number from `low` to `high`; of kind=float one above `low`."""
    words = f"a number {'above' if kind is float else 'from'} {low}" + (
        f" to {high}" if high else "" if kind is float else " on"
    )

    def convert(text: str) -> float:
        try:
            value = kind(text) if text.isascii() and text[:1] not in "+" else None
        except ValueError:
            value = None
        # NaN is not above anything.
        if value is None or not (value > low if kind is float else value >= low) or value > (high or 1e12):
            raise argparse.ArgumentTypeError(f"{text}: give {words}")
        return value

    return convert


def refuse(options: Namespace, why: str, *names: str) -> None:
    """Raise Usage, which begins with `why`, if one of the options `names` was given: an option that would be ignored. Their
    defaults are None, False, [] or ""."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False and value not in ([], ""):
            raise Usage(f"{why}: no --{name.replace('_', '-')}")


def arch(parser: ArgumentParser) -> None:
    """--arch"""
    parser.add_argument("--arch", default="arm64", help="arm64 (default) or x86_64")


def point(parser: ArgumentParser) -> None:
    """--base, --upto: how many patches"""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--base", action="store_true", help="without the series")
    group.add_argument("--upto", metavar="N", help="with the first N patches, or those up to the milestone N")


def count(options: Namespace) -> int:
    """Number of patches that --base and --upto ask for."""
    if options.base:
        return 0
    return len(options.series.patches) if options.upto is None else options.series.upto(options.upto)


def kernels(parser: ArgumentParser) -> None:
    """--kernels: which are compared, or built"""
    parser.add_argument(
        "--kernels", default="base,series", metavar="K,...", help="base, series, upto:MILESTONE (default: base,series)"
    )


def configs(parser: ArgumentParser) -> None:
    """--config"""
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME",
        help=f"overlay on the normal kernel: {', '.join(name for name in kconfig.overlays() if name != 'normal')}; may be repeated",
    )


def tree(parser: ArgumentParser) -> None:
    """--tree"""
    parser.add_argument(
        "--tree",
        default=paths.own_tree(),
        metavar="TREE",
        help="use your own git tree or tarball as the base; it is only read (default: $TREE)",
    )


def version(parser: ArgumentParser) -> None:
    """--version"""
    parser.add_argument("--version", metavar="V", help="use this version of patches/<series>/base, not the first")


def accel(parser: ArgumentParser) -> None:
    """--accel"""
    parser.add_argument(
        "--accel",
        default="tcg",
        choices=("tcg", "kvm"),
        help="kvm needs a host of the same arch with nested virtualisation",
    )


def machine(parser: ArgumentParser, cpu: str | None = "max") -> None:
    """--cpu, --accel, --param: the emulated machine"""
    parser.add_argument(
        "--cpu",
        default=cpu,
        help="QEMU's CPU: max, cortex-a72, ... (default: max; in virtual time neoverse-n1, which the model describes)",
    )
    accel(parser)
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="WORD",
        help="kernel parameter, such as kvm_amd.npt=0; may be repeated",
    )
