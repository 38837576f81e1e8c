"""What a soak runs next, how a part goes, and what is left of it whatever happens."""

import json
import os
import re
import subprocess
import sys

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import RUN_JOB, snapshot, write
from kvmseries.kernel import build, mutants
from kvmseries.source import catalog, trees
from kvmseries.verify import soak, soakfile
from kvmseries.verify.soak import Configuration
from kvmseries.verify.test_soakfile import part

SOAK = """\
mini:
  configurations:
    vhe: {arch: arm64}
    nvhe: {arch: arm64, cpu: cortex-a72, params: [a=1]}
  debug: [delays]
  parts:
    functional: []
    races:
      - {args: alpha_test -t 9, seconds: 9}
      - {args: beta_test, seconds: 9, arch: x86_64}
      - {args: beta_test, seconds: 1, script: wrap.sh 5000}
  known:
    - {report: "data-race in timer", reason: base has it}
"""
PRINTS = """\
prints() {
	echo 'KVM: stage2_races_lost 3 stage2_ages_done 40'
	[ "$2" != -t ] || echo 'Dirty log: get'
}
"""


@pytest.fixture(name="small")
def _small(mini, built, program, tmp_path, monkeypatch, mirror):
    """soak.run() of the series "mini" on a fake guest: two configurations of two parts, each 2.5 s."""
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    write(tmp_path / "data/soak.yaml", SOAK)
    write(tmp_path / "data/tests.yaml", "default_timeout: 9\n")
    write(tmp_path / "data/guest/wrap.sh", "shift; exec $@")
    monkeypatch.setattr(paths, "TESTS", tmp_path / "data")
    monkeypatch.setattr(soak.image, "GUEST", tmp_path / "data/guest")
    monkeypatch.setattr(soak.kconfig, "load", lambda *_: None)
    monkeypatch.setattr(soak.kconfig, "name", lambda configs: "+".join(configs) or "normal")
    monkeypatch.setattr(build, "in_tree", lambda *_args, **_keys: built.kernel)
    monkeypatch.setattr(mutants, "kernel", lambda *_args, **_keys: built.kernel)
    write(
        paths.PATCHES / "instruments/mini/delays.patch",
        "--- a/Makefile\n+++ b/Makefile\n@@ -1,2 +1,3 @@\n # SPDX\n+# delays\n VERSION = 5\n",
    )
    path = tmp_path / "soak.json"
    return lambda **words: soak.run(mini, path, **{"hours": 10 / 3600, **words}), path


def ran(parts):
    return [f"{one['configuration']} {one['part']}" for one in parts]


