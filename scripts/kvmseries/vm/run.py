"""Running a job in a guest: what its commands printed, or what the guest died of.

The kernel's console and the job's output are two files, so that neither lands inside a line of
the other; job.sh (in tools-testing-selftests-kvm/guest) writes the lines that begin with @@.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..base import paths, proc, tap
from ..base.errors import Fail
from ..base.progress import Note, say
from ..kernel.build import Kernel
from . import emulator, firstcpu, held, image, machine as machines
from .quiet import Quiet

# Seconds that a guest may say nothing: while it boots, and beyond a command's own limit.
BOOT_SILENCE = 120
SILENCE = 60
# What a Result says of a guest that does not power off in SILENCE after its job has ended.
STAYS_ON = "the guest did not power off after its job"

# What 5.10 and 7.3 say when they have found a mistake of their own. Much of it is printed without WARN or BUG,
# and without a taint.
_REPORTS = (
    r"WARNING: ",
    r"\bBUG: ",
    r"[Kk]ernel BUG at",
    r"hyp BUG at",
    r"Kernel panic",
    r"PANIC: ",
    # The header of an oops, "invalid opcode: 0000 [#1] SMP"; what stands before it; faults that are survived.
    r"\[#\d+\] ",
    r"Internal error: ",
    r"Unable to handle kernel",
    r"general protection fault",
    r"Corrupted page table at",
    r"unchecked MSR access error: ",
    r"Insufficient stack space",
    r"Thread overran stack",
    # lockdep, RCU, the watchdogs
    r"INFO: possible",
    r"INFO: trying to register",
    r"suspicious RCU usage",
    r"DEBUG_LOCKS_WARN_ON",
    r"INFO: rcu.*stall",
    r"INFO: task .* blocked",
    r"Double-freed CB",
    # pages: mm/page_poison.c, page_alloc.c, debug.c, pgtable-generic.c
    r"pagealloc: (memory corruption|single bit error)",
    r"Bad page state",
    r"page dumped because",
    r": bad (pte|pmd|pud|p4d|pgd) ",
    r"(Bad|Unused) swap (file|offset) entry",
    # objects and lists: mm/slub.c, lib/list_debug.c, refcount.c, debugobjects.c (not what it replaces at boot)
    r"\bBUG \S+ \(.*\): ",
    r"Slab cache still has objects",
    r"list_(add|del) (corruption|double add)",
    r"refcount_t: ",
    r"ODEBUG: (?!\d)",
    r"UBSAN: ",
    # KVM: arch/x86/kvm/mmu, arch/arm64/kvm/mmu.c
    r"pte_list_remove: .*(BUG|many->many)",
    r"gfn mismatch under direct page",
    r"(Invalid|Unexpected) SPTE change",
    r"detect reserved bits on spte",
    r"Unexpected L2 read permission error",
    r"Unsupported FSC: ",
)
_SPLAT = re.compile("|".join(_REPORTS))
_BEGIN = re.compile(r"^@@ begin (\S+)$", re.M)
# What a test says that it failed by; first of all the verdict of stage2_fault_stress_test on a word.
_TELLS = re.compile(r": (lost|stale|wrong): |unexpected exit|: page \d+|exit_reason|Failed|failed|No page")
_END = re.compile(r"^@@ end (\S+) rc=(\d+) seconds=([\d.]+)$", re.M)
_DONE = re.compile(r"^@@ done$", re.M)


@dataclass
class Outcome:
    """What became of one command."""

    name: str
    status: int  # exit status; 124 if its time was up, 128+N for signal N
    seconds: float  # by the guest's clock
    output: str  # standard output and error

    def why(self) -> str:
        """One line that says why it failed: the line of its output that tells it, with those below it that belong to
        it (they are indented), as far as 600 characters go."""
        if self.status in (124, 137):
            return "its time was up"
        lines = [line for line in self.output.strip().splitlines() if not tap.told(line)]
        found = [at for at, line in enumerate(lines) if _TELLS.search(line)]
        at = found[0] if found else len(lines) - 1
        more = itertools.takewhile(lambda line: re.match(r"\s+[a-z]", line), lines[at + 1 :])
        text = ", ".join(line.strip() for line in (*lines[at : at + 1], *more)) or "nothing printed"
        return f"status {self.status}: {text[:600]}"


@dataclass
class Result:
    """What became of a job."""

    outcomes: list[Outcome] = field(default_factory=list)
    splats: list[str] = field(default_factory=list)  # lines of the console
    version: str = ""  # the kernel's own banner
    folder: Path = Path()  # console.log, job.log, qemu.sh


def keep(folder: Path, kept: Path) -> None:
    """Copy the logs of a run, in its directory `folder`, to the directory `kept`: the next run of its name writes them anew."""
    with paths.whole(kept) as copy:
        for file in (*sorted(folder.glob("*.log")), folder / "qemu.sh"):
            if file.exists():
                shutil.copy2(file, copy)


def parse_job(text: str) -> tuple[list[Outcome], bool]:
    """Outcomes from the output of a job: (list, whether it ran to its end)."""
    outcomes = []
    for match in _END.finditer(text):
        name = match[1]
        begin = [found for found in _BEGIN.finditer(text, 0, match.start()) if found[1] == name]
        if not begin:
            raise Fail(f"the job's output ends '{name}', which never began")
        # Without what job.sh puts before its own line.
        output = text[begin[-1].end() + 1 : match.start()].rstrip("\n")
        outcomes.append(Outcome(name, int(match[2]), float(match[3]), f"{output}\n" if output else ""))
    return outcomes, bool(_DONE.search(text))


def splats(console: str) -> list[str]:
    """Lines of a console's text with which the kernel reports a mistake, without time stamps."""
    found = [line for line in console.splitlines() if _SPLAT.search(line)]
    return list(dict.fromkeys(re.sub(r"^\[ *[\d.]+\] ?(\[ *[TC]\d+\] ?)?", "", line).strip() for line in found))


