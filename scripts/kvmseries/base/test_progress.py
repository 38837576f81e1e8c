"""Steps on a terminal and elsewhere, one inside the other too."""

import io

import pytest
from rich.console import Console

from kvmseries.base import progress


def _steps(monkeypatch, terminal):
    out = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=out, force_terminal=terminal, width=100, highlight=False))
    steps = progress.Steps([("outer", "the base", 90), ("last", "the rest", 30)])
    with steps.step("outer") as note:
        note("half")
        with progress.single("inner", "fetch it", 45) as inner:
            inner("all of it")
    with steps.step("last"):
        pass
    return out.getvalue()


def test_a_step_inside_a_step_on_a_terminal(monkeypatch):
    text = _steps(monkeypatch, True)
    assert "[1/1] fetch it: 0:00" in text and "[2/2] the rest: 0:00" in text
    assert not progress.Steps.live
    with pytest.raises(OSError), progress.single("x", "x", 1):
        raise OSError
    assert not progress.Steps.live


def test_without_a_terminal_each_step_says_what_is_left(monkeypatch):
    text = _steps(monkeypatch, False)
    assert "[1/2] the base (about 2:00 left)" in text
    assert "[2/2] the rest (about 0:30 left)" in text
