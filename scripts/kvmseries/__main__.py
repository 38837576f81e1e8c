"""python -m kvmseries; users call scripts/series."""

import signal
import sys
from typing import NoReturn

from .cli import main


def _terminated(*_: object) -> NoReturn:
    raise KeyboardInterrupt


# A job that is told to end cleans up as one that is interrupted by hand does.
signal.signal(signal.SIGTERM, _terminated)
signal.signal(signal.SIGHUP, _terminated)
sys.exit(main())
