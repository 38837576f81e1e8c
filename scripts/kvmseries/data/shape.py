"""What is in results files, as types: results.py checks it, Documentation/results.md says what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

# What is known of a machine.  Files may say more than this tool writes; what is needed of it is checked.
Host = dict[str, Any]
# [s, bytes left to send, throttle in percent, bytes sent, sync passes]
TraceRow = list[float]


class _Measured(TypedDict):
    series: str
    kernel: str
    arch: str
    accel: str
    clock: str
    model: str
    cpu: str
    config: str
    params: list[str]
    test: str
    args: str
    vcpus: int
    iteration: int | None
    metric: str
    unit: str
    samples: list[float]


# What each run has.
KEYS = tuple(_Measured.__annotations__)


class Run(_Measured, total=False):
    """One metric of one test on one kernel.  What is of its rounds is in each run that was loaded or saved."""

    repeats: bool | None
    earlier: list[list[float]]


def key(run: Mapping[str, object]) -> tuple[str, ...]:
    """What tells a run from the others of one benchmark: all but what was measured."""
    return tuple(str(run[name]) for name in KEYS if name != "samples")


class Trace(TypedDict):
    """A migration over time."""

    series: str
    kernel: str
    config: str
    args: str
    vcpus: int
    rows: list[TraceRow]


class Ids(TypedDict, total=False):
    """Ids of what was measured; None: it could not be known."""

    kernels: dict[str, str | None]
    tests: dict[str, str | None]
    configs: dict[str, str | None]
    models: dict[str, str | None]
    guest: str | None
    own: dict[str, str | None]
    instrument: str | None
    qemu: str | None


class Made(TypedDict, total=False):
    """What the file was made of, and how to make it again; only save() sets `rounds`, which follow from the runs."""

    ids: Ids
    command: str
    seconds: int
    rounds: int


class Results(TypedDict, total=False):
    """A whole file; only one of migrations has traces."""

    schema: int
    host: Host
    made: Made
    runs: list[Run]
    traces: list[Trace]
