"""Tests of the bench of live migrations: what is run, in which order, and the tables."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kvmseries.base.errors import Fail, Usage
from kvmseries.data import ids, results
from kvmseries.source import trees
from kvmseries.vm import run as guest
from migrate import driver, migration, soak
from migrate.test_driver import PRINTED

BASE = SimpleNamespace(label="base", count=0)
SERIES = SimpleNamespace(label="series", count=3)
BUILT = {"base": None, "series": None}


class FakeRunner:
    """Answers with PRINTED, for the series with fewer steps; notes what it is asked."""

    def __init__(self, programs, *_):
        self.events = {label: driver.EVENTS if label == "series" else ("kvm_dirty_ring_flush",) for label in programs}
        self.asked, self.version, self.reports, self.text = [], "7.3", [], dict.fromkeys(programs, PRINTED)

    def run(self, commands, note=None):
        self.asked.append(commands)
        return [guest.Outcome(name, 0, 1.0, self.text[label]) for name, label, _ in commands]

    def close(self):
        """Nothing was made."""


@pytest.fixture
def runner(monkeypatch):
    made = FakeRunner(BUILT)
    made.text["series"] = PRINTED.replace("throttle_steps 8", "throttle_steps 2").replace("_ms 50230", "_ms 10046")
    monkeypatch.setattr(migration, "Runner", lambda *_, **__: made)
    return made


def job(**others):
    series = SimpleNamespace(name="qemu-10.0", patches_id=lambda count: f"p{count}")
    settings = migration.settings((0, 1024), (1, 4), (2, 8))
    return migration.Job(series, (BASE, SERIES), settings, **{"samples": 2, **others})


@pytest.mark.parametrize("arch, config", [("arm64", "normal"), ("x86_64", "vmm")])
def test_run(runner, arch, config):
    taken = migration.run(job(arch=arch), built=BUILT)
    assert len(runner.asked) == 4
    assert not taken.complaints and taken.versions == {f"L1 {arch} {config}": "7.3"}
    runs = taken.runs
    labels = [label for _, label, _ in runner.asked[0]]
    assert labels == ["base", "series", "series", "base"] * 2
    # Every command has a name of its own: job.log is taken apart by them.
    assert len({name for name, _, _ in runner.asked[0]}) == len(runner.asked[0])
    for number, run in enumerate(runs):
        results.check(run, f"run {number}", "run")
        assert len(run["samples"]) == 2 and run["arch"] == arch
    steps = {(run["kernel"], *run["samples"]) for run in runs if run["metric"] == "throttle_steps"}
    assert steps == {("base", 8, 8), ("series", 2, 2)}


def test_lost_pages_are_a_complaint(runner):
    runner.text["series"] = PRINTED.replace("pages_lost 0", "pages_lost 7")
    taken = migration.run(job(samples=1), built=BUILT)
    assert len(taken.complaints) == 8 and "series, bitmap, 1 vCPUs, 2048 KiB: 7 pages differ" in taken.complaints[0]
    lost = {run["kernel"]: run["samples"] for run in taken.runs if run["metric"] == "pages_lost"}
    assert lost == {"base": [0], "series": [7]}


def test_results_say_what_they_are_of(qmini, qemu_mirror, program):
    """On a machine with KVM: of QEMU's sources and the tools alone.  The fake tree is one of each count."""
    points = (
        SimpleNamespace(label="base", count=0, series=qmini),
        SimpleNamespace(label="series", count=len(qmini.patches), series=qmini),
    )
    job_ = migration.Job(qmini, points, (), 1, accel="kvm")
    found = migration.made_of(job_)
    assert len(set(found["kernels"].values())) == 2 and set(found["kernels"]) == {"base", "series"}
    tree = trees.worktree(qmini, len(qmini.patches)).path
    assert found["kernels"]["series"] == ids.source(tree, "arm64", "qemu")
    assert found["tests"] == {
        "driver": ids.files(driver.FOLDER / "driver"),
        "guest": ids.files(driver.FOLDER / "guest"),
        "guest/arm64": ids.files(driver.FOLDER / "guest/arm64"),
    }
    other = migration.made_of(replace(job_, arch="x86_64"))
    assert other["tests"]["guest/x86_64"] == ids.files(driver.FOLDER / "guest/x86_64")
    assert other["tests"].keys() == {"driver", "guest", "guest/x86_64"}
    results.check({"ids": found, "rounds": 1, "command": "", "seconds": 1}, "here", "made")


