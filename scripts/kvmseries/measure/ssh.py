"""A machine that is reached by ssh: commands on it as root, files to it, reboots."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from pathlib import Path
from typing import Literal, overload

from ..base import proc
from ..base.errors import Fail, Usage

# Ends by itself if the other side is gone; asks for no password.
_OPTIONS = (
    "-o",
    "BatchMode=yes",
    "-o",
    "LogLevel=ERROR",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=15",
    "-o",
    "ServerAliveCountMax=4",
)
# ssh's own exit status when it has no connection, or loses it.
_LOST = 255
# Before the output of a script.
_BEGIN = "@@ output"
# Seconds between two tries to reach a machine that boots.
_PAUSE = 5


class Lost(Fail):
    """There is no connection to the machine."""


class Host:
    """One machine.

    name: ssh's destination ("root@server").  command: ssh with options ("ssh -p 2222").
    """

    def __init__(self, name: str, command: str = "ssh") -> None:
        if not name or name.startswith("-") or any(letter.isspace() for letter in name):
            raise Usage(f"--remote '{name}': give a destination of ssh, such as root@server")
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise Usage(f"--ssh '{command}': {error}") from None
        if not words:
            raise Usage("--ssh needs a command, such as 'ssh -p 2222'")
        if words[0] != "ssh" and not shutil.which(words[0]):
            raise Usage(f"--ssh: there is no program {words[0]} here")
        self.name = name
        self._ssh = [*words, *_OPTIONS, "--", name]
        self.sudo = ""

    @overload
    def run(
        self, script: str, what: str, stdin: bytes | None = None, check: Literal[True] = True, root: bool = True
    ) -> str: ...

    @overload
    def run(
        self, script: str, what: str, stdin: bytes | None = None, *, check: Literal[False], root: bool = True
    ) -> tuple[int, str]: ...

    def run(
        self, script: str, what: str, stdin: bytes | None = None, check: bool = True, root: bool = True
    ) -> str | tuple[int, str]:
        """Run the shell script `script` there; returns its output, or (status, output) without `check`.

        stdin: bytes.  root: through sudo where the user is not root.  Raises Lost without a connection.
        """
        line = f"{self.sudo if root else ''}sh -c {shlex.quote(f'echo {_BEGIN}; {script}')}"
        status, text = proc.run([*self._ssh, line], what, stdin=stdin, check=False)
        # What the user's own shell and sudo have to say comes before.
        text = text.rpartition(f"{_BEGIN}\n")[2]
        if status == _LOST:
            raise Lost(f"cannot reach {self.name} by ssh: {proc.reason(text)}")
        if check and status:
            raise Fail(f"{what} failed on {self.name}: {proc.reason(text)}")
        return text if check else (status, text)

    def put(self, path: Path, target: str) -> None:
        """Copy the file `path` there as `target`, whole or not at all; it may be executed."""
        quoted = shlex.quote(target)
        self.run(
            f'umask 022; mkdir -p "$(dirname {quoted})" && cat > {quoted}.part && chmod 755 {quoted}.part && '
            f"mv {quoted}.part {quoted}",
            f"copying {path.name}",
            stdin=path.read_bytes(),
        )

    def facts(self, script: str, what: str, root: bool = True) -> dict[str, str]:
        """{name: value} of the lines "@@ NAME=VALUE" that `script` prints."""
        return dict(re.findall(r"^@@ (\w+)=(.*?)\r?$", self.run(script, what, root=root), re.M))

    def boot_id(self) -> str:
        """The kernel's random name for this boot."""
        return self.run("cat /proc/sys/kernel/random/boot_id", "reading boot_id", root=False).strip()

    def reboot(self, command: str, seconds: float) -> bool:
        """Run `command`, which reboots the machine, and wait until it is back: True, or False if it is not within
        `seconds`."""
        before = self.boot_id()
        # In the background: the connection may end before the command does.
        self.run(f"nohup sh -c {shlex.quote(f'sleep 1; {command}')} > /dev/null 2>&1 < /dev/null &", "rebooting")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_PAUSE)
            try:
                if self.boot_id() != before:
                    return True
            except Lost:
                pass
        return False
