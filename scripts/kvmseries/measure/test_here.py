"""bench --here knows the tool's own kernels by their release, and asks about others."""

import platform
from types import SimpleNamespace

import pytest

from kvmseries import cli
from kvmseries.base.errors import Usage
from kvmseries.data.test_parse import OUTPUT
from kvmseries.measure import here
from kvmseries.source import catalog


def test_the_tools_own_kernels_are_known_and_another_one_has_to_be_named():
    for label in ("base", "series", "upto:3"):
        assert here.label(f"5.10.262-{label.replace(':', '-')}") == label
    for release in ("6.1.0-32-arm64", "5.10.262-series2", ""):
        with pytest.raises(Usage, match="add base, series or upto:MILESTONE"):
            here.label(release)


def test_each_round_runs_the_test_with_each_number_of_vcpus(monkeypatch):
    monkeypatch.setattr(here.os, "access", lambda *_: True)
    monkeypatch.setattr(here.os.path, "exists", lambda _: False)
    monkeypatch.setattr(here.toolchain, "machine", lambda _: platform.machine())
    monkeypatch.setattr(here.selftests, "build", lambda *_: None)
    asked = []
    monkeypatch.setattr(here, "_once", lambda _job, _folder, _counting, count, _line: asked.append(count) or OUTPUT)
    series = SimpleNamespace(name="mini")
    job = SimpleNamespace(
        series=series,
        points=(catalog.Point("base", 0, series),),
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
    runs, versions = here.run(job)
    assert asked == [1, 2, 1, 2]
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