def test_an_emulated_x86_machine_is_told_the_speed_of_its_tsc(monkeypatch):
    monkeypatch.setattr(driver, "ticks", lambda: 2500000)
    assert migration.machine("tcg", 4, "x86_64").params == ("tsc_early_khz=2500000", "tsc=reliable")
    assert migration.machine("kvm", 4, "x86_64").params == migration.machine("tcg", 4, "arm64").params == ()


@pytest.mark.parametrize(
    "status, printed, why",
    [
        (124, "steady 1\nspeed 5\n", "x hangs; it last printed: speed 5"),
        (1, "error hang: source\n", "x: hang: source"),
        (137, "speed 5\n", "x ended with status 137"),
    ],
)
def test_a_hang_is_a_failure(status, printed, why):
    with pytest.raises(Fail, match=f"^{why}$"):
        migration.found(guest.Outcome("x", status, 9, printed))


def test_rings():
    assert migration.rings("bitmap,1024") == (0, 1024)
    for text in ("1000", "1024,1024", "a", "131072", ""):
        with pytest.raises(Usage, match="--rings"):
            migration.rings(text)


def test_soak_draws_everything_and_the_same_for_the_same_seed():
    assert soak.plan("1", 50) == soak.plan("1", 80)[:50] != soak.plan("2", 50)
    drawn = [setting for _, setting in soak.plan("1", 300)]
    assert {one.scenario for one in drawn} == set(soak.WEIGHTS)
    assert {one.ring for one in drawn} == set(migration.RINGS)
    # Guests write most of their memory while it is sent.
    memory, written = sum(one.memory for one in drawn), sum(one.working_set for one in drawn) / 1024
    assert 0.6 < written / memory < 0.8
    # As much as the network carries, or more: what the throttle is for.
    busy = [one for one in drawn if one.auto_converge and (one.rate == 0 or one.rate * 4096 >= 0.99 * one.bandwidth)]
    assert len(busy) > 0.7 * len(drawn)


def test_soak_tells_how_many_of_the_compared_pages_were_written_and_where_the_throttle_acted():
    setting = driver.Setting()
    found = soak.summary(
        [
            (0, setting, {"pages_compared": 100, "pages_written": 60, "throttle_steps": 2}, []),
            (1, setting, {"pages_compared": 100, "pages_written": 30, "throttle_steps": 0}, []),
            # It did not complete: nothing was compared.
            (2, setting, {"pages_written": 500, "throttle_steps": 1}, []),
        ]
    )["plain"]
    assert (found["pages_compared"], found["pages_written"], found["throttled"], found["run"]) == (200, 90, 2, 3)


RUNNER = migration.Runner
QEMU = SimpleNamespace(name="qemu-10.0", patches=(), patches_id=lambda _: "x")


@pytest.fixture
def calm(runner, monkeypatch, tmp_path):
    """The runner of soaks: as that of base; the JSON is to be soak.json."""
    monkeypatch.setenv("SERIES_OUT", str(tmp_path / "out"))
    runner.text["series"], runner.name = PRINTED, "soak-test"
    return runner


def test_soak_goes_on_after_a_boot_that_died(calm, tmp_path):
    log = tmp_path / "out/runs/soak-test/job.log"
    log.parent.mkdir(parents=True)
    done = "".join(f"@@ begin m{number}\n{PRINTED}@@ end m{number} rc=0 seconds=1.0\n" for number in (0, 1))
    log.write_text(f"{done}@@ begin m2\nspeed 5\n")
    real, died = calm.run, []

    def run(commands, note=None):
        if not died:
            died.append(commands)
            raise Fail("the guest's kernel panicked")
        return real(commands, note)

    calm.run = run
    wrong = soak.run(QEMU, None, 12, "1", tmp_path / "soak.json")
    assert len(wrong) == 1 and wrong[0].startswith("migration 2 (") and "panicked" in wrong[0]
    assert (tmp_path / "soak.json").read_text(encoding="utf-8").count('"setting"') == 12


