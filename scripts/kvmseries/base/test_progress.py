"""Steps on a terminal and elsewhere, one inside the other too."""

import io

import pytest
from rich.console import Console

from kvmseries.base import progress


@pytest.mark.parametrize("terminal", [True, False])
def test_a_step_inside_a_step(monkeypatch, terminal):
    out = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=out, force_terminal=terminal, width=100, highlight=False))
    steps = progress.Steps([("outer", "the base", 90), ("last", "the rest", 30)])
    with steps.step("outer") as note:
        note("half")
        with progress.single("inner", "fetch it", 45) as inner:
            inner("all of it")
    with steps.step("last"):
        pass
    assert "[1/1] fetch it" in out.getvalue() and "[2/2] the rest" in out.getvalue()
    assert not progress.Steps.live
    with pytest.raises(OSError), progress.single("x", "x", 1):
        raise OSError
    assert not progress.Steps.live
