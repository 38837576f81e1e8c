import shutil
import subprocess

import pytest

from kvmseries.conftest import write
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
