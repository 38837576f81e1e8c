"""As for the tests of the tool: everything that is made is a test's own."""

from kvmseries.conftest import *  # noqa: F403
from vtime.conftest import decoder, plugged  # noqa: F401
