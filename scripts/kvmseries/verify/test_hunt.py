"""A hunt in guests that are shell scripts: counts add up over boots and runs of the tool, and mix with no others."""

import dataclasses
import json

import pytest

from kvmseries.base import paths
from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import RUN_JOB
from kvmseries.data import ids
from kvmseries.guest import run as guest
from kvmseries.kernel import selftests
from kvmseries.verify import hunt

HUNT = hunt.Hunt("arm64", "max", (), ("/tests/alpha_test", "-t", "6"), 60)
WELL = "prints() { :; }\n" + RUN_JOB
# Each second run of the series fails.
SOME = (
    """\
prints() {
	case $job in *-base*) return ;; esac
	echo >> "$job.count"
	[ $(($(wc -l < "$job.count") % 2)) = 1 ] && return
	echo "vCPU $$: unexpected exit, exit_reason=SHUTDOWN"; return 254
}
"""
    + RUN_JOB
)


@pytest.fixture(name="run")
def _run(mini, built, program, tmp_path, monkeypatch):
    """run(runs, hunt): the kernels' counts of it, in boots of 2 runs."""
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    monkeypatch.setattr(ids, "today", lambda label, series, what: f"{series} {label} {what}")
    return lambda runs, what=HUNT: hunt.run(mini, what, "base,series", runs, 2, tmp_path / "hunt.json")["kernels"]


@pytest.mark.parametrize(
    "name, words",
    [("alpha_test", "is no path in the guest: give /tests/alpha_test"), ("/tests/none", "there is no /tests/none")],
)
def test_a_program_that_the_guest_has_not_is_refused(run, tmp_path, name, words):
    with pytest.raises(Usage, match=words):
        run(2, hunt.Hunt("arm64", "max", (), (name,), 60))
    assert not (tmp_path / "hunt.json").exists()


def test_kernels_take_turns_and_runs_add_up(run, qemu, tmp_path):
    qemu(WELL)
    found = run(3)
    assert {label: (counts["runs"], counts["boots"], counts["failures"]) for label, counts in found.items()} == {
        "base": (3, 2, {}),
        "series": (3, 2, {}),
    }
    assert json.loads((tmp_path / "hunt.json").read_text(encoding="utf-8"))["kernels"] == found
    # Goes on, and does no more than it must.
    assert run(4)["base"]["runs"] == 4 and run(4)["series"]["boots"] == 3


def test_failures_are_counted_by_their_words_and_their_logs_kept(run, qemu):
    qemu(SOME)
    found = run(4)
    assert not found["base"]["failures"]
    assert found["series"]["failures"] == {"status 254: vCPU N: unexpected exit, exit_reason=SHUTDOWN": 2}
    assert found["series"]["logs"] == ["hunt/hunt-series-1", "hunt/hunt-series-2"]
    assert (paths.out("hunt", "hunt-series-1") / "job.log").exists()


def test_a_guest_that_dies_is_a_run_that_failed(run, qemu):
    qemu("say '@@ begin run-1'; say '@@ end run-1 rc=0 seconds=1.00'; say '@@ begin run-2'\n")
    found = run(2)["series"]
    assert (found["runs"], found["failures"]) == (2, {"the guest ended before its job during run-N": 1})


def test_a_report_of_the_kernel_is_counted(run, qemu):
    qemu(WELL + "echo '[ 1.0] WARNING: CPU: 1 PID: 71 at f+0x1c/0x30'\n")
    assert run(2)["base"]["failures"] == {"the kernel reported: WARNING: CPU: N PID: N at f+N/N": 1}


@pytest.mark.parametrize(
    "status, output, words",
    [
        (124, "", "its time was up"),
        (137, "x\n", "its time was up"),
        (139, "", "status 139: nothing printed"),
        (
            254,
            "==== Test Assertion Failure ====\n  change_pte_test.c:541: false\n  vCPU 1: page 3 (block 0), word 4 at 0x1f\n",
            "status 254: vCPU N: page N (block N), word N at N",
        ),
        (1, "one\ntwo 2\n", "status 1: two N"),
    ],
)
def test_a_failure_has_words_without_numbers(status, output, words):
    assert hunt.why(guest.Outcome("run-1", status, 1, output)) == words


@pytest.mark.parametrize(
    "text, reason",
    [
        ("{", "is no file of a hunt: remove it"),
        ("[]", "is no file of a hunt .*is not of type 'object'"),
        ('{"schema": 1}', "is no file of a hunt .*is a required property"),
    ],
)
def test_another_file_is_refused_before_a_build_and_stays(run, tmp_path, monkeypatch, text, reason):
    (tmp_path / "hunt.json").write_text(text, encoding="utf-8")
    monkeypatch.setattr(selftests, "build", None)
    with pytest.raises(Fail, match=reason):
        run(2)
    assert (tmp_path / "hunt.json").read_text(encoding="utf-8") == text


def test_another_hunt_and_other_sources_do_not_mix(run, qemu, monkeypatch):
    qemu(WELL)
    run(2)
    for other in (hunt.Hunt("arm64", "max", (), ("/tests/alpha_test",), 60), dataclasses.replace(HUNT, all_cpus=True)):
        with pytest.raises(Fail, match="is of another hunt, or of other sources: give another file"):
            run(2, other)
    monkeypatch.setattr(ids, "today", lambda label, series, what: "other")
    with pytest.raises(Fail, match="of other sources"):
        run(2)


def test_the_verb_needs_a_command_and_a_file(patches, refused):
    assert "hunt needs a command" in refused("hunt", "mini", "--json", "x.json")
    assert "--json" in refused("hunt", "mini", "--", "/tests/alpha_test")


def test_all_cpus_are_not_for_a_machine_that_has_them_anyway(patches, refused, tmp_path):
    line = ("hunt", "mini", "--arch", "arm64", "--all-cpus", "--json", str(tmp_path / "x.json"))
    assert "--all-cpus is for emulated x86_64" in refused(*line, "--", "/tests/alpha_test")


def test_what_the_committed_file_has_found():
    data = json.loads((paths.ROOT / "Documentation/results/hunt-v5.10-x86_64-stress.json").read_text(encoding="utf-8"))
    base, series = (data["kernels"][label] for label in ("base", "series"))
    assert base["runs"] == series["runs"] == 200 and not series["failures"]
    ((why, count),) = base["failures"].items()
    assert "exit_reason=SHUTDOWN" in why and count == 3
