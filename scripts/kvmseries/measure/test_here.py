"""bench --here knows the tool's own kernels by their release, and asks about others."""

import platform
from types import SimpleNamespace

import pytest

from kvmseries import cli
from kvmseries.base.errors import Fail, Usage
from kvmseries.data import unfinished
from kvmseries.data.test_parse import OUTPUT
from kvmseries.measure import here


def test_the_tools_own_kernels_are_known_and_another_one_has_to_be_named():
    for label in ("base", "series", "upto:3"):
        assert here.label(f"5.10.262-{label.replace(':', '-')}") == label
    for release in ("6.1.0-32-arm64", "5.10.262-series2", ""):
        with pytest.raises(Usage, match="add base, series or upto:MILESTONE"):
            here.label(release)


def test_what_was_measured_before_a_failure_is_not_measured_again(monkeypatch):
    monkeypatch.setattr(here.os, "access", lambda *_: True)
    monkeypatch.setattr(here.os.path, "exists", lambda _: False)
    monkeypatch.setattr(here.toolchain, "machine", lambda _: platform.machine())
    monkeypatch.setattr(here.selftests, "build", lambda *_: None)
    asked, left = [], []

    def once(_job, _folder, _counting, count, _line):
        asked.append(count)
        if len(asked) == 3:
            raise Fail("assertion")
        return OUTPUT

    monkeypatch.setattr(here, "_once", once)
    job = SimpleNamespace(
        series=SimpleNamespace(name="mini"),
        arch="x",
        accel="here",
        clock="wall",
        test="dirty_log_perf_test",
        line=(),
        vcpus=(1, 2),
        samples=2,
        params=(),
        cpu="host",
        kernel=None,
    )
    taken = unfinished.Taken()
    with pytest.raises(Fail, match="assertion"):
        here.run(job, "base", taken, left.append)
    assert (asked, left, taken.parts) == ([1, 2, 1], [3, 2], [[0, 1], [0, 2]])
    runs, versions = here.run(job, "base", taken, left.append)
    assert (asked, left) == ([1, 2, 1, 1, 2], [3, 2, 1, 0])
    assert {(run["accel"], run["clock"], run["model"], run["cpu"]) for run in runs} == {("here", "wall", "", "host")}
    assert {len(run["samples"]) for run in runs} == {2} and versions == {"base x here": platform.release()}


@pytest.mark.parametrize(
    "machine, words, arch",
    [
        ("x86_64", ["--here", "base"], "x86_64"),
        ("aarch64", ["--here"], "arm64"),
        ("riscv64", ["--here"], "arm64"),
        ("x86_64", ["--here", "base", "--arch", "arm64"], "arm64"),
        ("x86_64", [], "arm64"),
    ],
)
def test_the_architecture_is_this_machines_where_it_is_measured(monkeypatch, mini, machine, words, arch):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    _, options = cli.parse(["bench", "mini", *words])
    assert (options.arch, options.accel) == (arch, None)
