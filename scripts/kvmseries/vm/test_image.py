import shutil
import subprocess

import pytest

from kvmseries.conftest import wanted, write
from kvmseries.vm import held, image


def test_a_job_is_a_script_of_runs():
    commands = [("one", 60, ["/tests/one", "-v", "2"]), ("two", 5.9, ["/tests/two"])]
    assert image.job(commands) == ". /job.sh\nrun one 60 /tests/one -v 2\nrun two 5 /tests/two\nfinish\n"
    # With what tells where the threads of a command that hangs are; with lines before the first command.
    assert image.job(commands[:1], stacks=True, before=["cd /", held.LINE]) == (
        '. /job.sh\ncd /\n/hold_vm || echo "@@ error hold_vm: no VM"\n. /stacks.sh\n'
        "watched one 60 /tests/one -v 2\nfinish\n"
    )


def test_what_is_watched_is_run(tmp_path):
    """The functions of stacks.sh in the host's shell, with a run() that sleeps; the watch is gone after it."""
    write(tmp_path / "job.sh", 'run() { printf "%s|" "$@"; sleep "${4:-0}"; return 3; }\n')
    shutil.copy2(image.STACKS, tmp_path)
    script = f"cd {tmp_path}; . ./job.sh; . ./stacks.sh; watched a 60 /x; echo $?; watched b 1 /x; watched c 13 /x 2"
    script = script.replace("/x", "x")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout.startswith("a|60|x|3\nb|1|x|c|13|x|2|")
    assert done.returncode == 3


@pytest.mark.parametrize("word", ["a b", "$(reboot)", "it's", "", "*", ";", "ä\n"])
def test_arguments_reach_the_command_as_they_are(tmp_path, word):
    """A shell runs the job: with a run() that prints what it gets."""
    write(tmp_path / "job.sh", 'run() { printf "%s|" "$@"; }\nfinish() { :; }\n')
    text = image.job([("a name", 1, ["/tests/x", word])])
    done = subprocess.run(
        ["sh", "-c", text.replace(". /job.sh", f". {tmp_path}/job.sh")], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"a name|1|/tests/x|{word}|"


def test_the_job_follows_the_base_image(tmp_path):
    wanted("cpio")
    (tmp_path / "base.cpio").write_bytes(b"base image, padded\n")
    target = image.with_job(tmp_path / "base.cpio", ". /job.sh\nfinish\n", tmp_path / "initrd.cpio")
    data = target.read_bytes()
    assert data.startswith(b"base image, padded\n070701")
    assert b"job\0" in data and b". /job.sh\nfinish\n" in data
    assert b"stacks.sh\0" in data and image.STACKS.read_bytes() in data
    assert b"hold_vm\0" not in data
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".tail", ".job", ".part")]
    write(tmp_path / "hold_vm-0123", "what holds a VM\n")
    data = image.with_job(tmp_path / "base.cpio", "finish\n", target, tmp_path / "hold_vm-0123").read_bytes()
    assert b"hold_vm\0" in data and b"what holds a VM\n" in data


def test_the_image_has_busybox_init_and_the_programs(tmp_path, monkeypatch):
    wanted("cpio")
    monkeypatch.setenv("SERIES_OUT", str(tmp_path))
    tests = tmp_path / "selftests/some-tests"
    for path in (tests / ".stamp", tests / "x86_64/a_test", tmp_path / "busybox-arm64"):
        write(path, f"text of {path.name}\n")
    monkeypatch.setattr(image.busybox, "path", lambda arch: tmp_path / f"busybox-{arch}")
    monkeypatch.setattr(image.selftests, "programs", lambda tests: ["x86_64/a_test"])
    target = image.base("arm64", tests)
    names = subprocess.run(
        ["cpio", "-t", "--quiet"], stdin=open(target, "rb"), capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"init", "job.sh", "bin/busybox", "tests/x86_64/a_test", "dev", "proc"} <= set(names)
    assert b"text of busybox-arm64\n" in target.read_bytes()
    written = target.stat().st_mtime_ns
    assert image.base("arm64", tests) == target and target.stat().st_mtime_ns == written
