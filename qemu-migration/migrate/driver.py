"""The programs of qemu-migration/: a bare-metal guest and the driver that migrates it; what the driver is
told and what it prints.  qemu-migration/harness.md says what each figure means."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TYPE_CHECKING

from kvmseries.base import debian, paths, proc
from kvmseries.base.errors import Fail
from kvmseries.base.progress import say
from kvmseries.data.shape import TraceRow
from kvmseries.kernel import toolchain

if TYPE_CHECKING:
    from .build import Program

FOLDER = paths.ROOT / "qemu-migration"
# What build() makes for L1; firmware: where QEMU loads no kernel itself.
NAMES = {"arm64": ("driver", "guest.elf"), "x86_64": ("driver", "guest.elf", "reset.bin")}
# Trace events that are counted, as far as a program has them.
EVENTS = tuple(
    """
    migration_bitmap_sync_start migration_bitmap_sync_end dirtyrate_calculate cpu_throttle_set
    kvm_dirty_ring_full kvm_dirty_ring_flush kvm_dirty_ring_reap kvm_dirty_ring_reaper kvm_dirty_ring_kick
    kvm_dirty_ring_kick_asleep kvm_dirty_ring_reset_short kvm_dirty_ring_reaper_look kvm_dirty_ring_reaper_pace