def test_parts_take_turns_and_add_up(small, qemu):
    qemu(PRINTS + RUN_JOB)
    run, path = small
    done = run()
    assert ran(done) == ["vhe functional", "nvhe functional", "vhe races", "nvhe races"]
    soak.verdict(done, path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["sum"]["hours"] == 0.003 and data["sum"]["parts"] == 4 and not data["sum"]["failed"]
    assert data["sum"]["configurations"]["nvhe"]["counts"] == {
        "kvm.stage2_ages_done": 160,
        "kvm.stage2_races_lost": 12,
        "vms": 1,
    }
    races = data["parts"][3]
    assert races["commands"] == ["/tests/alpha_test -t 9", "wrap.sh 5000 /tests/beta_test"]
    assert races["params"] == ["a=1"] and races["cpu"] == "cortex-a72" and races["seconds"] == 2.5
    assert list(races["debug"]) == ["delays"] and not data["parts"][0]["debug"]
    assert data["source"]["arm64"] == races["source"] != data["source"]["x86_64"]
    assert races["host"]["load"] >= 0 and races["host"]["machine"]
    assert races["qemu"] == "QEMU emulator version 0.0 (tests)"


def test_a_run_goes_on_with_what_has_run_least(small, qemu):
    qemu(PRINTS + RUN_JOB)
    run, path = small
    assert ran(run(hours=2 / 3600)) == ["vhe functional"]
    assert ran(run(hours=6 / 3600)) == ["vhe functional", "nvhe functional", "vhe races"]
    assert ran(run(hours=9 / 3600, only=["vhe"]))[3:] == ["vhe functional"]
    before = snapshot(path.parent)[path.name]
    assert len(run(hours=9 / 3600)) == 4 and snapshot(path.parent)[path.name] == before
    assert ran(run(hours=13 / 3600, only=["vhe", "functional"]))[4:] == ["vhe functional"] * 2


def test_what_runs_next():
    one, other = Configuration("one", "arm64"), Configuration("other", "arm64")
    names = ["a", "b"]
    assert soak.choose([], [one, other], names) == (one, "a")
    long = part(configuration="one", part="a", seconds=500.0)
    assert soak.choose([long], [one, other], names) == (other, "a")
    assert soak.choose([long], [one], names) == (one, "b")
    # What dies at its begin does not keep the others from their turn.
    dead = [part(configuration="other", part="a", seconds=0.0)] * 9
    assert soak.choose([long, *dead], [one, other], names) == (one, "b")


def test_another_source_is_kept_and_begins_anew(small, qemu, mini):
    qemu(PRINTS + RUN_JOB)
    run, path = small
    first = run(hours=6 / 3600)
    patch = mini.patches[2]
    patch.write_text(patch.read_text(encoding="utf-8").replace("+int third;", "+int other;"), encoding="utf-8")
    second = run(hours=2 / 3600)
    assert len(first) == 3 and len(second) == 1 and second[0]["source"] != first[0]["source"]
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["sum"]["parts"] == 1 and data["sum"]["parts_of_another_source"] == 3
    assert data["parts"] == first + second


def test_a_part_that_fails_stops_nothing(small, qemu):
    qemu(PRINTS.replace("	[", "	case $1 in *alpha*) return 1 ;; esac\n	[") + RUN_JOB)
    run, path = small
    done = run()
    assert [one["outcome"] for one in done] == ["failed"] * 4
    assert done[2]["complaints"] == ["1-alpha_test: failed with status 1"]
    with pytest.raises(Fail, match="4 of 4 parts failed, the first: functional on vhe: alpha_test: failed with"):
        soak.verdict(done, path)
    for one in done:
        assert (paths.out(one["log"]) / "job.log").exists() and (paths.out(one["log"]) / "console.log").exists()


def test_a_part_that_harvested_nothing_while_the_guest_wrote_has_failed(small, qemu):
    line = "# metric get_while_writing_times/1 0 count"
    qemu(PRINTS.replace("\t[", f"\tcase $1 in *alpha*) echo '{line}' ;; esac\n\t[") + RUN_JOB)
    run, _ = small
    assert run()[2]["complaints"] == ["1-alpha_test: no harvest of -H fell into the writing"]


def test_a_guest_that_dies_is_a_part_that_failed(small, qemu):
    qemu(
        "prints() { case $1 in *beta*) echo '[ 1.0] Kernel panic - not syncing: x'; exit ;; esac; }\n"
        + RUN_JOB.replace('prints "$@" >> "$job"', 'prints "$@"')
    )
    done = small[0](hours=1 / 3600)
    assert done[0]["outcome"] == "failed" and done[0]["reports"] == ["Kernel panic - not syncing: x"]
    # Nobody's paths: `log` says where.
    assert done[0]["complaints"][:2] == [
        "the guest's kernel panicked during aarch64/beta_test: Kernel panic - not syncing: x",
        "2 of 2 commands did not come to their end",
    ]


def test_qemu_that_does_not_start_is_no_part(small, program):
    program("qemu-system-aarch64", "echo 'no such machine'; exit 1\n")
    program("cpio", 'touch "$7" 2>/dev/null; cat > /dev/null; for w; do last=$w; done; : > "$last"\n')
    with pytest.raises(Fail, match="QEMU failed: no such machine"):
        small[0]()
    assert not small[1].exists()


def test_reports_of_the_kernel(small, qemu):
    qemu(
        PRINTS + RUN_JOB + "echo '[ 1.0] BUG: KCSAN: data-race in timer / x'\n"
        "case $job in *nvhe*) echo '[ 2.0] WARNING: suspicious RCU usage' ;; esac\n"
    )
    done = small[0](hours=4 / 3600)
    assert [one["outcome"] for one in done] == ["ok", "failed"]
    assert done[0]["known"] == ["BUG: KCSAN: data-race in timer / x"] and not done[0]["reports"]
    assert done[1]["reports"] == ["WARNING: suspicious RCU usage"]
    assert done[1]["complaints"] == ["the kernel reported: WARNING: suspicious RCU usage"]


def test_a_stress_that_is_skipped_has_failed(small, qemu):
    qemu("prints() { return 4; }\n" + RUN_JOB)
    done = small[0]()
    assert [one["outcome"] for one in done] == ["ok", "ok", "failed", "failed"]
    assert done[2]["complaints"][0] == "1-alpha_test: skipped"


def test_an_interrupted_run_keeps_the_parts_that_are_done(small, qemu, monkeypatch):
    qemu(PRINTS + RUN_JOB)
    run, path = small
    real, calls = soak.guest.run, []

    def interrupted(*words, **keys):
        calls.append(words)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*words, **keys)

    monkeypatch.setattr(soak.guest, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert ran(soakfile.load(path, "mini")) == ["vhe functional"]
    assert ran(run()) == ["vhe functional", "nvhe functional", "vhe races", "nvhe races"]


def test_sigterm_interrupts(tmp_path):
    """As __main__.py has it: the status is 130, nothing is said but one line."""
    code = (
        "import os, signal, sys, types; from kvmseries.verify import soakfile\n"
        "import runpy\n"
        "soakfile.load = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.argv = ['series', 'test', 'v5.10', '--soak', '1']\n"
        "runpy.run_module('kvmseries', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=paths.ROOT / "scripts",
        check=False,
        text=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "SERIES_OUT": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr == "series: interrupted; repeat the command to go on where it stopped\n"


def test_the_files_of_others_are_refused_before_any_work(small, qemu, tmp_path):
    run, path = small
    for text, line in (
        (json.dumps({"schema": 1, "rounds": []}), "has schema 1, this tool adds to 2"),
        ('{"schema": 2, "parts": [', "is cut short, or not JSON"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(Fail, match=line):
            run()
        assert path.read_text(encoding="utf-8") == text
    assert not (tmp_path / "out/trees").exists()


def test_the_verb(small, qemu, series, refused, tmp_path):
    qemu(PRINTS + RUN_JOB)
    result = series("test", "mini", "--soak", "0.002")
    assert result.status == 0, result.err
    assert "0.00 hours in 3 parts" in result.err
    assert len(soakfile.load(paths.out("results/soak-mini.json"), "mini")) == 3
    own = tmp_path / "own.json"
    assert series("test", "mini", "--soak", "0.0001", "--json", own, "--only", "nvhe").status == 0
    assert ran(soakfile.load(own, "mini")) == ["nvhe functional"]
    assert (
        refused("test", "mini", "--soak", "1", "--only", "arm32")
        == "--only arm32: soak.yaml has vhe, nvhe, and the parts functional, races"
    )
    assert (
        refused("test", "mini", "--soak", "1", "--json", tmp_path) == f"--json {tmp_path} is a directory: name a file"
    )
    assert refused("test", "mini", "--soak", "1", "--arch", "arm64").startswith("--soak excludes --arch: ")


def test_a_failed_part_is_the_status(small, qemu, series):
    qemu("prints() { return 3; }\n" + RUN_JOB)
    result = series("test", "mini", "--soak", "0.0001")
    assert result.status == 1
    assert "series: error: 1 of 1 parts failed, the first: functional on vhe: aarch64/beta_test" in result.err


def test_a_series_without_a_plan(mini, monkeypatch, tmp_path):
    write(tmp_path / "data/soak.yaml", "# nothing\n")
    monkeypatch.setattr(paths, "TESTS", tmp_path / "data")
    with pytest.raises(Fail, match="soak.yaml says nothing of mini"):
        soak.plan(mini)


@pytest.mark.parametrize(
    "name, configurations",
    [
        ("v5.10", "arm64-vhe arm64-nvhe arm64-64k arm64-debug x86-default x86-tdp x86-shadow x86-default-debug"),
        ("v5.10", "x86-default-kcsan"),
        ("v7.3", "arm64-vhe arm64-nvhe arm64-64k arm64-protected arm64-nested arm64-debug arm64-kcsan"),
        ("v7.3", "x86-tdp x86-shadow x86-no-tdp-mmu"),
    ],
)
def test_the_plan_of_the_series(name, configurations):
    """soak.yaml as it is: every program, script and patch is there, every configuration can be."""
    found = soak.plan(catalog.load(name))
    assert {one.name for one in found.configurations} >= set(configurations.split())
    for patch in found.debug:
        assert trees.on_top(catalog.load(name), patch).exists()
    for arch in ("arm64", "x86_64"):
        for commands in found.parts.values():
            mine = [entry for entry in commands if entry.get("arch", arch) == arch]
            assert bool(mine) == bool(commands)
            for entry in mine:
                assert not entry.get("script") or (paths.TESTS / "guest" / entry["script"].split()[0]).exists()
                assert entry["seconds"] > 0


def test_a_command_that_cannot_run_on_a_configuration_is_left_out_there(small, mini):
    write(
        paths.TESTS / "soak.yaml",
        SOAK.replace("alpha_test -t 9, seconds: 9", "alpha_test, seconds: 9, unless: {cortex-a72: none}"),
    )
    one = soak.Soak(mini)
    programs = [
        [name for name, _, _ in one._commands(configuration, "races", ())[0]]
        for configuration in one.plan.configurations
    ]
    assert programs == [["1-alpha_test", "2-beta_test"], ["1-beta_test"]]


@pytest.mark.parametrize(
    "old, new, why",
    [
        (
            'report: "data-race in timer"',
            'report: "data-race in (timer"',
            "mini.known[0].report: 'data-race in (timer'",
        ),
        ("seconds: 9}", "second: 9}", "'second' was unexpected"),
        ("alpha_test -t 9, seconds: 9", "alpha_test, seconds: 0", "mini.parts.races[0].seconds: 0 is less than"),
    ],
)
def test_a_plan_of_another_form(small, mini, old, new, why):
    text = SOAK.replace(old, new)
    assert text != SOAK
    write(paths.TESTS / "soak.yaml", text)
    with pytest.raises(Fail, match=re.escape(why)):
        soak.plan(mini)
