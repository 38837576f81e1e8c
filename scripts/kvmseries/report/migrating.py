"""migration: what a live migration takes, and what the guest suffers, by QEMU's base and a series.

Runs that differ in nothing but the way to track dirty pages (their "config": bitmap, or a ring of a size) are one group:
a Family, whose `parts` are the Summaries by that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from ..data import summary as s
from ..data.shape import Host, Results, Trace
from . import layout
from .measures import Measure, time_text

TEST = s.MIGRATION
# (heading, name, metric, how a number is written, what it is multiplied with)
Shown = tuple[str, str, str, Optional[str], float]
COLUMNS: tuple[Shown, ...] = (
    ("counts", "completed", "completed", None, 1),
    ("counts", "pages lost", "pages_lost", "{:,.0f}", 1),
    ("counts", "sync passes", "syncs", "{:,.0f}", 1),
    ("counts", "throttle steps", "throttle_steps", "{:,.0f}", 1),
    ("counts", "last throttle, %", "throttle_last", "{:.0f}", 1),
    ("counts", "ring-full exits", "ring_full_exits", "{:,.0f}", 1),
    ("counts", "kicks", "kicks", "{:,.0f}", 1),
    ("counts", "reaps", "reaps", "{:,.0f}", 1),
    ("counts", "MB sent", "bytes_sent", "{:,.1f}", 1e-6),
    ("what the guest suffers", "migration, s", "migration_time", "{:,.1f}", 1),
    ("what the guest suffers", "work lost, s", "guest_work_lost", "{:,.1f}", 1),
    ("what the guest suffers", "slowed by > 50 %, s", "slow_time", "{:,.1f}", 1),
    ("what the guest suffers", "share of time, %", "slow_share", "{:.0f}", 100),
    ("what the guest suffers", "longest stall, ms", "guest_stall", "{:,.0f}", 1e3),
    ("what the guest suffers", "downtime, ms", "downtime", "{:,.0f}", 1e3),
    ("what the guest suffers", "work, 1000 pages", "guest_work", "{:,.1f}", 1e-3),
)
METRICS = tuple(metric for _, _, metric, _, _ in COLUMNS)


@dataclass(frozen=True)
class Moved:
    """What one mechanism moves, or what it costs: `metric`, divided by the metric `per` and, if `each`, by the number of
    vCPUs; less 1 if it is an `error`.  rings: there is none with the bitmap."""

    milestone: str  # that moves it
    name: str
    metric: str
    per: str = ""
    rings: bool = False
    each: bool = False
    error: bool = False
    form: str = "{:,.2f}"
    scale: float = 1

    def text(self, number: float) -> str:
        """A number for people."""
        return self.form.format(number * self.scale)


MOVED = (
    Moved("throttle", "throttle steps", "throttle_steps", form="{:,.0f}"),
    Moved("throttle", "guest work lost, s", "guest_work_lost", form="{:,.1f}"),
    Moved("throttle", "longest stall, ms", "guest_stall", form="{:,.0f}", scale=1e3),
    Moved("ring", "collections a sync", "flushes", "syncs", rings=True),
    Moved("reaper", "ring-full exits for 1,000 pages written", "ring_full_exits", "guest_work", rings=True, scale=1e3),
    Moved("reaper", "ring entries a page written", "reaped_pages", "guest_work", rings=True),
    Moved("reaper", "looks a second", "looks", "migration_time", rings=True),
    Moved("kick", "kicks a sync and vCPU", "kicks", "syncs", rings=True, each=True),
    Moved("kick", "length of the migration, s", "migration_time", form="{:,.1f}"),
    Moved(
        "count", "error of the dirty count, %", "dirty_counted", "dirty_true", error=True, form="{:+,.0f}", scale=100
    ),
)
# Of these, less is better; the last throttle, reaps and work done are neither good nor bad of themselves.
LOWER_IS_BETTER = (
    "pages_lost",
    "syncs",
    "throttle_steps",
    "ring_full_exits",
    "kicks",
    "bytes_sent",
    "guest_work_lost",
    "slow_time",
    "guest_stall",
    "migration_time",
    "downtime",
)
# (label, metric, what it is multiplied with) of the plot of bars.
BARS = (
    ("sync passes", "syncs", 1),
    ("throttle steps", "throttle_steps", 1),
    ("MB sent", "bytes_sent", 1e-6),
    ("length of the migration, s", "migration_time", 1),
    ("guest work lost, s", "guest_work_lost", 1),
    ("longest stall, ms", "guest_stall", 1e3),
)


class Family(s.Summary):
    """The migrations of one setting.  parts: {way to track dirty pages: Summary}; traces: see results.py."""

    def __init__(self, group: s.Group, host: Host) -> None:
        super().__init__(group, host)
        self.parts: dict[str, s.Summary] = {}
        self.traces: list[Trace] = []

    def add(self, summary: s.Summary) -> None:
        """Take in the Summary of one way to track dirty pages."""
        self.parts[summary.group.variant] = summary
        self._kernels.update(dict.fromkeys(summary.kernels, True))
        self._vcpus.update(summary.vcpus)
        self.unused += summary.unused

    @property
    def places(self) -> Sequence[s.Place]:
        """(vCPUs, way to track dirty pages)."""
        return [(vcpus, tracking) for vcpus in self.vcpus for tracking in self.parts]

    def sample_note(self, metrics: Iterable[str]) -> str:
        notes = list(dict.fromkeys(part.sample_note(metrics) for part in self.parts.values()))
        return (
            notes[0]
            if len(notes) == 1
            else "samples: " + ", ".join(f"{name} {part.sample_note(metrics)}" for name, part in self.parts.items())
        )


def _order(tracking: str) -> tuple[int, str]:
    """The bitmap, then rings by size."""
    return int(tracking.rpartition("-")[2]) if tracking.startswith("ring-") else 0, tracking


def families(summaries: Iterable[s.Summary], results: Sequence[Results]) -> list[s.Summary]:
    """`summaries` with a Family in the place of those of migrations that differ in their tracking alone."""
    found, known = [], {}
    for summary in summaries:
        if summary.group.test != TEST:
            found.append(summary)
            continue
        group = replace(summary.group, variant="")
        if group not in known:
            known[group] = Family(group, summary.host)
            known[group].traces = [
                trace
                for data in results
                for trace in data.get("traces", ())
                if trace["args"] == group.args and trace["series"] == group.series
            ]
            found.append(known[group])
        known[group].add(summary)
    for family in known.values():
        family.parts = dict(sorted(family.parts.items(), key=lambda pair: _order(pair[0])))
    return found


def is_migration(summary: s.Summary) -> bool:
    """True if a Summary is of this test."""
    return summary.group.test == TEST


def words(args: str) -> str:
    """What a migration's arguments say, for people: "working set 2 MiB, 2000 pages/s, bandwidth 2.6 MB/s"."""
    known = {
        "working-set": "working set {} MiB",
        "rate": "guest dirties {} pages/s",
        "bandwidth": "bandwidth {} MB/s",
        "downtime": "downtime limit {} ms",
        "limit": "given up after {} s",
    }
    parts = []
    for word in args.split():
        name, _, value = word.partition("=")
        if (name, value) == ("rate", "0"):
            parts.append("guest dirties as fast as it can")
        else:
            parts.append(known.get(name, f"{name} {{}}").format(value))
    return ", ".join(parts)