def remains(folder: Path) -> Result:
    """The Result of what a guest that died has left in `folder`."""
    outcomes, _ = parse_job(_text(folder / "job.log"))
    return Result(outcomes, splats(_text(folder / "console.log")), "unknown", folder)


def run(
    kernel: Kernel,
    initrd: Path,
    machine: machines.Machine,
    commands: Sequence[image.Command],
    name: str,
    note: Note | None = None,
    silence: float = SILENCE,
) -> Result:
    """Boot `kernel` on `machine` and run `commands` (as for image.job()); returns the Result.

    name: of the directory under out/runs that keeps the logs; the last run of a name is kept.
    Raises Fail if the guest panics, hangs or QEMU fails.  A command that fails does not.
    """
    machines.check(machine)
    if machine.clock == "wall":
        machine = replace(machine, qemu=emulator.for_commands(machine.arch, commands, machine.accel, machine.params))
    folder = paths.out("runs", name)
    with paths.locked(f"run-{name}", say):
        line = _prepare(kernel, initrd, machine, commands, folder)
        try:
            status = _watch(line, folder, commands, note, silence, machine.clock == "wall")
        except Fail as error:
            raise Fail(f"{error}{_hint(machine, folder)}") from None
        return _result(folder, status)


def _prepare(
    kernel: Kernel, initrd: Path, machine: machines.Machine, commands: Sequence[image.Command], folder: Path
) -> list[str]:
    """QEMU's command line, whose files are made in `folder`."""
    paths.remove(folder)
    try:
        folder.mkdir(parents=True)
        wall = machine.clock == "wall"
        hold = held.program() if wall and (machine.arch, machine.accel) == (held.ARCH, "tcg") else None
        machine, before = firstcpu.spare(machine)
        if hold:
            before.append(held.LINE)
        job = image.job(commands, stacks=wall, before=before)
        archive = image.with_job(initrd, job, folder / "initrd.cpio", hold)
        line = machines.command(machine, kernel, archive, folder)
        (folder / "qemu.sh").write_text(shlex.join(line) + "\n", encoding="utf-8")
    except OSError as error:
        raise paths.os_fail(error, folder) from None
    return line


def _result(folder: Path, status: int | None) -> Result:
    """The Result of a guest whose QEMU has ended with `status`, see _watch(); Fail if its job did not."""
    console, text = _text(folder / "console.log"), _text(folder / "job.log")
    outcomes, done = parse_job(text)
    if not done:
        raise Fail(_death(folder, console, text, status))
    lacks = re.search(r"^@@ error (.*)$", text, re.M)
    if lacks:
        raise Fail(f"the guest lacks what its tests need: {lacks[1]} (see {folder}/job.log)")
    paths.remove(folder / "initrd.cpio")
    banner = re.search(r"Linux version (\S+)", console)
    found = splats(console)
    if not found:
        # A kernel that is tainted has said why, in words that splats() may not know.
        found = [f"tainted during {name}" for name in re.findall(r"^@@ taint (\S+) ", text, re.M)]
    if status is None:
        found.append(STAYS_ON)
    return Result(outcomes, found, banner[1] if banner else "unknown", folder)


