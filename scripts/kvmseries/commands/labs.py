"""test --ktap, --junit; boot --lava: what other labs read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..base import files
from ..base.errors import Usage
from ..base.progress import say
from ..guest import machine as machines
from ..kernel import build, selftests
from ..labs import junit, ktap, lava, outcomes
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


def add_lava(parser: ArgumentParser) -> None:
    """--lava, --lava-url"""
    parser.add_argument(
        "--lava", metavar="FILE", help="do not boot: write a LAVA job that boots the kernel and runs the selftests"
    )
    parser.add_argument(
        "--lava-url", metavar="URL", help="where LAVA finds kernel and initramfs (default: their paths here)"
    )


def check_lava(options: Namespace) -> None:
    """Raise Usage for options that do not go together."""
    if options.lava_url is not None and not options.lava:
        raise Usage("--lava-url is for --lava FILE")
    if options.lava and options.command:
        raise Usage("--lava runs the selftests: no command after --")
    if options.lava:
        show.check_writable(Path(options.lava), "--lava")


def job(options: Namespace, kernel: build.Kernel, initrd: Path, machine: machines.Machine, tests: Path) -> None:
    """Write LAVA's job; tests: the directory of the selftests."""
    line = machines.command(machine, kernel, initrd)
    commands, *_ = functional.plan(options.series, options.arch, selftests.programs(tests))

    def url(path: Path) -> str:
        return f"{options.lava_url.rstrip('/')}/{path.name}" if options.lava_url else path.as_uri()

    name = f"{options.series.name} {options.arch} {kernel.tree.point} {kernel.config.name}"
    text = lava.document(name, machine, line[line.index("-append") + 1], (url(kernel.image), url(initrd)), commands)
    files.write(options.lava, text)
    say(f"LAVA job in {options.lava}; it boots {kernel.image} with {initrd}")
