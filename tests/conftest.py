"""Which checks run, and in what order: quick ones first, those that boot last."""

import shutil
import signal
from pathlib import Path

import pytest

from kvmseries.base import paths
from kvmseries.source import catalog, git

HERE = Path(__file__).parent
# Bytes that `make test` makes below out/ of a fresh clone, for all series and for one; README.md says the first, too.
DISK, DISK_OF_ONE = 18 * 10**9, 10 * 10**9


def pytest_addoption(parser):
    """--series."""
    parser.addoption("--series", default="", help="unit tests, and the checks of this series alone")


def pytest_configure(config):
    """CI's time-out, or a terminal that goes away, must not leave guests and compilers behind."""
    series = config.getoption("--series")
    if series and series not in catalog.names():
        raise pytest.UsageError(f"unknown series '{series}': there is {', '.join(catalog.names())}")

    def terminated(*_):
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminated)
    git.forget_environment()


def is_unit(item):
    """Whether the test is no check of this directory, but a unit test."""
    return not item.path.is_relative_to(HERE) or item.path.is_relative_to(HERE / "unit")


def series_of(item):
    """The series that a check is for: its parameter `series`, or its directory; "" if it is for none."""
    given = getattr(item, "callspec", None)
    name = given.params.get("series") if given else None
    folder = item.path.relative_to(HERE).parts[0]
    return name or (folder if folder in catalog.names() else "")


def pytest_collection_modifyitems(config, items):
    """Leave out what is not for --series, and have what is quick first."""
    wanted = config.getoption("--series")
    out = [item for item in items if wanted and not is_unit(item) and series_of(item) != wanted]
    config.hook.pytest_deselected(items=out)
    left = [item for item in items if item not in set(out)]
    items[:] = sorted(left, key=_stage)


def _stage(item):
    marks = [bool(item.get_closest_marker(name)) for name in ("slow", "boot", "build")]
    return [not is_unit(item), *marks]


def pytest_collection_finish(session):
    """End here if checks that build are to run and the disk is too small for them."""
    config = session.config
    builds = any(not is_unit(item) and item.get_closest_marker("build") for item in session.items)
    if builds and not config.getoption("collectonly"):
        wrong = too_little_disk(shutil.disk_usage(paths.out("trees").parent).free, bool(config.getoption("--series")))
        if wrong:
            pytest.exit(wrong, 1)


def too_little_disk(free, one):
    """A line about the disk of out/, of which `free` bytes are free, or "": not of a clone that has its trees, as some
    of what checks make is there then.  one: the checks are of one series."""
    folder, needed = paths.out("trees"), DISK_OF_ONE if one else DISK
    if folder.exists() or free >= needed:
        return ""
    return (
        f"the checks make {needed / 10**9:.0f} GB below {folder.parent}, and {free / 10**9:.1f} GB are free: "
        "remove something, or set SERIES_OUT to a directory on another disk"
    )