def _cell(part: s.Summary, kernel: str, vcpus: int, column: Shown) -> layout.Cell:
    _, _, metric, form, scale = column
    value = part.value(kernel, vcpus, metric)
    if value is None:
        return layout.Cell()
    samples = list(value.samples.values())
    if form is None:
        return layout.Cell(f"{sum(1 for one in samples if one)} of {len(samples)}")
    if metric == "pages_lost":
        return layout.Cell(form.format(max(samples)))
    return layout.value_cell(value, lambda number: form.format(number * scale))


def _ratio(part: s.Summary, compared: str, vcpus: int, column: Shown) -> layout.Cell:
    """The Cell of the compared kernel's figure relative to base's: none of what is no quantity."""
    _, _, metric, form, _ = column
    if form is None or metric in ("pages_lost", "throttle_last", "slow_share"):
        return layout.Cell()
    return layout.value_cell(
        s.ratio(part.value(compared, vcpus, metric), part.value(s.BASE, vcpus, metric)), layout.ratio_text
    )


def sheet(family: Family) -> layout.Sheet:
    """The Sheet: counts, and what the guest suffers; a block for each vCPU count, rows for each way to track dirty pages
    and each QEMU."""
    columns = [one for one in COLUMNS if any(part.has(one[2]) for part in family.parts.values())]
    blocks: list[layout.Block] = []
    for vcpus in family.vcpus:
        rows = []
        for tracking, part in family.parts.items():
            for kernel in part.kernels:
                cells = [_cell(part, kernel, vcpus, column) for column in columns]
                if any(cell != layout.Cell() for cell in cells):
                    rows.append((f"{tracking}: {kernel}", cells))
            if part.compared and vcpus in part.vcpus:
                rows.append(
                    (
                        f"{tracking}: {s.short(part.compared)}{layout.RATIO}",
                        [_ratio(part, part.compared, vcpus, column) for column in columns],
                    )
                )
        if rows:
            blocks.append((vcpus, rows))
    heads = [layout.Column(head, name, name) for head, name, *_ in columns]
    return layout.Sheet(heads, blocks, "dirty pages by, QEMU", [_note(family)])


