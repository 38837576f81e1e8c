"""Fitting, on times that a machine with known parameters would show."""

import dataclasses
import math
import re

import pytest

from kvmseries.base.errors import Fail
from kvmseries.data import published
from kvmseries.measure import bench, calibrate
from kvmseries.report.conftest import make_run
from vtime import vtime

COUNTS = (1, 2, 4, 8, 16)
NOW, PLANTED = {"insn": 0.22, "dvm_sync": 478.0}, {"insn": 0.31, "dvm_sync": 390.0}


def _column(page_ns):
    """The column to fit on, with these ns a page by vCPUs."""
    wanted = next(entry for entry in published.load() if entry.fitted)
    return dataclasses.replace(wanted, seconds={count: ns * wanted.pages / 1e9 for count, ns in page_ns.items()})


def _runs(page_ns, models):
    """Runs as of calibrate.job(), -b 2M, by page_ns(vCPUs, model); and others that are no times of
    the column."""
    runs = []
    for model in models:
        for count in COUNTS:
            samples = [page_ns(count, model) * 512 / 1e9]
            entry = make_run(
                clock="virtual", model=model, vcpus=count, args="-b 2M -i 2 -g", iteration=2, samples=samples
            )
            runs += [
                {**entry, "iteration": 1, "samples": [9.0]},
                entry,
                {**entry, "metric": "populate_memory_time", "iteration": None, "samples": [8.0]},
                {**entry, "metric": "atomics.dirty", "samples": [7]},
            ]
    return runs


def test_where_time_is_a_power_of_the_parameters_one_step_is_the_fit(monkeypatch):
    """And errors that no parameter reaches remain; vCPUs that were not published are left out."""
    monkeypatch.setattr(vtime, "parameters", lambda _arch: {name: {"ns": ns} for name, ns in NOW.items()})
    # insn moves the time of 1 vCPU alone, dvm_sync, by its square root, of 2 alone; 8 is 20 % off.
    powers = {1: {"insn": 1}, 2: {"dvm_sync": 0.5}}

    def page_ns(count, model):
        moved = {name: (1.1 if model == f"{name}*1.1" else 1) * NOW[name] / PLANTED[name] for name in NOW}
        return (
            1000 * (1.2 if count == 8 else 1) * math.prod(moved[name] ** n for name, n in powers.get(count, {}).items())
        )

    runs = _runs(page_ns, ("nominal", "insn*1.1", "dvm_sync*1.1"))
    found = calibrate.fit(runs, _column(dict.fromkeys(COUNTS[:-1], 1000)), "arm64")
    assert found.values == {name: (NOW[name], pytest.approx(PLANTED[name])) for name in NOW}
    # Of model.yaml as it is.
    assert found.errors == pytest.approx({count: page_ns(count, "nominal") / 1000 - 1 for count in COUNTS[:-1]})
    assert found.errors[1] < 0 and found.residual == pytest.approx(math.log(1.2) / math.sqrt(4))


@pytest.mark.parametrize(
    "name, arch, more, count", [("mini", "arm64", 0, 0), ("v5.10", "x86_64", 0, 0), ("v5.10", "arm64", 1, 2)]
)
def test_none_or_two_columns_are_refused(mini, monkeypatch, name, arch, more, count):
    columns = published.load()
    fitted = [entry for entry in columns if entry.fitted]
    monkeypatch.setattr(published, "load", lambda: columns + tuple(fitted * more))
    with pytest.raises(
        Fail, match=re.escape(f"{published.FILE} has {count} columns of {name} on {arch} to fit the model on, not one")
    ):
        calibrate.column(dataclasses.replace(mini, name=name), arch)


def test_the_job_moves_the_fitted_parameters_alone(mini):
    wanted = next(entry for entry in published.load() if entry.fitted)
    job = calibrate.job(mini, "arm64", wanted, None)
    assert job.models == ("nominal", "insn*1.1", "dvm_sync*1.1")
    plain = vtime.parameters("arm64")
    for model in job.models[1:]:
        changed = vtime.parameters("arm64", model)
        assert [name for name in plain if changed[name] != plain[name]] == [model.split("*")[0]]
    assert wanted.fits("v5.10", job.arch, job.test, " ".join(job.line))
    assert published.options(" ".join(job.line))["-b"] == "2M"
    assert set(job.vcpus) <= set(wanted.seconds)
    assert [point.label for point in job.points] == ["base"]
    assert wanted == calibrate.column(dataclasses.replace(mini, name="v5.10"), "arm64")
    assert wanted.id == "zhang2022-base"
    assert (job.clock, job.counts, job.samples) == ("virtual", False, 1)
    assert [(entry.model, entry.number) for entry in bench.rounds(job)] == [(model, 0) for model in job.models]


def test_the_verb_prints_what_fits_better(series, patches, mini, monkeypatch):
    wanted = dataclasses.replace(_column(dict.fromkeys(COUNTS, 1000)), series=mini.name)
    monkeypatch.setattr(published, "load", lambda: (wanted,))

    def run(job):
        return _runs(
            lambda count, model: 1100 * (1.1 if model == "insn*1.1" else 1 + 0.05 * (count > 4) * (model != "nominal")),
            job.models,
        ), {}

    monkeypatch.setattr(bench, "run", run)
    done = series("bench", "mini", "--calibrate")
    insn = vtime.parameters("arm64")["insn"]["ns"]
    assert done.status == 0
    assert done.out.splitlines()[0] == f"insn: {insn:.4g} ns, fits best at {insn / 1.1:.4g} ns"
    assert "1 vCPUs +10.0%" in done.err and "errors that remain: 0.0%" in done.err


def test_runs_without_the_size_of_memory_are_refused():
    runs = [{**run, "args": "-i 2"} for run in _runs(lambda count, model: 1000, ("nominal",))]
    with pytest.raises(Fail, match="-i 2: no -b SIZE"):
        calibrate.fit(runs, _column(dict.fromkeys(COUNTS, 1000)), "arm64")