def test_soak_goes_on_where_it_was_interrupted(calm, tmp_path, monkeypatch):
    path = tmp_path / "soak.json"
    soak.run(QEMU, None, 20, "1", path, hours=0)
    assert not calm.asked

    def asked(count, series=QEMU, seed="1", arch="arm64"):
        """Numbers of the migrations that a soak asks for."""
        calm.asked.clear()
        assert not soak.run(series, None, count, seed, path, arch=arch)
        return [int(name[1:]) for commands in calm.asked for name, _, _ in commands]

    for count, first in ((10, 0), (20, 10), (20, 0)):
        # What is complete is run anew.
        assert asked(count) == list(range(first, count))
        assert path.read_text(encoding="utf-8").count('"setting"') == count
    # Other patches, another seed, another architecture.
    for new, seed, arch in (("y", "1", "arm64"), ("x", "2", "arm64"), ("x", "1", "x86_64")):
        asked(10)
        other = SimpleNamespace(name="qemu-10.0", patches=(), patches_id=lambda _, new=new: new)
        assert len(asked(20, other, seed, arch)) == 20
    # Another host.
    asked(10)
    real = results.host_info
    monkeypatch.setattr(results, "host_info", lambda *words, **keys: {**real(*words, **keys), "cpus": 99})
    assert len(asked(20)) == 20


def test_what_the_kernel_below_reports_is_a_complaint_and_its_logs_are_kept(calm, monkeypatch, tmp_path):
    folder = tmp_path / "out/runs/soak"
    folder.mkdir(parents=True)
    (folder / "console.log").write_text("WARNING: at kvm_vcpu_load_debug", encoding="utf-8")
    reported = guest.Result([guest.Outcome("m0", 0, 1.0, PRINTED)], ["WARNING: at f"], "7.3", folder)
    monkeypatch.setattr(guest, "run", lambda *_: reported)
    real = object.__new__(RUNNER)
    real.accel, real.name, real.kernel, real.folder, real.reports = "tcg", "soak", True, folder, []
    real.machine = migration.machine("tcg", 4, "arm64")
    assert len(real.run([("m0", "series", driver.Setting())])) == 1 and real.reports == ["WARNING: at f"]
    (kept,) = (tmp_path / "out/reports").iterdir()
    assert kept.name.startswith("soak-m0-") and "load_debug" in (kept / "console.log").read_text(encoding="utf-8")

    calm.reports = real.reports
    path = tmp_path / "soak.json"
    assert soak.run(QEMU, None, 10, "1", path) == ["L1's kernel reported: WARNING: at f"]
    # An earlier part's report is kept.
    calm.reports = []
    assert soak.run(QEMU, None, 20, "1", path) == ["L1's kernel reported: WARNING: at f"]
    assert json.loads(path.read_text(encoding="utf-8"))["reports"] == ["WARNING: at f"]


@pytest.mark.parametrize(
    "text, line", [("[]", "is not a file of a soak of QEMU"), ('{"seed": 1}', "is not a file"), ("{", "is cut short")]
)
def test_soak_overwrites_no_file_of_another_kind(tmp_path, text, line):
    path = tmp_path / "soak.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Fail, match=line):
        soak.interrupted(path, QEMU, "1", [])
    assert path.read_text(encoding="utf-8") == text


SAMPLES = "sample 0.00 2000000 0 0 1\nsample 0.10 1500000 20 500000 2\nsample 0.20 0 30 2100000 4\n"


def test_migrations_are_recorded_over_time(runner, tmp_path):
    """From the driver's lines to the results file."""
    runner.text["series"] = runner.text["series"] + SAMPLES
    taken = migration.run(job(samples=1), built=BUILT)
    runs, traces = taken.runs, taken.traces
    assert len(traces) == 8 and {trace["kernel"] for trace in traces} == {"series"}
    assert traces[0]["rows"] == [[0.0, 2000000, 0, 0, 1], [0.1, 1500000, 20, 500000, 2], [0.2, 0, 30, 2100000, 4]]
    results.save(tmp_path / "x.json", {}, runs, {"ids": {}, "command": "", "seconds": 1}, traces)
    assert results.load(tmp_path / "x.json")["traces"] == traces


def test_a_second_migration_of_a_run_is_no_part_of_the_series():
    assert len(driver.samples(SAMPLES + SAMPLES)) == 3
    assert driver.samples(PRINTED) == []
    assert driver.parse(PRINTED + SAMPLES)["steady"] == 1
