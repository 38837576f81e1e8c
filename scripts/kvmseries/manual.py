"""The man page and the shells' completions, made from the options: python -m kvmseries.manual DIRECTORY."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from pathlib import Path

import argparse_manpage.manpage
import shtab

from . import cli
from .base import files

# The program's name where it is installed (pyproject.toml).
NAME = "kvm-series"
# File below the directory for each shell, as shells look for them below share/.
COMPLETIONS = {"bash": f"bash-completion/completions/{NAME}", "zsh": f"zsh/site-functions/_{NAME}"}


def parser() -> ArgumentParser:
    """The parser of the command line, under the program's installed name."""
    made = cli.parser()
    _rename(made, made.prog)
    return made


def _rename(found: ArgumentParser, old: str) -> None:
    """Call the program NAME in `found` and its subparsers, and drop what shells cannot complete."""
    found.prog = re.sub(rf"^{re.escape(old)}", NAME, found.prog)
    if found.usage:
        found.usage = found.usage.replace(old, NAME)
    for action in found._actions:  # argparse has no other way to walk its options
        for sub in (action.choices or {}).values() if isinstance(action.choices, dict) else ():
            _rename(sub, old)


def man_page() -> str:
    """The text of the man page, for section 1."""
    made = parser()
    page = argparse_manpage.manpage.Manpage(
        made,
        format="pretty",
        _data={"project_name": NAME, "manual_title": "User Commands", "description": "patch series on a base"},
    )
    # A quote at the start of a line would be a request of roff.
    return re.sub(r"^'", r"\\(aq", f"{page}\n", flags=re.M)


def completion(shell: str) -> str:
    """The completion script for `shell`, a key of COMPLETIONS."""
    return shtab.complete(parser(), shell)


def write(folder: str | Path) -> list[Path]:
    """Write all of it below `folder`; returns the paths."""
    texts = {f"man/man1/{NAME}.1": man_page(), **{path: completion(shell) for shell, path in COMPLETIONS.items()}}
    return [files.write(Path(folder) / path, text) for path, text in texts.items()]


if __name__ == "__main__":
    for written in write(sys.argv[1]):
        print(written)
