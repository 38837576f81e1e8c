"""`python -m tests.ahead SERIES...`: builds base and series of each, for each architecture, as the checks want them.

What fails here fails in the check that wants it, too, which then builds it itself.
"""

import contextlib
import itertools
import signal
import sys

from kvmseries.base.errors import Fail
from kvmseries.kernel import build
from kvmseries.source import catalog
from tests import extra


def main(names):
    """Build base and series of all series `names` that are linux's."""
    for series in map(catalog.load, names):
        if series.project == "linux" and series.patches:
            for arch, count in itertools.product(series.arches, (0, len(series.patches))):
                with contextlib.suppress(Fail):
                    build.kernel(series, count, arch, kernel_tree=extra.own_base(series))


def _terminated(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
