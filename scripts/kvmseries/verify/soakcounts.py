"""What the stress tests and the debug patches print of races and of what was verified, as counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# Lines "KVM: NAME N..." and "Host: NAME N..." have counts with names of their own.
_NAMED = re.compile(r"^(KVM|Host):((?: \S+ \d+)+)$", re.M)
# What else is counted, and the names of a line's numbers; `key`, its first group, goes behind them.
_LINES = (
    (r"^Walks that age: (?P<key>\w+) (\d+)$", ("walks_that_age",)),
    (r"^Faults that undo: (?P<key>\w+) (\d+)$", ("faults_that_undo",)),
    (
        r"^Verified with the vCPUs stopped: (\d+) times, (\d+) words, (\d+) writes in the dirty log of (\d+) harvests",
        ("stops", "words_verified", "writes_verified_in_log", "harvests"),
    ),
    (
        r"^Verified by vCPUs: (\d+) words executed, (\d+) writes to the read-only memslot",
        ("words_executed", "writes_to_readonly"),
    ),
    (r"^Storm: [\d.]+ s, (\d+) accesses by vCPUs, (\d+) pages verified by the host", ("accesses", "pages_verified")),
    (r"^[\d.]+ s, (\d+) accesses by vCPUs, (\d+) exits", ("accesses", "exits")),
    (r"^Verified by the host: (\d+) pages", ("pages_verified",)),
    # access_tracking_stress_test, of each iteration.
    (r"found after aging, vCPUs (?P<key>idle|running): (\d+) young", ("pages_young",)),
    (r"false idle after flush: (\d+) of (\d+) pages touched", ("false_idle_after_flush", "pages_touched")),
    (r"^Pages swapped out: (\d+), in: (\d+)", ("swapped_out", "swapped_in")),
    # dirty_log_test
    (r"^Total bits checked: dirty \((\d+)\), clear \((\d+)\)", ("log_dirty_checked", "log_clear_checked")),
    # tables.sh
    (r"^Tables of stage 2: (\d+) before, (\d+) after$", ("tables_before", "tables_after")),
)


def counts(text: str) -> dict[str, int]:
    """{name: sum} of the counts in `text`, the output of a command; what is not known is passed over.

    "kvm.NAME" are counters of KVM, "host.NAME" what the helpers of a test did, "vms" the VMs of
    stage2_fault_stress_test.
    """
    found: dict[str, int] = {}

    def add(name: str, value: str | int) -> None:
        found[name] = found.get(name, 0) + int(value)

    for group, line in _NAMED.findall(text):
        words = line.split()
        for name, value in zip(words[::2], words[1::2]):
            add(f"{group.lower()}.{name}", value)
    for pattern, names in _LINES:
        for match in re.finditer(pattern, text, re.M):
            key = match.groupdict().get("key")
            for name, value in zip(names, match.groups()[1 if key else 0 :]):
                add(f"{name}.{key}" if key else name, value)
    vms = len(re.findall(r"^Dirty log: \S+$", text, re.M))
    if vms:
        add("vms", vms)
    return found


def total(many: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of several results of counts(), by name, sorted."""
    found: dict[str, int] = {}
    for one in many:
        for name, value in one.items():
            found[name] = found.get(name, 0) + value
    return dict(sorted(found.items()))