def _watch(
    line: Sequence[str], folder: Path, commands: Sequence[image.Command], note: Note | None, silence: float, wall: bool
) -> int | None:
    """Run QEMU to its end and return its exit status.  Kill it when it says nothing for too long, and when it is still there
    long after its job: its kernel may say again and again where it hangs.  The status is None then.

    wall: the limits are seconds of our clock, too. The guest ends a command at its limit, so one that goes on cannot be
    killed, whatever the kernel says."""
    limits = {name: seconds for name, seconds, _ in commands}
    ended, running, since = None, "", None
    with open(folder / "console.log", "wb") as console:
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            line, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            size, quiet = -1, Quiet(process.pid)
            while process.poll() is None:
                time.sleep(0.05)
                now = _size(folder / "console.log") + _size(folder / "job.log")
                if now != size:
                    size = now
                    quiet.heard()
                    text = _text(folder / "job.log")
                    begun = _BEGIN.findall(text)
                    if note and begun:
                        note(f"{begun[-1]} ({len(begun)} of {len(commands)})")
                    if not ended and _DONE.search(text):
                        ended = Quiet(process.pid)
                    if begun and begun[-1] != running:
                        running, since = begun[-1], Quiet(process.pid)
                patience = _patience(folder, limits, silence)
                if wall and since and not ended and since.seconds() > patience + silence:
                    found = splats(_text(folder / "console.log"))
                    first = f"; it said first: {found[0]}" if found else ""
                    raise Fail(
                        f"the guest hangs: {running} does not end, {int(since.seconds())} s after it began (limit "
                        f"{int(limits.get(running, 0))} s), and the kernel still prints{first} "
                        f"(see {folder}/console.log)"
                    )
                if ended and ended.seconds() > silence:
                    return None
                if quiet.seconds() > patience:
                    raise Fail(
                        f"the guest hangs: nothing for {int(quiet.seconds())} s; "
                        f"it last printed: {_last(folder)} (see {folder})"
                    )
            return process.returncode
        finally:
            proc.end(process)


def _hint(machine: machines.Machine, folder: Path) -> str:
    """What to try with a kernel that prints nothing at all; "" if this one has printed something."""
    # Before linux 5.12 and its stable kernels' backports of 26f55386f964 a kernel took only one value of TGran for its
    # page size, and spins in its first instructions on a CPU with LPA2, whose value is another one.
    lpa2 = (machine.arch, machine.accel, machine.cpu) == ("arm64", "tcg", "max") and not machine.trace
    return "; try --cpu max,lpa2=off" if lpa2 and not _size(folder / "console.log") else ""


def _patience(folder: Path, limits: Mapping[str, float], silence: float) -> float:
    begun = _BEGIN.findall(_text(folder / "job.log"))
    if not begun:
        return BOOT_SILENCE if silence == SILENCE else silence
    return limits.get(begun[-1], 0) + silence


def _death(folder: Path, console: str, text: str, status: int | None) -> str:
    panic = [line for line in splats(console) if "Kernel panic" in line]
    running = _BEGIN.findall(text)
    during = f" during {running[-1]}" if running and len(_END.findall(text)) < len(running) else ""
    if panic:
        return f"the guest's kernel panicked{during}: {panic[-1]} (see {folder}/console.log)"
    if "Linux version" not in console and "Booting" not in console:
        return f"QEMU failed: {proc.reason(console)} (see {folder}/qemu.sh)"
    if status:
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        return (
            f"QEMU ended with {how}{during}; the guest last printed: {_last(folder)} (see {folder}/console.log "
            f"and {folder}/qemu.sh)"
        )
    how = " by a triple fault" if "Triple fault" in _text(folder / "resets.log") else ""
    return f"the guest ended before its job{during}{how}; it last printed: {_last(folder)} (see {folder})"


def _last(folder: Path) -> str:
    """The last line that the guest printed, of the job's or the console's, whichever is newer."""
    files = [path for path in (folder / "console.log", folder / "job.log") if _text(path).strip()]
    if not files:
        return "nothing"
    newest = max(files, key=lambda path: path.stat().st_mtime)
    return f"'{_text(newest).strip().splitlines()[-1].strip()[:160]}'"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").replace("\r", "")
    except FileNotFoundError:
        return ""
