"""CI's time-out, or a terminal that goes away, must not leave guests and compilers behind."""

import signal

from kvmseries.source import git


def pytest_configure():
    """As __main__.py does for scripts/series."""

    def terminated(*_):
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, terminated)
    git.forget_environment()
