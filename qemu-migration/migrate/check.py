"""What must hold of a series for QEMU without running it, beside what must of every series (../check.py)."""

from __future__ import annotations

import re

from kvmseries.base import debian, proc
from kvmseries.base.errors import Fail
from kvmseries.base.progress import Note
from kvmseries.source import catalog, trees
from kvmseries.verify.check import that_change

from . import build

# Changes to these compile nothing.
_NOT_BUILT = ("docs/", "tests/docker/", "tests/migration/", ".gitlab-ci")


def checkpatch(series: catalog.Series, kernel: str | None = None) -> None:
    """Run checkpatch.pl of the base's own tree over every patch: no errors, no warnings."""
    debian.install("check")
    tree = trees.base(series, kernel)
    for patch in series.patches:
        line = [str(tree.path / "scripts/checkpatch.pl"), "--no-signoff", "--terse", "--no-summary", str(patch)]
        status, text = proc.attempt(line, "checkpatch", cwd=tree.path)
        # --terse: a line each; the script itself would stop at the first file that is no patch.
        complaint = re.search(r"^.*\b(ERROR|WARNING): .*$", text, re.M)
        if status or complaint:
            raise Fail(f"checkpatch: {patch.name}: {complaint[0] if complaint else proc.reason(text)}")


def builds(series: catalog.Series, arch: str, note: Note, kernel: str | None = None) -> list[int]:
    """Build QEMU after each patch, in one tree, so that only what changes is compiled.  Returns their numbers.

    Patches that only touch documentation change no program.
    """
    counts = that_change(series, trees.base(series, kernel), _NOT_BUILT)
    build.each_patch(series, arch, counts, note, kernel)
    return counts
