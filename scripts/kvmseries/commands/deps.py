"""scripts/series deps"""

import shutil

from runner import build

from ..base import debian, distro
from ..base.errors import Fail
from ..base.progress import say
from ..kernel import toolchain
from ..source import catalog
from . import shared

PARAMS = [shared.flag("--checks", "only those that `make check` needs; nothing where there is no dpkg")]


def run(options: shared.Options) -> None:
    """Install all but the cross compilers for this machine's own arch."""
    cross = [f"build-{arch}" for arch in catalog.ARCHES if toolchain.prefix(arch)]
    if options.checks:
        debian.install("build", "checks", *cross)
        return
    if not shutil.which("dpkg-query"):
        raise Fail(
            f"deps installs packages of Debian, and {distro.title()} has no dpkg: a command names the program that it "
            f"lacks; or {distro.CONTAINER}"
        )
    debian.install(*(group for group in debian.GROUPS if not group.startswith(("build-", "model"))), *cross)
    build.install()
    say("everything is installed")
