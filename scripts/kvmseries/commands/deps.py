"""scripts/series deps"""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace

from ..base import debian, distro
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import toolchain
from ..source import catalog

HELP = "install the Debian packages that the commands need"
SERIES = False


def add_arguments(_parser: ArgumentParser, _project: str | None) -> None:
    """It has no options."""


def run(_options: Namespace) -> None:
    """Install all but the compilers for this machine's own arch."""
    if not shutil.which("dpkg-query"):
        raise Fail(
            f"deps installs packages of Debian, and {distro.title()} has no dpkg: a command names the program that it "
            f"lacks; or {distro.CONTAINER}"
        )
    native = [f"build-{arch}" for arch in catalog.ARCHES if not toolchain.prefix(arch)]
    debian.install(*(group for group in debian.GROUPS if group not in native))
    say("everything is installed")
