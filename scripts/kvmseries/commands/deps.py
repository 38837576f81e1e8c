"""scripts/series deps"""

from ..base import debian
from ..base.progress import say
from ..kernel import toolchain
from ..source import catalog

HELP = "install the Debian packages that the commands need"
SERIES = False


def add_arguments(_parser, _project):
    """It has no options."""


def run(_options):
    """Install all but the compilers for this machine's own arch."""
    native = [f"build-{arch}" for arch in catalog.ARCHES if not toolchain.prefix(arch)]
    debian.install(*(group for group in debian.GROUPS if group not in native))
    say("everything is installed")