def _moved(part: s.Summary, kernel: str, vcpus: int, what: Moved) -> s.Value | None:
    """The Value of a Moved, sample by sample; None if none of them has all that it is made of."""
    value = part.value(kernel, vcpus, what.metric)
    by = part.value(kernel, vcpus, what.per) if what.per else value
    if value is None or by is None:
        return None
    found = {
        key: number / (by.samples[key] if what.per else 1) / (vcpus if what.each else 1) - what.error
        for key, number in value.samples.items()
        if not what.per or by.samples.get(key, 0) > 0
    }
    return s.Value(found, repeats=value.repeats and by.repeats) if found else None


def mechanisms(family: Family) -> layout.Sheet:
    """The Sheet of what each mechanism (milestone) moves, and what it costs, with the spread of the samples; a row for
    each QEMU."""

    def cells(tracking: str, part: s.Summary, kernel: str, vcpus: int) -> list[layout.Cell]:
        return [
            layout.Cell()
            if what.rings and tracking == "bitmap"
            else layout.value_cell(_moved(part, kernel, vcpus, what), what.text)
            for what in MOVED
        ]

    rows = {
        vcpus: [
            (f"{tracking}: {kernel}", cells(tracking, part, kernel, vcpus))
            for tracking, part in family.parts.items()
            for kernel in part.kernels
        ]
        for vcpus in family.vcpus
    }
    kept = [
        number
        for number in range(len(MOVED))
        if any(row[number] != layout.Cell() for found in rows.values() for _, row in found)
    ]
    blocks: list[layout.Block] = [
        (vcpus, [(label, [row[number] for number in kept]) for label, row in found if set(row) != {layout.Cell()}])
        for vcpus, found in rows.items()
    ]
    heads = [
        layout.Column(
            f"milestone {MOVED[number].milestone}",
            MOVED[number].name,
            f"{MOVED[number].milestone}: {MOVED[number].name}",
            timed=True,
        )
        for number in kept
    ]
    return layout.Sheet(
        heads,
        [block for block in blocks if block[1]],
        "dirty pages by, QEMU",
        [
            f"Mechanisms: medians, with the least and the greatest; {family.sample_note(METRICS)}. The error of the dirty count "
            "is against the pages that the guest wrote, from sync to sync."
        ],
    )


def _note(family: Family) -> str:
    return f"Migrations: medians; {family.sample_note(METRICS)}."


def measures(family: Family) -> list[Measure]:
    """The Measures of the verdict; their place is (vCPUs, way to track dirty pages)."""

    def of(metric: str) -> Callable[[str, tuple[int, str]], s.Value | None]:
        return lambda kernel, place: family.parts[place[1]].value(kernel, place[0], metric)

    speeds = _speeds(family, family.compared) if family.compared else {}

    def fair(place: tuple[int, str]) -> bool:
        return _alike(family, speeds[place[0]])

    return [
        Measure(
            name,
            of(metric),
            text,
            main=metric == "migration_time",
            count=text is not time_text,
            each=text is _count,
            fair=fair,
        )
        for name, metric, text in _MEASURES
    ]


def _count(number: float) -> str:
    return layout.count_text(number)


def _megabytes(number: float) -> str:
    return f"{number / 1e6:,.1f} MB"


_MEASURES = (
    ("length of the migration", "migration_time", time_text),
    ("sync passes", "syncs", _count),
    ("throttle steps", "throttle_steps", _count),
    ("bytes sent", "bytes_sent", _megabytes),
    ("kicks of vCPUs", "kicks", _count),
    ("ring-full exits", "ring_full_exits", _count),
    ("guest work lost", "guest_work_lost", time_text),
    ("guest slowed by > 50 %", "slow_time", time_text),
    ("longest stall of the guest", "guest_stall", time_text),
    ("downtime", "downtime", time_text),
)


