"""As for the tests of the tool: everything that is made is a test's own.  And what tests of the C of TCG plugins share."""

import pytest

from kvmseries.conftest import *  # noqa: F403
from kvmseries.conftest import plugin_program
from kvmseries.vm import tcgplugin


def instructions(table):
    """[(instruction, kind)] of lines "KIND: INSTRUCTION; INSTRUCTION", which go on in lines that are indented."""
    found = []
    for line in table.splitlines():
        if not line.startswith(" "):
            kind, _, line = line.partition(": ")
        found += [(word.strip(), kind) for word in line.split(";") if word.strip()]
    return found


@pytest.fixture(scope="module")
def decoder(request, tmp_path_factory):
    """The module's DECODER, with what its plugin, in SOURCE, takes for which instruction."""
    return plugin_program(tmp_path_factory.mktemp("decoder"), request.module.DECODER, request.module.SOURCE, "arm64.c")


@pytest.fixture(scope="module")
def plugged(request, tmp_path_factory):
    """fake_qemu.c, which says what it does with its input, with the module's plugin."""
    text = (tcgplugin.AARCH64.parent / "fake_qemu.c").read_text(encoding="utf-8")
    files = (path.name for path in request.module.SOURCE.glob("*.c"))
    return plugin_program(tmp_path_factory.mktemp("qemu"), text, request.module.SOURCE, *files)
