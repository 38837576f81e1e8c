"""scripts/series verify

The series applies to every version of its base, passes checkpatch --strict, exports to the same files, each patch
builds, and of a port port.yaml says how each patch differs."""

from migrate import check as qemu_check

from ..verify import check
from . import shared

NO_BUILD = shared.flag("--no-build", "only the checks that build nothing (minutes)")
PARAMS = [shared.SERIES, shared.ANY_ARCH, NO_BUILD, shared.TREE]


def run(options: shared.Options) -> None:
    """Raise Fail with the first thing that is not as it must be."""
    series = options.series
    own, key, seconds = (
        (qemu_check, "qemu-check", (60, 10, 900)) if series.project == "qemu" else (check, "check", (90, 30, 300))
    )
    arches = [options.arch] if options.arch else series.arches
    check.every(series, arches, own, key, seconds, not options.no_build, options.tree)
