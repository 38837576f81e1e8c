"""Running other programs: output to a log file, failures as one line that says where to look."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import distro, paths
from .errors import Fail

_ERROR = re.compile(
    r"(does not look like|not recognized|[Uu]nexpected(ly| end)|error:|fatal:|undefined reference|No such file|cannot|\*\*\* )",
    re.I,
)


def need(program: str) -> None:
    """Raise Fail unless `program` can be run."""
    if not shutil.which(program):
        raise Fail(f"{program} is missing: {distro.how(program)}")


def reason(text: str) -> str:
    """The line of a program's output that tells best why it failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    full = [f"disk full: {line}" for line in lines if "No space left on device" in line]
    telling = [line[:200] for line in lines if _ERROR.search(line)]
    return [*full, *telling, *(line[:200] for line in lines[-1:]), "it said nothing"][0]


def _english(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment`, in which programs speak English.  LC_ALL decides that alone.  But ccache finds an object again only
    if LANG, LC_CTYPE and LC_MESSAGES are the same, too: so they are, whatever the user's are."""
    return {
        **{name: value for name, value in environment.items() if name not in ("LC_CTYPE", "LC_MESSAGES")},
        "LC_ALL": "C",
        "LANG": "C.UTF-8",
    }


def run(
    command: Sequence[str],
    what: str,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    log: str | Path | None = None,
    stdin: bytes | None = None,
) -> str:
    """As attempt(); returns the output.  Raises Fail if the program fails."""
    status, text = attempt(command, what, cwd, env, log, stdin)
    if status:
        raise Fail(f"{what} failed: {reason(text)}" + (f" (see {log})" if log else ""))
    return text


def attempt(
    command: Sequence[str],
    what: str,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    log: str | Path | None = None,
    stdin: bytes | None = None,
    whole: bool = False,
) -> tuple[int, str]:
    """Run `command` (a list) to its end; returns (status, its standard output and error as text).

    what: names the work in a failure, as in "git am".  log: a path that gets the output instead
    (it is still what is returned).  whole: it must not be killed half-way (a package manager): an
    interrupt waits for its end, and it keeps the terminal, where sudo may ask.  Raises Fail if the program is missing.
    An interrupt ends the program's whole process group.
    """
    need(command[0])
    environment = {**_english(os.environ), **(env or {})}
    try:
        with open(log, "w+b") if log else contextlib.nullcontext() as file:
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                command,
                cwd=cwd,
                env=environment,
                start_new_session=not whole,
                preexec_fn=_ignore_interrupts if whole else None,
                stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                stdout=file or subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            try:
                output, _ = process.communicate(stdin)
            except BaseException:
                if whole:
                    process.wait()
                else:
                    end(process)
                raise
            if file:
                file.seek(0)
                output = file.read()
    except OSError as error:
        raise paths.os_fail(error, cwd) from None
    return process.returncode, (output or b"").decode("utf-8", "replace")


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process started by run() or the guest, and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