""".split()
)
# Figures that a run may print twice.
_WORSE = {"pages_lost": max, "stale": max, "source_stale": max, "target_lives": min, "source_lives": min}

# What a run printed, by name: a number (float), or a word where the driver prints one.
Figures = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What one run of the driver does; the same words as its own options."""

    ring: int = 0  # entries of the dirty ring; 0: bitmap
    vcpus: int = 1
    working_set: int = 8192  # KiB
    static_set: int = 0  # KiB
    rate: int = 2000  # pages/s, 0: as fast as the guest can
    bandwidth: int = 2600000  # bytes/s
    downtime: int = 300  # ms
    limit: int = 120  # s
    auto_converge: int = 1
    computed: int = 1  # the computed throttle, where QEMU has it
    scenario: str = "plain"
    after: int = 1000  # ms
    hold: int = 2000  # ms
    cut: int = 1 << 20  # bytes
    corrupt: int = 0  # pages
    busy: int = 0  # the source's main loop
    dirty_rate: int = 0  # ms of a calc-dirty-rate instead of a migration
    least_memory: int = 64  # MiB of the guest, which may need more

    @property
    def memory(self) -> int:
        """MiB of the guest: the 8 below its data (guest/layout.h), the data, and 2 more."""
        return max(self.least_memory, 10 + -(-(self.working_set + self.static_set) // 1024))

    @property
    def tracking(self) -> str:
        """How dirty pages are found: "bitmap", "ring-1024"."""
        return f"ring-{self.ring}" if self.ring else "bitmap"

    def words(self) -> list[str]:
        """The driver's options, as a list."""
        names = [name for name in self.__dataclass_fields__ if name != "least_memory"]
        return [f"{name}={getattr(self, name)}" for name in (*names, "memory")]

    @property
    def seconds(self) -> int:
        """A limit for the whole run, s: QEMUs that start, a warm-up, migrations, checks."""
        return 3 * self.limit + 300


def build(arch: str) -> Path:
    """Build the guest and the driver for `arch`; returns their directory."""
    toolchain.install(arch)
    debian.install("build")
    target = paths.out("qemu-migration", arch)
    with paths.locked(f"qemu-migration-{arch}", say):
        for tool in ("make", f"{toolchain.prefix(arch)}gcc"):
            proc.need(tool)
        line = ["make", "-C", str(FOLDER), f"O={target}", f"ARCH={arch}", f"CROSS_COMPILE={toolchain.prefix(arch)}"]
        proc.run(line, "make of qemu-migration", log=paths.out("logs", f"qemu-migration-{arch}.log"))
    return target


def ticks() -> int:
    """kHz of the counter that an emulated x86-64 machine has as its TSC."""
    debian.install("build")
    target = paths.out("qemu-migration")
    with paths.locked("qemu-migration-ticks", say):
        proc.run(["make", "-C", str(FOLDER), f"O={target}", "ticks"], "make of qemu-migration/ticks.c")
    return int(proc.run([str(target / "ticks")], "ticks"))


def sources(arch: str) -> list[tuple[str, Path]]:
    """[(name, folder)] of what build() makes its programs of: for ids."""
    return [("driver", FOLDER / "driver"), ("guest", FOLDER / "guest"), (f"guest/{arch}", FOLDER / "guest" / arch)]


def place(folder: Path, label: str) -> Path:
    """Where bundle() is to put the QEMU of kernel `label`, below `folder`: ld.so ends a directory of libraries at a colon."""
    return folder / label.replace(":", "-")


def bundle(program: Program, folder: Path) -> list[str]:
    """Put QEMU and what it needs where none of it is installed into `folder`, as the driver wants it.

    program: a build.Program.  Returns the events that it has.
    """
    (folder / "lib").mkdir(parents=True)
    shutil.copy2(program.path, folder / program.path.name)
    for library in program.libraries:
        shutil.copy2(library, folder / "lib" / library.name)
    known = program.path.read_bytes()
    events = [name for name in EVENTS if name.encode() + b"\0" in known]
    (folder / "events").write_text("".join(f"{name}\n" for name in events), encoding="utf-8")
    return events


def parse(text: str) -> Figures:
    """{name: number or word} from what the driver printed; trace counts as "trace EVENT".

    Raises Fail with the driver's own words if it broke off.
    """
    error = re.search(r"^error (.*)$", text, re.M)
    if error:
        raise Fail(error[1])
    found: Figures = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "trace":
            event, _, value = value.partition(" ")
            name = f"trace {event}"
        if not value:
            continue
        try:
            number = float(value)
            # After a migration that failed there is another: the worse of both counts.
            worse = _WORSE.get(name, lambda _, last: last)
            found[name] = worse(found.get(name, number), number)
        except ValueError:
            found[name] = value
        if isinstance(found[name], float) and not math.isfinite(found[name]):
            raise Fail(f"the driver printed '{line}', which is no figure")
    return found


def samples(text: str) -> list[TraceRow]:
    """The time series that the driver printed: [[s since the migration began, bytes left to send, throttle in percent, bytes
    sent, sync passes]], the first migration alone; [] of a driver that prints none."""
    rows: list[TraceRow] = []
    for match in re.finditer(r"^sample ([\d.]+) (\d+) (\d+) (\d+) (\d+)$", text, re.M):
        row = [float(match[1]), *map(int, match.groups()[1:])]
        if rows and row[0] <= rows[-1][0]:
            break
        rows.append(row)
    return rows


def metrics(found: Figures, setting: Setting, events: Collection[str]) -> list[tuple[str, str, float]]:
    """[(metric, unit, value)] of a run: `found` by parse(), `events` that the program has.

    Of a migration that did not end there is no pages_lost and no downtime.
    """

    def count(event: str) -> float:
        return found.get(f"trace {event}", 0)

    # It begins and ends.
    flushes = math.ceil(count("kvm_dirty_ring_flush") / 2)
    # One collection of base kicks all vCPUs; the series says itself which it kicks.
    kicks = count("kvm_dirty_ring_kick") if "kvm_dirty_ring_kick" in events else flushes * setting.vcpus
    values = [
        ("completed", "1", found["completed"]),
        ("syncs", "1", count("migration_bitmap_sync_start")),
        ("throttle_steps", "1", found["throttle_steps"]),
        ("throttle_last", "1", found["throttle_last"]),
        ("ring_full_exits", "1", count("kvm_dirty_ring_full")),
        ("kicks", "1", kicks),
        ("kicks_skipped", "1", count("kvm_dirty_ring_kick_asleep")),
        ("flushes", "1", flushes),
        ("looks", "1", count("kvm_dirty_ring_reaper_look")),
        ("reaps", "1", count("kvm_dirty_ring_reap")),
        ("reaped_pages", "1", found["reaped_pages"]),
        ("bytes_sent", "B", found["bytes_sent"]),
        ("migration_time", "s", found["total_time_ms"] / 1000 if found["total_time_ms"] >= 0 else found["seconds"]),
        ("guest_speed", "pages/s", found["speed"]),
        ("guest_work", "1", found["work_done"]),
        ("guest_work_lost", "s", found["work_lost_s"]),
        ("guest_stall", "s", found["stall_s"]),
        ("slow_time", "s", found["slow_s"]),
        ("slow_share", "1", found["slow_share"]),
        ("slow_share_before", "1", found["undisturbed_slow_share"]),
    ]
    if "throttle_share" in found:
        values += [(name, "1", found[name]) for name in ("throttle_share", "throttle_share_asked")]
    if "dirty_true" in found:
        values += [("dirty_counted", "1", found["dirty_counted"]), ("dirty_true", "1", found["dirty_true"])]
    if found["completed"]:
        values += [
            ("pages_lost", "1", found.get("pages_lost", 0) + found.get("stale", 0)),
            ("downtime", "s", found["downtime_ms"] / 1000),
        ]
    return values


def _place(words: object) -> str:
    """Where the first of some pages is, of "ADDRESS", or what a word of it held, of "ADDRESS WANTED FOUND"."""
    address, *held = str(words).split()
    return f"the first at {address}" + (f": {held[1]} instead of {held[0]}" if held else "")


def complaints(found: Figures) -> list[str]:
    """What is wrong with a run, as a list of lines: pages lost, a guest that does not live on."""
    wrong = []
    for name, what in (
        ("pages_lost", "pages differ between the two sides"),
        ("stale", "stale pages found by the guest on the destination"),
        ("source_stale", "stale pages found by the guest on the source"),
    ):
        if found.get(name):
            at = found.get("first_lost" if name == "pages_lost" else f"{name}_at")
            wrong.append(f"{found[name]:.0f} {what}{f' ({_place(at)})' if at else ''}")
    for name, side in (("target_lives", "destination"), ("source_lives", "source")):
        if found.get(name) == 0:
            written = found.get(f"{name}_written")
            pages = "" if written is None else f", its vCPUs wrote {written:.0f} pages in 60 s"
            wrong.append(f"the guest does not work on the {side}{pages}")
    if found.get("completed") and "pages_lost" not in found and "target_lives" not in found:
        wrong.append("the driver compared nothing")
    return wrong
