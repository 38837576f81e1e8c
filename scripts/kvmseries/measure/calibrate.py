"""Fitting the virtual machine's two free parameters on the one published column that is for that.

The parameters with `fitted: true` in scripts/vtime/model.yaml; the column with `fitted: true` in
published.yaml.  Time per page is compared, not growth: the column's machine is the one that the model
describes.  One step of Gauss-Newton from the values in model.yaml; where it moves nothing any more they
are the fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy

from vtime import vtime

from ..base.errors import Fail
from ..data import published
from ..data.shape import Run
from ..source import catalog
from . import bench

# By how much a parameter is moved to see what that does.
_STEP = 1.1
_VCPUS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Fit:
    """What a step found."""

    errors: dict[int, float]  # vCPUs -> time by published time, minus 1, with model.yaml as it is
    values: dict[str, tuple[float, float]]  # fitted parameter -> (ns in model.yaml, ns that fits better)
    residual: float  # root of the mean square of the errors that remain, by the linear model


def column(series: catalog.Series, arch: str) -> published.Column:
    """The published.Column that the model is fitted on.  Raises Fail if there is not exactly one."""
    found = [entry for entry in published.load() if entry.fitted and (entry.series, entry.arch) == (series.name, arch)]
    if len(found) != 1:
        raise Fail(f"{published.FILE} has {len(found)} columns of {series.name} on {arch} to fit the model on, not one")
    return found[0]


def job(series: catalog.Series, arch: str, wanted: published.Column, kernel: str | None) -> bench.Job:
    """The bench.Job that measures the column `wanted` with the fitted parameters moved in turn."""
    names = [name for name, entry in vtime.parameters(arch).items() if entry.get("fitted")]
    words = " ".join(
        option if value is None else f"{option} {value}" for option, value in {"-b": "2M", **wanted.args}.items()
    )
    return bench.Job(
        series=series,
        arch=arch,
        test=wanted.test,
        line=tuple(bench.arguments(wanted.test, arch, words, series.kernel)),
        vcpus=_VCPUS,
        points=catalog.points(series, wanted.kernels[0]),
        samples=1,
        counts=False,
        cpu=vtime.CPUS[arch],
        kernel=kernel,
        clock="virtual",
        models=(vtime.NOMINAL, *(f"{name}*{_STEP}" for name in names)),
    )


def fit(runs: Iterable[Run], wanted: published.Column, arch: str) -> Fit:
    """The Fit for `runs` of job(): one step, relative errors of time per page weighed alike."""
    pages = {entry["vcpus"]: published.pages_of(entry) for entry in runs}
    logs: dict[str, dict[int, float]] = {}
    for entry in runs:
        theirs = wanted.page_ns(entry["vcpus"])
        if theirs and (entry["metric"], entry["iteration"]) == (wanted.metric, wanted.iteration):
            ours = entry["samples"][0] / pages[entry["vcpus"]] * 1e9
            logs.setdefault(entry["model"], {})[entry["vcpus"]] = math.log(ours / theirs)
    counts = sorted(logs[vtime.NOMINAL])
    names = [model.split("*")[0] for model in logs if model != vtime.NOMINAL]
    now = numpy.array([logs[vtime.NOMINAL][count] for count in counts])
    slopes = numpy.array(
        [
            [(logs[f"{name}*{_STEP}"][count] - logs[vtime.NOMINAL][count]) / math.log(_STEP) for name in names]
            for count in counts
        ]
    )
    step, _, _, _ = numpy.linalg.lstsq(slopes, -now, rcond=None)
    left = now + slopes @ step
    model = vtime.parameters(arch)
    return Fit(
        {count: math.expm1(error) for count, error in zip(counts, now)},
        {name: (model[name]["ns"], model[name]["ns"] * math.exp(change)) for name, change in zip(names, step)},
        float(numpy.sqrt(numpy.mean(left**2))),
    )
