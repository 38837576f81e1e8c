"""Randomised live migrations: things go wrong in the middle, and no page may be lost, nothing may hang, and
the guest must live on."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kvmseries.base import files, paths
from kvmseries.base.errors import Fail
from kvmseries.base.progress import clock, Note, say
from kvmseries.data import results, schema
from kvmseries.source import catalog
from kvmseries.vm import run as guest

from . import build, driver, migration

FORMAT = paths.ROOT / "Documentation" / "soak-qemu.schema.yaml"
# How often each scenario is drawn.
WEIGHTS = {"plain": 6, "cancel": 4, "kill": 3, "stop": 2, "stop-cancel": 2, "cut": 4, "postcopy": 2, "postcopy-run": 2}
# Migrations in one boot of L1: what a boot that dies takes with it.
BATCH = 10
# Number of a migration, what it does; then its figures and what is wrong with it.
Chosen = tuple[int, driver.Setting]
Row = tuple[int, driver.Setting, driver.Figures, list[str]]


def draw(source: random.Random) -> driver.Setting:
    """A driver.Setting from a random.Random.

    Most of a guest's memory is its working set, and most migrations write more than the network carries: what is compared
    afterwards was written meanwhile, and the throttle has something to do.
    """
    scenario = source.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    size = source.choice((16384, 24576, 32768))
    # Bytes/s that send the working set once in so many seconds.
    bandwidth = round(size * 1024 / source.choice((2, 4)))
    auto_converge = int(source.random() < 0.9)
    # What is written in the time that a page takes to be sent; 0: as much as the guest can.
    ratio = source.choice((0, 1, 2, 4) if auto_converge else (0, 0.25, 0.5))
    return driver.Setting(
        ring=source.choice(migration.RINGS),
        vcpus=source.choice((1, 1, 2, 2, 4, 8)),
        working_set=size,
        static_set=source.choice((0, 1024, 4096)),
        least_memory=0,
        rate=round(ratio * bandwidth / 4096),
        bandwidth=bandwidth,
        downtime=source.choice((30, 100, 300)),
        limit=40,
        auto_converge=auto_converge,
        computed=source.choice((0, 1)),
        scenario=scenario,
        # Early, late, or between: most migrations take from 1 to 20 s.  Postcopy ends one that has not done much.
        after=round(100 * 10 ** source.uniform(1 if "postcopy" in scenario else 0, 2)),
        hold=source.choice((200, 1000, 5000)),
        cut=source.randrange(1, 4 * size * 1024),
    )


def plan(seed: object, count: int) -> list[Chosen]:
    """[(number, Setting)]: the same for the same seed, and the first ones for any count."""
    return [(number, draw(random.Random(f"{seed} {number}"))) for number in range(count)]


def judge(outcome: guest.Outcome) -> tuple[driver.Figures, list[str]]:
    """(figures or {}, list of complaints) of a guest.Outcome."""
    try:
        values = migration.found(outcome)
    except Fail as error:
        return {}, [str(error)]
    return values, driver.complaints(values)


def batch(runner: migration.Runner, label: str, chosen: Sequence[Chosen], note: Note | None = None) -> list[Row]:
    """Run settings [(number, Setting)] in one boot; returns [(number, Setting, figures, complaints)]."""
    died = ""
    try:
        outcomes = runner.run([(f"m{number}", label, setting) for number, setting in chosen], note)
    except Fail as error:
        # L1 died: what it printed before is kept, the first without an end is to blame.
        died, log = str(error), paths.out("runs", runner.name) / "job.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        outcomes, _ = guest.parse_job(text.replace("\r", ""))
    rows: list[Row] = [(*one, *judge(outcome)) for one, outcome in zip(chosen, outcomes)]
    return [*rows, (*chosen[min(len(outcomes), len(chosen) - 1)], {}, [died])] if died else rows


def run(
    series: catalog.Series,
    program: build.Program,
    count: int,
    seed: object,
    path: Path,
    accel: str = "tcg",
    hours: float | None = None,
    arch: str = migration.ARCH,
) -> list[str]:
    """Run `count` migrations of `program` (a build.Program); returns the complaints.

    path: the JSON, written after every batch; what it has of an interrupted run of the same patches and seed is
    not run again.  hours: stop after.
    """
    chosen, begin = plan(seed, count), time.monotonic()
    before, rows, reports = interrupted(path, series, seed, chosen, arch)
    chosen = chosen[len(rows) :]
    if rows:
        say(f"soak: goes on after {len(rows)} of {count} migrations")
    runner = migration.Runner({"series": program}, accel, name=f"soak-{series.name}-migration-{seed}", arch=arch)
    while chosen and (hours is None or time.monotonic() - begin < hours * 3600):
        part, chosen = chosen[:BATCH], chosen[BATCH:]
        done = batch(runner, "series", part)
        # After a boot that died the rest of its batch is still to do.
        ran = {number for number, *_ in done}
        chosen = [entry for entry in part if entry[0] not in ran] + chosen
        rows += done
        for number, setting, _, wrong in done:
            for line in wrong:
                say(f"migration {number} ({setting.scenario}): {line}")
        seconds = before + round(time.monotonic() - begin)
        save(path, series, seed, rows, runner.version, seconds, arch, reports + runner.reports)
        say(f"soak: {len(rows)} of {count} migrations ({clock(seconds)})")
    runner.close()
    wrong = [f"migration {number} ({setting.scenario}): {line}" for number, setting, _, lines in rows for line in lines]
    return [*wrong, *(f"L1's kernel reported: {line}" for line in reports + runner.reports)]


def interrupted(
    path: Path, series: catalog.Series, seed: object, chosen: Sequence[Chosen], arch: str = migration.ARCH
) -> tuple[int, list[Row], list[str]]:
    """(seconds that it took, rows as of batch(), what L1's kernel reported) of the run that `path` holds, if it is one of the
    same patches, architecture, seed and host that did not come to the end of `chosen`, its plan(); else (0, [], []).  Raises
    Fail for a file of another kind."""
    other = "name another file with --json, or remove it"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0, [], []
    except ValueError:
        raise Fail(f"{path} is cut short, or not JSON: {other}") from None
    wrong = schema.wrong(data, FORMAT)
    if wrong:
        raise Fail(f"{path} is not a file of a soak of QEMU ({wrong}): {other}")
    # Files from before there was another architecture do not name it.
    made_of = [data["patches"], data["seed"], data.get("arch", migration.ARCH), _of_host(data["host"])]
    found = {row["number"]: (row["figures"], row["complaints"]) for row in data["migrations"]}
    broken_off = len(found) < len(chosen) and sorted(found) == list(range(len(found)))
    wanted = [series.patches_id(len(series.patches)), seed, arch, _of_host(results.host_info())]
    if made_of != wanted or not broken_off:
        return 0, [], []
    return data["seconds"], [(*entry, *found[entry[0]]) for entry in chosen[: len(found)]], data.get("reports", [])


def _of_host(host: Mapping[str, object]) -> list[object]:
    """What must be the same of a host, as of results.host_info(), where a run goes on."""
    return [host.get(key) for key in ("machine", "cpu", "cpus", "memory", "os", "kernel")]


def summary(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Counts over all migrations, by scenario: a dict of dicts."""
    names = ("run", "completed", "struck", "throttled", "pages_compared", "pages_written", "pages_lost", "complaints")
    found: dict[str, dict[str, int]] = {}
    for _, setting, values, wrong in rows:
        entry = found.setdefault(setting.scenario, dict.fromkeys(names, 0))
        entry["run"] += 1
        entry["throttled"] += values.get("throttle_steps", 0) > 0
        entry["pages_lost"] += sum(int(values.get(name, 0)) for name in ("pages_lost", "stale", "source_stale"))
        entry["complaints"] += len(wrong)
        # Pages written count during the migration that was compared, each once.
        compared = ("pages_compared", "pages_written") if "pages_compared" in values else ()
        for name in ("completed", "struck", *compared):
            entry[name] += int(values.get(name, 0))
    return found


def save(
    path: Path,
    series: catalog.Series,
    seed: object,
    rows: Sequence[Row],
    version: str,
    seconds: int,
    arch: str = migration.ARCH,
    reports: Sequence[str] = (),
) -> None:
    """Write the results, whole or not at all.  reports: lines of L1's kernel."""
    data = {
        "schema": 1,
        "series": series.name,
        "patches": series.patches_id(len(series.patches)),
        "arch": arch,
        "seed": seed,
        "seconds": seconds,
        "host": results.host_info(kernels={"L1": version}),
        "summary": summary(rows),
        "reports": list(reports),
        "migrations": [
            {"number": number, "setting": " ".join(setting.words()), "complaints": wrong, "figures": values}
            for number, setting, values, wrong in rows
        ],
    }
    files.write(path, files.lines(data, "migrations"))
