"""The commands on a series of QEMU; test_build.py and test_functional.py have what is behind them."""

import json
import shutil
from pathlib import Path

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import edit, git, replaced
from kvmseries.source import catalog
from kvmseries.vm import machine
from migrate import build, check, migration, soak


@pytest.mark.parametrize(
    "words, wanted",
    [
        (("boot", "qmini"), "qmini is for QEMU: 'boot' is for kernels"),
        (("test", "qmini", "--trace", "x"), "--trace is for kernels"),
        (("bench", "qmini", "--here", "x", "--sensitivity"), "qmini is for QEMU: --here is for kernels"),
        (("test", "qmini", "--soak", "4", "--only", "x"), "--only is for the tests of QEMU"),
        (("test", "qmini", "--only", "x", "--only", "y"), "--only: give one NAME"),
        (("bench", "qmini", "--test", "vm_killed_test"), "bench knows the test migration, not 'vm_killed_test'"),
        (("bench", "qmini", "--rate", "-1"), "-1 is not in the range x>=0"),
        (("bench", "mini", "--rings=7", "--sensitivity"), "--rings is for series of QEMU"),
        (("test", "qmini", "--kernels", "base,mini:base"), "base,mini:base: mini is for linux, qmini for qemu"),
    ],
)
def test_what_is_not_for_qemu_or_not_for_kernels_is_refused(qmini, made, refused, words, wanted):
    shutil.copytree(made.patches / "mini", paths.PATCHES / "mini")
    assert wanted in refused(*words)


@pytest.mark.parametrize(
    "words, point", [(("--kernels", "base"), "base"), (("--kernels", "upto:1"), "upto-1"), ((), "series")]
)
def test_build_prints_the_programs_path(qmini, qemu_mirror, compilers, series, words, point):
    result = series("build", "qmini", *words)
    assert result.status == 0, result.err
    tree = paths.out("trees/qmini-10.0.13+ds-1", point)
    assert result.out.strip() == str(tree / "build-arm64/qemu-system-aarch64")
    assert "QEMU 10.0.13 for arm64" in result.err


def test_verify_is_fine_with_a_fine_series_and_with_a_base_alone(qmini, qemu_mirror, compilers, series):
    result = series("verify", "qmini")
    assert result.status == 0 and "qmini: 2 patches are fine" in result.err, result.err
    for file in qmini.path.glob("*.patch"):
        file.unlink()
    assert series("verify", "qmini").status == 0


def test_checkpatch_names_the_patch(qmini, qemu_mirror):
    replaced(qmini.patches[1], "+int second;", "+int second; /* BADSTYLE */")
    with pytest.raises(Fail, match="^checkpatch: 0002-.*WARNING: line over 80 characters"):
        check.checkpatch(qmini)


def test_patches_that_change_no_program_are_not_built(qmini, qemu_mirror, compilers, series, tmp_path):
    assert series("apply", "qmini", tmp_path / "own").status == 0
    edit(tmp_path / "own", "docs/devel.rst", "words", "more words")
    git(tmp_path / "own", "commit", "-q", "-a", "-m", "docs: Say more")
    assert series("export", "qmini", tmp_path / "own").status == 0
    assert check.builds(catalog.load("qmini"), "arm64", lambda text: None) == [1, 2]


@pytest.fixture(name="nothing_runs")
def _nothing_runs(monkeypatch):
    """Calls of what bench and soak come down to, which do nothing."""
    made = []
    monkeypatch.setattr(machine, "check", lambda one: made.append(("check", one.accel, one.arch)))
    monkeypatch.setattr(build, "program", lambda *words: made.append(("program", words[1:])) or "the program")
    monkeypatch.setattr(migration, "run", lambda job: made.append(("run", job)) or migration.Taken())
    monkeypatch.setattr(
        migration, "made_of", lambda job: {"kernels": {point.label: f"{point.count:016x}" for point in job.points}}
    )
    monkeypatch.setattr(soak, "run", lambda *words: made.append(("soak", words[1:])) or [])
    return made


@pytest.mark.parametrize(
    "words, seed, file, hours, arch",
    [
        (("1", "--seed", "x"), "x", "results/soak-qmini-x.json", 1.0, "arm64"),
        (("4", "--arch", "x86_64"), "1", "results/soak-qmini-x86_64.json", 4, "x86_64"),
        (("4", "--json", "my-file.json"), "1", "", 4, "arm64"),
    ],
)
def test_soak_runs_the_whole_series(qmini, series, nothing_runs, words, seed, file, hours, arch):
    result = series("test", "qmini", "--repeat", "7", "--soak", *words)
    assert result.status == 0, result.err
    path = paths.out(file) if file else Path("my-file.json")
    assert nothing_runs == [
        ("check", "tcg", arch),
        ("program", (2, arch)),
        ("soak", ("the program", 7, seed, path, "tcg", hours, arch)),
    ]


def test_a_seed_is_part_of_a_file_name(qmini, refused, nothing_runs):
    assert "--seed 'a/b'" in refused("test", "qmini", "--soak", "4", "--seed", "a/b")


def test_bench_takes_turns_for_all_combinations(qmini, series, nothing_runs, tmp_path):
    words = "--rings bitmap,1024 --vcpus 1,4 --working-set 2 --rate 0 --bandwidth 2.5 --limit 9".split()
    result = series("bench", "qmini", *words, "--json", str(tmp_path / "x.json"))
    assert result.status == 0, result.err
    _, (_, job) = nothing_runs
    assert [point.label for point in job.points] == ["base", "series"] and job.samples == 2
    assert {(one.ring, one.vcpus) for one in job.settings} == {(0, 1), (1024, 1), (0, 4), (1024, 4)}
    assert {(one.working_set, one.rate, one.bandwidth, one.limit) for one in job.settings} == {(2048, 0, 2500000, 9)}
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["made"]["ids"] == {
        "kernels": {"base": "0" * 16, "series": f"{2:016x}"}
    }


@pytest.mark.parametrize("words, arch", [((), "arm64"), (("--arch", "x86_64"), "x86_64")])
def test_bench_migrates_guests_of_an_architecture(qmini, series, nothing_runs, words, arch):
    assert series("bench", "qmini", *words).status == 0
    assert nothing_runs[0] == ("check", "tcg", arch) and nothing_runs[1][1].arch == arch
    assert paths.out(f"results/qmini-{arch}-migration.json").exists()
