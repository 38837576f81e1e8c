"""As for the tests of the tool: everything that is made is a test's own.  And what tests of the C of TCG plugins share."""

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


def fake_qemu(folder, source, *files):
    """As plugin_program(): of fake_qemu.c, which says what it does with its input."""
    text = (tcgplugin.AARCH64.parent / "fake_qemu.c").read_text(encoding="utf-8")
    return plugin_program(folder, text, source, *files)
