"""Hours of functional selftests on the kernels that find mistakes, one configuration after the
other, until the time is up.  What was run and found is kept in Documentation/results/."""

import json
import time

from . import bench, functional, paths, results
from .errors import Fail
from .progress import clock, say

# (arch, cpu, overlays, kernel parameters): each is a round of the soak.
ROUNDS = (
    ("arm64", "max", ("debug",), ()),
    ("arm64", "cortex-a72", ("debug",), ()),
    ("arm64", "max", ("debug", "64k"), ()),
    ("x86_64", "max", ("debug",), ()),
    ("x86_64", "max", ("debug",), ("kvm.tdp_mmu=1",)),
    ("x86_64", "max", ("debug",), ("kvm_amd.npt=0",)),
    ("x86_64", "max", ("kcsan",), ()),
    ("x86_64", "max", ("kcsan",), ("kvm.tdp_mmu=1",)),
    ("x86_64", "max", ("kcsan",), ("kvm_amd.npt=0",)),
)


def run(series, hours):
    """Soak `series` (all patches) for `hours`; returns the path of the JSON.

    Base runs beside it: a kernel report that base gives, too, is not the series'.  Raises Fail at
    the end if there were complaints; the JSON is written after every round.
    """
    points = bench.points(series, "base,series")
    end = time.monotonic() + hours * 3600
    path = paths.ROOT / "Documentation" / "results" / f"soak-{series.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    done, complaints = [], []
    while time.monotonic() < end:
        for arch, cpu, configs, params in ROUNDS:
            if arch not in series.arches or time.monotonic() >= end:
                continue
            say(f"soak: {arch} {cpu} {'+'.join(configs)} {' '.join(params)} "
                f"({clock(max(0, end - time.monotonic()))} left)")
            begin = time.monotonic()
            try:
                verdicts, found, host = functional.run(series, arch, points, cpu, "tcg", configs,
                                                       params)
            except Fail as error:
                # A guest that panics or hangs is what this is here to find.
                verdicts, found, host = [], [str(error)], results.host_info()
                say(found[0])
            complaints += found
            done.append({"arch": arch, "cpu": cpu, "configs": configs, "params": params,
                         "seconds": round(time.monotonic() - begin),
                         "tests": len(verdicts), "complaints": found, "host": host})
            part = path.with_suffix(".part")
            part.write_text(json.dumps({"schema": 1, "series": series.name, "hours": hours,
                                        "patches": series.patches_id(len(series.patches)),
                                        "rounds": done}, indent=1) + "\n", encoding="utf-8")
            part.replace(path)
    if complaints:
        raise Fail(f"{len(complaints)} complaints in {len(done)} rounds, the first: "
                   f"{complaints[0]} (see {path})")
    return path
