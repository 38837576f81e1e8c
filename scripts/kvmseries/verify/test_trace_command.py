"""scripts/series test --trace: in guests that are shell scripts, with traces that are made here."""

import pytest

from kvmseries.base import paths
from kvmseries.conftest import RUN_JOB, write
from kvmseries.vm import emulator
from stage2_trace import stage2trace
from vtime import vtime

HEAD = "stage2-trace 1\nroot 0 1000 1 1 40 12\nbegin 0 a kvm_vm_ioctl 0 0\n"
STORE = "store 0 a 1000 3 201000 800000400007df 8000004000075f stage2_walker\n"
FLUSH = "dsb 0 a ishst\ntlbi 0 a vmalls12e1is 1 -\ndsb 0 a ish\n"
END = "end 0 a kvm_vm_ioctl 0\n"
GOOD, BAD, EMPTY = (HEAD + lines + END + "done 9\n" for lines in (STORE + FLUSH, STORE, FLUSH))
TEST = ("--", "/tests/alpha_test", "-t", "6")


@pytest.fixture(name="guest")
def _guest(mini, built, program, qemu, monkeypatch):
    """guest(trace, job): guests leave this trace, and run their job as `job` says."""
    program("aarch64-linux-gnu-gcc", "echo gcc\n")
    monkeypatch.setattr(vtime, "qemu", lambda arch: emulator.Qemu("qemu-system-aarch64"))

    def give(trace, job="prints() { echo well; }\n"):
        def plugin(_kernel, folder):
            write(folder / "trace", trace)
            return []

        qemu(job + RUN_JOB)
        monkeypatch.setattr(stage2trace, "plugin", plugin)

    return give


def test_a_trace_that_keeps_the_rules(guest, series, tmp_path):
    guest(GOOD)
    result = series("test", "mini", "--trace", tmp_path / "kept", *TEST)
    assert result.status == 0, result
    assert result.out == "well\n" and "1 protected, 1 stores, 1 tlbis" in result.err
    assert (tmp_path / "kept").read_text(encoding="utf-8") == GOOD
    # It may be some GB.
    assert (paths.out("runs", "trace", "qemu.sh")).exists() and not paths.out("runs", "trace", "trace").exists()
    assert series("test", "mini", "--trace", tmp_path / "kept").status == 0


def test_a_mistake_is_printed_and_fails(guest, series, tmp_path):
    guest(BAD)
    result = series("test", "mini", "--trace", tmp_path / "kept", *TEST)
    assert result.status == 1 and "invalidate: line 5: kvm_vm_ioctl ended" in result.err
    assert result.err.endswith("series: error: 1 rules of TLB maintenance are broken\n")


@pytest.mark.parametrize(
    "trace, job, why",
    [
        (EMPTY, "prints() { :; }\n", "the trace has shown nothing"),
        (GOOD[:-7], "prints() { :; }\n", "breaks off after line 8"),
        (GOOD, "prints() { return 3; }\n", "the command ended with status 3"),
    ],
)
def test_a_run_that_shows_nothing_fails(guest, series, tmp_path, trace, job, why):
    guest(trace, job)
    result = series("test", "mini", "--trace", tmp_path / "kept", *TEST)
    assert result.status == 1 and why in result.err.splitlines()[-1]


def test_what_is_refused(mini, refused, kernel, tmp_path):
    for words in ("--kernels", "base"), ("--tree", kernel):
        line = refused("test", "mini", "--trace", "x", *words)
        assert line == f"--trace x without -- COMMAND checks a trace that is there: no {words[0]}"
    assert "--trace excludes --accel" in refused("test", "mini", "--trace", "x", "--accel", "kvm", *TEST)
    assert refused("test", "mini", *TEST) == "COMMAND needs --trace"
    assert "give one kernel" in refused("test", "mini", "--trace", tmp_path / "x", "--kernels", "base,series", *TEST)
    assert str(tmp_path / "none") in refused("test", "mini", "--trace", tmp_path / "none")
    write(tmp_path / "other", "no trace\n")
    assert "this is no trace of stage 2" in refused("test", "mini", "--trace", tmp_path / "other")
