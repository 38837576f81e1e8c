"""`python -m tests.ahead SERIES...`: builds base and series of each, for each architecture, as the checks want them.

What fails here fails in the check that wants it, too, which then builds it itself.
"""

import contextlib
import signal
import sys

from kvmseries.base.errors import Fail
from kvmseries.kernel import build
from kvmseries.source import catalog
from tests import extra


def kernels(names):
    """(series, number of patches, architecture) of the kernels of all series `names` that are linux's."""
    for series in map(catalog.load, names):
        if series.project == "linux" and series.patches:
            yield from ((series, count, arch) for arch in series.arches for count in (0, len(series.patches)))


def main(names):
    """Build them all."""
    for series, count, arch in kernels(names):
        with contextlib.suppress(Fail):
            build.kernel(series, count, arch, kernel_tree=extra.own_base(series))


def _terminated(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