# Guests within this of each other's speed begin alike; the driver takes two stretches of one guest for steady by the same.
_ALIKE = 0.1


def _speeds(family: Family, compared: str) -> dict[int, list[float]]:
    """{vCPU count: speeds of the compared kernel's guests before their migrations, relative to base's}; none where the
    speed of one of them is not known."""
    found = {}
    for vcpus in family.vcpus:
        pairs = [
            s.ratio(part.value(compared, vcpus, "guest_speed"), part.value(s.BASE, vcpus, "guest_speed"))
            for part in family.parts.values()
            if vcpus in part.vcpus
        ]
        known = [one for one in pairs if one]
        ends = [end for one in known for end in (one.median, one.low, one.high) if end is not None]
        found[vcpus] = ends if len(known) == len(pairs) else []
    return found


def _fastest(family: Family) -> bool:
    """Whether no rate makes the guests alike."""
    return "rate=0" in family.group.args.split()


def _alike(family: Family, speeds: Sequence[float]) -> bool:
    """Whether guests that wrote at such speeds, relative to base's, began alike; not where they are not known."""
    return bool(speeds) and not _fastest(family) and all(1 - _ALIKE <= one <= 1 + _ALIKE for one in speeds)


def _with(counts: Sequence[int]) -> str:
    """ "With 1, 2 and 4 vCPUs" """
    words = [str(count) for count in sorted(counts)]
    many = ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
    return f"With {many} vCPU{'s' * (words != ['1'])}"


def _span(speeds: Sequence[float]) -> str:
    low, high = (layout.ratio_text(end) for end in (min(speeds), max(speeds)))
    return low if low == high else f"{low} to {high}"


def clock_text(family: Family) -> str:
    """What times of emulated hosts mean, from what was run: a ratio compares two QEMUs only if their guests began alike."""
    parts = ["The machine that runs both QEMUs is emulated (TCG), so a time says nothing about hardware."]
    if family.compared:
        parts.append("The two QEMUs take turns in one boot, and their link has the same bandwidth.")
        parts += _what_ratios_mean(family, family.compared)
    if any(0 in value.samples.values() for part in family.parts.values() for value in part.values("completed")):
        parts.append("The length of a migration that did not complete is the time after which it was given up.")
    return " ".join([*parts, "Counts depend on times, too, where a pass is due after a second."])


def _what_ratios_mean(family: Family, compared: str) -> list[str]:
    """Sentences: at which speeds the guests began, and whether a ratio of times compares the two QEMUs for that."""
    alike: list[int] = []
    others: list[int] = []
    unknown: list[int] = []
    speeds = _speeds(family, compared)
    name = "the series" if compared == s.SERIES else s.short(compared)
    for vcpus, found in speeds.items():
        (unknown if not found else alike if _alike(family, found) else others).append(vcpus)
    sentences = ["The guests write as fast as they can: no rate makes them alike."] if _fastest(family) else []
    for counts, so in (
        (alike, "So a ratio of times compares the two."),
        (others, "So a ratio of times is of these runs alone, and does not compare the two."),
    ):
        if counts:
            span = _span([one for vcpus in counts for one in speeds[vcpus]])
            sentences.append(
                f"{_with(counts)} the guests of {name} wrote at {span} times the speed of base's before the "
                f"migration. {so}"
            )
    if unknown:
        sentences.append(
            f"{_with(unknown)} the speed of the guests before the migration is not known. A ratio of times compares the "
            "two only if it was the same."
        )
    return sentences


def highlights(family: Family) -> list[str]:
    """Lines: how many migrations completed, and whether pages were lost."""
    lines = []
    for kernel in family.kernels:
        ends: list[float] = []
        lost: list[float] = []
        for part in family.parts.values():
            for vcpus in part.vcpus:
                for samples, metric in ((ends, "completed"), (lost, "pages_lost")):
                    value = part.value(kernel, vcpus, metric)
                    samples += value.samples.values() if value else []
        if ends:
            text = f"{kernel}: {len([one for one in ends if one])} of {len(ends)} migrations completed"
            lines.append(text + (f", {sum(lost):,.0f} pages lost" if lost else ""))
    return lines
