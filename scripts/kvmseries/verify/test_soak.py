"""What a soak runs next, how a part goes, and what is left of it whatever happens."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from kvmseries.base import paths
from kvmseries.base.errors import Fail
from kvmseries.conftest import below, committed, replaced, RUN_JOB, snapshot, started, write
from kvmseries.kernel import build, mutants
from kvmseries.source import catalog, trees
from kvmseries.verify import soak
from kvmseries.verify.soak import Configuration

SOAK = """\
mini:
  configurations:
    vhe: {arch: arm64}
    nvhe: {arch: arm64, cpu: cortex-a72, params: [a=1]}
  debug: [delays]
  parts:
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


SOURCE = {"arm64": "a1", "x86_64": "b1"}
NAMES = ["one", "other"]
KEYS = yaml.safe_load(soak.FILE.read_text(encoding="utf-8"))["$defs"]["part"]["properties"]


def part(**others):
    """A part that went well."""
    plain = {"string": "x", "array": [], "object": {}, "number": 0.0, None: ""}
    return {
        **{key: plain[form.get("type")] for key, form in KEYS.items()},
        "arch": "arm64",
        "source": "a1",
        "configuration": "one",
        "outcome": "ok",
        "seconds": 360.0,
        **others,
    }


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
    counts = data["sum"]["configurations"]["nvhe"]["counts"]
    assert counts == {"kvm.stage2_ages_done": 160, "kvm.stage2_races_lost": 12, "vms": 1}
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


def test_what_dies_at_its_begin_does_not_keep_the_others_from_their_turn():
    one, other = Configuration("one", "arm64"), Configuration("other", "arm64")
    long = part(configuration="one", part="a", seconds=500.0)
    assert soak.choose([long], [one, other], ["a", "b"]) == (other, "a")
    dead = [part(configuration="other", part="a", seconds=0.0)] * 9
    assert soak.choose([long, *dead], [one, other], ["a", "b"]) == (one, "b")


def test_another_source_is_kept_and_begins_anew(small, qemu, mini):
    qemu(PRINTS + RUN_JOB)
    run, path = small
    first = run(hours=6 / 3600)
    replaced(mini.patches[2], "+int third;", "+int other;")
    second = run(hours=2 / 3600)
    assert len(first) == 3 and len(second) == 1 and second[0]["source"] != first[0]["source"]
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["sum"]["parts"] == 1 and data["sum"]["parts_of_another_source"] == 3
    assert data["parts"] == first + second


def test_a_part_that_fails_stops_nothing(small, qemu, series):
    qemu(PRINTS.replace("	[", "	case $1 in *alpha*) return 1 ;; esac\n	[") + RUN_JOB)
    done = small[0]()
    assert [one["outcome"] for one in done] == ["failed"] * 4
    assert done[2]["complaints"] == ["1-alpha_test: failed with status 1"]
    for one in done:
        assert (paths.out(one["log"]) / "job.log").exists() and (paths.out(one["log"]) / "console.log").exists()
    result = series("test", "mini", "--soak", "0.002")
    assert result.status == 1
    why = "series: error: 3 of 3 parts failed, the first: functional on vhe: alpha_test: failed with status 1"
    assert why in result.err


@pytest.mark.parametrize(
    "prints, complaint",
    [
        ("return 4", "1-alpha_test: skipped"),
        ("echo '# metric get_while_writing_times/1 0 count'", "1-alpha_test: no harvest of -H fell into the writing"),
    ],
)
def test_a_stress_that_shows_nothing_has_failed(small, qemu, prints, complaint):
    qemu(f"prints() {{ case $2 in -t) {prints} ;; *) return 4 ;; esac; }}\n" + RUN_JOB)
    done = small[0]()
    assert [one["outcome"] for one in done] == ["ok", "ok", "failed", "failed"]
    assert done[2]["complaints"][0] == complaint


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
    assert ran(soak.load(path, "mini")) == ["vhe functional"]
    assert ran(run()) == ["vhe functional", "nvhe functional", "vhe races", "nvhe races"]


def test_sigterm_interrupts(tmp_path):
    """As __main__.py has it: the status is 130, nothing is said but one line."""
    code = (
        "import os, signal, sys, types; from kvmseries.verify import soak\n"
        "import runpy\n"
        "soak.load = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
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
    assert done.stderr == "series: interrupted; what was built is kept\n"


def test_the_command(small, qemu, series, refused, tmp_path):
    qemu(PRINTS + RUN_JOB)
    result = series("test", "mini", "--soak", "0.002")
    assert result.status == 0 and "0.00 hours in 3 parts" in result.err
    assert len(soak.load(paths.out("results/soak-mini.json"), "mini")) == 3
    own = tmp_path / "own.json"
    assert series("test", "mini", "--soak", "0.0001", "--json", own, "--only", "nvhe").status == 0
    assert ran(soak.load(own, "mini")) == ["nvhe functional"]
    line = "--only arm32: soak.yaml has vhe, nvhe, and the parts functional, races"
    assert refused("test", "mini", "--soak", "1", "--only", "arm32") == line
    assert refused("test", "mini", "--soak", "1", "--arch", "arm64").startswith("--soak excludes --arch: ")
    # The files of others, before any work.
    paths.remove(paths.out("trees"))
    write(own, '{"schema": 1, "rounds": []}')
    line = f"{own} has schema 1, this tool adds to 2: "
    assert refused("test", "mini", "--soak", "1", "--json", own).startswith(line)
    assert not paths.out("trees").exists()


@pytest.mark.parametrize("name", ["v5.10", "v7.3"])
def test_the_plan_of_the_series(name):
    """soak.yaml as it is: every script and patch is there, and every architecture has commands."""
    found = soak.plan(catalog.load(name))
    assert found.configurations and all(trees.on_top(catalog.load(name), patch).exists() for patch in found.debug)
    for commands in found.parts.values():
        for arch in ("arm64", "x86_64") if commands else ():
            assert [entry for entry in commands if entry.get("arch", arch) == arch]
        scripts = [entry["script"].split()[0] for entry in commands if entry.get("script")]
        assert all((paths.TESTS / "guest" / script).exists() for script in scripts)


def test_a_command_that_cannot_run_on_a_configuration_is_left_out_there(small, mini):
    text = SOAK.replace("alpha_test -t 9, seconds: 9", "alpha_test, seconds: 9, unless: {cortex-a72: none}")
    write(paths.TESTS / "soak.yaml", text)
    one = soak.Soak(mini)
    programs = [
        [name for name, _, _ in one._commands(configuration, "races", ())[0]]
        for configuration in one.plan.configurations
    ]
    assert programs == [["1-alpha_test", "2-beta_test"], ["1-beta_test"]]


@pytest.mark.parametrize(
    "old, new, why",
    [
        ('data-race in timer"', 'data-race in (timer"', "mini.known[0].report: 'data-race in (timer'"),
        ("seconds: 9}", "second: 9}", "'second' was unexpected"),
        ("alpha_test -t 9, seconds: 9", "alpha_test, seconds: 0", "mini.parts.races[0].seconds: 0 is less than"),
        ("mini:", "maxi:", "soak.yaml says nothing of mini"),
    ],
)
def test_a_plan_of_another_form(small, mini, old, new, why):
    text = SOAK.replace(old, new)
    assert text != SOAK
    write(paths.TESTS / "soak.yaml", text)
    with pytest.raises(Fail, match=re.escape(why)):
        soak.plan(mini)


def _sums(hours, parts, wrong, **counts):
    """What parts add up to, of which as many failed as have reports and known reports."""
    return {
        **{"hours": hours, "parts": parts, "counts": counts},
        **dict.fromkeys(("failed", "reports", "known_reports"), wrong),
    }


def test_parts_of_one_source_add_up(tmp_path):
    path = tmp_path / "new/soak.json"
    added = [
        part(counts={"vms": 2, "stops": 1}),
        part(configuration="other", seconds=720.5, counts={"vms": 5}),
        part(outcome="failed", reports=["BUG: x"], known=["BUG: y"]),
        part(source="a0", seconds=9999.0, outcome="failed"),
        part(arch="x86_64", source="b1"),
        part(arch="x86_64", source="a1"),
    ]
    for number, one in enumerate(added, 1):
        assert len(soak.append(path, "s", SOURCE, NAMES, one)) == number
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["schema"], data["series"], data["source"], data["parts"]) == (2, "s", SOURCE, added)
    configurations = data["sum"].pop("configurations")
    assert data["sum"] == {**_sums(0.5, 4, 1, stops=1, vms=7), "parts_of_another_source": 2}
    assert list(configurations) == NAMES and list(data["sum"]["counts"]) == ["stops", "vms"]
    assert configurations["other"] == _sums(0.2, 1, 0, vms=5)
    assert soak.load(path, "s") == added
    assert below(path.parent) == ["soak.json"]


FILE = {"schema": 2, "series": "s", "source": SOURCE, "sum": {}, "parts": [part()]}
WHOLE = json.dumps(FILE)


def without(entry, key):
    return {name: value for name, value in entry.items() if name != key}


def with_part(**others):
    return json.dumps({**FILE, "parts": [part(), part(**others)]})


@pytest.mark.parametrize(
    "text, line",
    [
        (b"\xff\xfe", "is cut short, or not JSON"),
        (WHOLE[:-9], "is cut short, or not JSON"),
        ("[" * 99999, "is cut short"),
        ("[]", "is not a file of a soak"),
        ("{}", "is not a file of a soak"),
        (WHOLE.replace('"s"', '"t"'), "is not the file of a soak of s"),
        *((json.dumps(without(FILE, key)), f": '{key}' is a required property") for key in ("source", "sum", "parts")),
        (json.dumps({**FILE, "parts": {}}), ": parts: {} is not of type 'array'"),
        (json.dumps({**FILE, "parts": [1]}), ": parts[0]: 1 is not of type 'object'"),
        (WHOLE.replace('"when"', '"at"'), ": parts[0]: Additional properties are not allowed ('at' was unexpected)"),
        *(
            (json.dumps({**FILE, "parts": [without(part(), key)]}), f": parts[0]: '{key}' is a required property")
            for key in KEYS
        ),
        *((with_part(**{key: True}), f": parts[1].{key}: True is not ") for key in KEYS),
        (with_part(outcome="fine"), ": parts[1].outcome: 'fine' is not one of ['ok', 'failed']"),
        (with_part(reports=[1]), ": parts[1].reports[0]: 1 is not of type 'string'"),
        (with_part(counts={"vms": 0.5}), ": parts[1].counts.vms: 0.5 is not of type 'integer'"),
        (WHOLE.replace("360.0", "-1"), ": parts[0].seconds: -1 is less than the minimum of 0"),
        (WHOLE.replace("360.0", "NaN"), ": parts[0].seconds: nan is not of type 'number'"),
    ],
)
def test_what_is_no_file_of_a_soak_is_refused_and_left_alone(tmp_path, text, line):
    path = tmp_path / "soak.json"
    text = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(text)
    with pytest.raises(Fail) as caught:
        soak.append(path, "s", SOURCE, NAMES, part())
    assert str(caught.value).startswith(str(path)) and line in str(caught.value)
    assert str(caught.value).endswith(": name another file with --json, or remove it")
    assert path.read_bytes() == text and below(tmp_path / "out") == ["locks", "locks/soak-soak.json"]


def _many(path):
    for _ in range(20):
        soak.append(path, "s", SOURCE, NAMES, part())


def test_two_runs_add_to_one_file(tmp_path):
    path = tmp_path / "soak.json"
    for run in started(_many, (path,), (path,)):
        run.join()
    assert len(soak.load(path, "s")) == 40


@pytest.mark.parametrize("path", committed("soak-v*.json"), ids=lambda path: path.name)
def test_every_committed_file_is_readable(path):
    assert soak.load(path, path.stem[len("soak-") :])


# Counts from what the tests print, as they print it.

PRINTED = """\
4 vCPUs, 8 MiB of anonymous_thp, 1000000 of everything within 80 s, seed 3
Helper pageout is off: no swap
Dirty log: get
80.1 s, 123456 accesses by vCPUs, 7890 exits, 1 by EFAULT, 2 by MMIO
Verified with the vCPUs stopped: 200 times, 5000 words, 4000 writes in the dirty log of 300 harvests
Verified by vCPUs: 70 words executed, 8 writes to the read-only memslot
Host: log 20 slots 3
KVM: stage2_blocks_split 50 stage2_races_lost 6
Dirty log: clear
80.1 s, 4 accesses by vCPUs, 10 exits, 1 by EFAULT, 2 by MMIO
Verified with the vCPUs stopped: 1 times, 2 words, 3 writes in the dirty log of 4 harvests
Host: log 1 slots 1
KVM: stage2_blocks_split 1 stage2_races_lost 1
Walks that age: lost 9
Walks that age: zapped 8
Faults that undo: block 7
Tables of stage 2: 4 before, 5 after
Storm: 60.0 s, 99 accesses by vCPUs, 5 pages verified by the host
Iteration 1 found after aging, vCPUs running: 12 young, 3 idle, 0 not tracked, 0 swapped out
Iteration 1 false idle after flush: 0 of 64 pages touched; 1 young, 2 idle, 3 young but not touched
Verified by the host: 64 pages
Pages swapped out: 5, in: 6
Total bits checked: dirty (100), clear (2000), track_next (3)
KVM: no counters
all is well 5
"""


# Name and count.
COUNTED = """\
vms 2  accesses 123559  exits 7900  stops 201  words_verified 5002  writes_verified_in_log 4003  harvests 304
words_executed 70  writes_to_readonly 8  host.log 21  host.slots 4
kvm.stage2_blocks_split 51  kvm.stage2_races_lost 7
walks_that_age.lost 9  walks_that_age.zapped 8  faults_that_undo.block 7  tables_before 4  tables_after 5
pages_verified 69  pages_young.running 12  false_idle_after_flush 0  pages_touched 64  swapped_out 5  swapped_in 6
log_dirty_checked 100  log_clear_checked 2000
"""


def test_what_tests_print_is_counted():
    words = COUNTED.split()
    assert soak.counts(PRINTED) == dict(zip(words[::2], map(int, words[1::2])))
    assert soak.counts("KVM: no counters\nall is well 5\n") == {}
