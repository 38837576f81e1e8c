"""Whether a trace of stage-2 page tables and TLBs (tools-testing-selftests-kvm/stage2_trace/README.md) keeps the
architecture's rules and KVM's promises.

Each store that takes something from an entry, or gives it permissions, makes a debt: TLBs may hold the old value.
A debt is paid by a TLBI that covers the entry, with a DSB before and after it.

    break-before-make   a valid entry became another one that takes break-before-make, and was not invalid in
                        between; or it was made valid before the debt of its old value was paid
    invalidate          an operation ended, and the debt of what it had unmapped or write-protected was not paid
    forget              an operation ended that had granted permissions, and its CPU had not forgotten the old entry
    outside             a store that makes a debt, and that no known operation has promised to pay

Rules of TLBIs and DSBs: Arm Architecture Reference Manual for A-profile (DDI 0487), D8 "TLB maintenance", B2 "Data
Synchronization Barrier".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kvmseries.base.errors import Fail

VERSION = 1
_VALID, _TABLE = 1, 2
_READ, _WRITE, _ACCESSED, _NOT_EXECUTE = 1 << 6, 1 << 7, 1 << 10, 3 << 53
# What may change in a valid leaf without break-before-make: the above, DBM, and the bits that are left to software.
_MUTABLE = _READ | _WRITE | _ACCESSED | _NOT_EXECUTE | 1 << 51 | 0xF << 55
# An operation that promises that the CPUs set the accessed flag again.
_FLUSHES_YOUNG = "kvm_mmu_notifier_clear_flush_young"
_ALL = ("vmalls12e1", "alle1")
_STAGE_1 = ("vmalle1", "vaale1")
# Kinds of debts, and what to say of an entry.
_KINDS = {
    "unmapped": "was unmapped",
    "protected": "lost a permission or its accessed flag",
    "granted": "got permissions",
    "table": "led to an empty table, which was unlinked",
    "full table": "led to a table in use, which was unlinked",
}
# log2 of the granule, by TG of a range TLBI's argument.
_GRANULES = {1: 12, 2: 14, 3: 16}
_DOMAINS = {"n": 0, "i": 1, "o": 2}
_SYSTEM = 3
_INNER = 1


class Finding(NamedTuple):
    """A broken rule."""

    rule: str
    line: int  # of the trace: where it shows
    text: str


@dataclass(eq=False)
class Debt:
    """What TLBs may still hold of an entry."""

    line: int
    cpu: int
    task: str
    root: str
    level: int
    ipa: int
    size: int
    kind: str  # of _KINDS
    before: int  # the entry's old value
    who: str  # the function that has stored
    paid: set[int] = field(default_factory=set)  # of the stages 1 and 2
    near: str = ""  # why the last TLBI that was meant for it did not count

    @property
    def broken(self) -> bool:
        """Whether the entry was made invalid."""
        return self.kind in ("unmapped", "table", "full table")

    def overlaps(self, ipa: int, end: int) -> bool:
        """Whether it is about addresses from `ipa` to `end`."""
        return ipa < self.ipa + self.size and self.ipa < end


@dataclass
class Tree:
    """A stage-2 page table."""

    vmid: str
    level: int
    page_shift: int
    entries: dict[tuple[int, int], int] = field(default_factory=dict)  # (level, IPA): value, where it is not 0
    debts: dict[tuple[int, int], list[Debt]] = field(default_factory=lambda: defaultdict(list))  # by (level, IPA)
    broken: list[Debt] = field(default_factory=list)  # those of them that are broken
    half: list[Debt] = field(default_factory=list)  # those of which stage 2 is paid

    def shift(self, level: int) -> int:
        """log2 of what an entry of `level` translates."""
        return self.page_shift + (self.page_shift - 3) * (3 - level)


class Tlbi(NamedTuple):
    """What a TLBI invalidates."""

    name: str
    cpu: int
    task: str
    local: bool  # of its own CPU alone
    stages: frozenset[int]
    span: tuple[int, int] | None  # (first address, behind the last), None for all
    last_level: bool  # of leaves alone
    hint: int | None  # level
    granule: int | None  # log2, of a range: None if it is none


@dataclass
class Report:
    """What was found, and how much was looked at."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # stores, tlbis, and debts by kind


def check(lines: Iterable[str]) -> Report:
    """The Report of a trace, an iterable of its lines.  Raises Fail for a trace that is no such trace, is cut short, or
    lacks something that has happened."""
    checker = _Checker()
    number = 0
    for number, line in enumerate(lines, 1):
        words = line.split()
        try:
            checker.event(number, words)
        except (ValueError, IndexError, KeyError):
            raise Fail(f"line {number} of the trace cannot be read: {line.strip()[:100]}") from None
    if not checker.done:
        raise Fail(f"the trace breaks off after line {number}")
    return checker.report


def debts(report: Report) -> int:
    """How many debts a Report has seen."""
    return sum(report.counts[kind] for kind in _KINDS)


def found(report: Report, rule: str, words: str) -> list[Finding]:
    """The findings of `rule` in a Report whose text has `words`, a pattern."""
    return [finding for finding in report.findings if finding.rule == rule and re.search(words, finding.text)]


def tlbi(words: list[str]) -> Tlbi:
    """The Tlbi of a line's words after the first."""
    cpu, task, name, _, argument = words
    match = re.fullmatch(r"(r?ipas2(?:l)?e1|vmalls12e1|alle1|vmalle1|vaale1)(is|os)?", name)
    if not match:
        raise ValueError(name)
    stages = frozenset({1} if match[1] in _STAGE_1 else {1, 2} if match[1] in _ALL else {2})
    span = hint = granule = None
    # No line says what IPA a VA has: that the VA of vaale1 is the one that has faulted is not checked.
    if argument != "-" and match[1] != "vaale1":
        value = int(argument, 16)
        granule = _granule(value) if match[1].startswith("r") else None
        span, hint = _span(value, granule)
    return Tlbi(name, int(cpu), task, not match[2], stages, span, "s2l" in match[1], hint, granule)


def _span(value: int, shift: int | None) -> tuple[tuple[int, int], int | None]:
    """(addresses, level hint) of a TLBI's argument; `shift`: log2 of the granule of a range, whose unit it is without FEAT_LPA2."""
    if shift is None:
        ipa = (value & ((1 << 40) - 1)) << 12
        return (ipa, ipa + 1), (value >> 44 & 3 if value >> 46 & 3 else None)
    start = (value & ((1 << 37) - 1)) << shift
    pages = ((value >> 39 & 31) + 1) << (5 * (value >> 44 & 3) + 1)
    return (start, start + (pages << shift)), (value >> 37 & 3 or None)


def _granule(value: int) -> int:
    """log2 of the granule that a range TLBI's argument names."""
    granule = value >> 46 & 3
    if not granule:
        raise ValueError(f"TG of {value:x} is reserved")
    return _GRANULES[granule]


def content(text: str) -> dict[int, int]:
    """{index: value} of the last field of a `table` line."""
    found = {}
    for part in () if text == "-" else text.split(","):
        match = re.fullmatch(r"(\d+):([0-9a-f]+)(?:\+([0-9a-f]+)\*(\d+))?", part)
        if not match:
            raise ValueError(part)
        for step in range(int(match[4] or 1)):
            # A stride may be negative: modulo 2^64.
            found[int(match[1]) + step] = (int(match[2], 16) + step * int(match[3] or "0", 16)) % (1 << 64)
    return found


def _is_table(level: int, value: int) -> bool:
    return level < 3 and value & (_VALID | _TABLE) == _VALID | _TABLE


def _same_memory(level: int, old: int, new: int) -> bool:
    """Whether two valid entries are leaves that differ in what may change."""
    return not _is_table(level, old) and not _is_table(level, new) and not (old ^ new) & ~_MUTABLE


class _Checker:
    """The state after some lines of a trace."""

    def __init__(self) -> None:
        self.report = Report()
        self.done = False
        self.trees: dict[str, Tree] = {}  # by root
        self.operations: dict[str, list[tuple[str, list[Debt]]]] = defaultdict(list)  # by task: names, and their debts
        self.issued: dict[int, list[tuple[Debt, Tlbi]]] = defaultdict(list)  # by CPU: those that no DSB has completed
        # By CPU: line of the last DSB for stores, by domain.
        self.stores_seen: dict[int, list[int]] = defaultdict(lambda: [0] * 4)

    def event(self, number: int, words: list[str]) -> None:
        """Take in line `number`."""
        if number == 1:
            if words != ["stage2-trace", str(VERSION)]:
                raise Fail(f"this is no trace of stage 2, version {VERSION}: it begins with '{' '.join(words)[:60]}'")
        elif words[0] == "cut":
            raise Fail(f"the trace was cut at line {number}, its limit")
        elif words[0] == "missed":
            raise Fail(
                f"the trace lacks a store to the entry of level {words[3]} for {words[4]}, between {words[5]} and "
                f"{words[6]} (line {number}): correct what is recorded, in tools-testing-selftests-kvm/stage2_trace/stage2trace.py"
            )
        else:
            getattr(self, f"_on_{words[0]}", self._unknown)(number, words[1:])

    def _unknown(self, _number: int, words: list[str]) -> None:
        raise ValueError(words)

    def _on_done(self, _number: int, _words: list[str]) -> None:
        self.done = True

    def _on_root(self, _number: int, words: list[str]) -> None:
        _, root, vmid, level, _, page_shift = words
        if root in self.trees:
            self.trees[root].vmid = vmid
        else:
            self.trees[root] = Tree(vmid, int(level), int(page_shift))

    def _on_gone(self, _number: int, words: list[str]) -> None:
        for debts in self.trees.pop(words[1]).debts.values():
            for debt in debts:
                debt.paid = {1, 2}

    def _on_table(self, _number: int, words: list[str]) -> None:
        tree, level, ipa = self.trees[words[1]], int(words[2]), int(words[3], 16)
        for index, value in content(words[5]).items():
            tree.entries[level, ipa + (index << tree.shift(level))] = value

    def _on_begin(self, _number: int, words: list[str]) -> None:
        self.operations[words[1]].append((words[2], []))

    def _on_end(self, number: int, words: list[str]) -> None:
        _, task, name = words[:3]
        stack = self.operations[task]
        if not stack or stack[-1][0] != name:
            raise Fail(
                f"line {number} of the trace ends {name}, and {stack[-1][0] if stack else 'nothing'} was under way"
            )
        for debt in stack.pop()[1]:
            if debt.paid != {1, 2}:
                rule = "forget" if debt.kind == "granted" else "invalidate"
                self._find(rule, number, debt, f"{name} ended")
                self._pay(debt, {1, 2})

    def _find(self, rule: str, number: int, debt: Debt, what: str) -> None:
        text = (
            f"line {number}: {what}, and the entry of level {debt.level} for {debt.ipa:x} {_KINDS[debt.kind]} on line "
            f"{debt.line} ({debt.who}, CPU {debt.cpu}): {debt.near or 'no TLBI for it came'}"
        )
        self.report.findings.append(Finding(rule, number, text))

    def _on_store(self, number: int, words: list[str]) -> None:
        cpu, task, root, who = *words[:3], words[7]
        tree, level, (ipa, old, new) = self.trees[root], int(words[3]), (int(word, 16) for word in words[4:7])
        self.report.counts["stores"] += 1
        size = 1 << tree.shift(level)
        if new & _VALID:
            self._make(number, tree, (level, ipa, old, new), who)
        kind = self._kind(tree, level, ipa, old, new, task)
        tree.entries[level, ipa] = new
        if old & _VALID and _is_table(level, old):
            _forget_below(tree, level, ipa, size)
        if kind:
            self._owe(Debt(number, int(cpu), task, root, level, ipa, size, kind, old, who))

    def _make(self, number: int, tree: Tree, change: tuple[int, int, int, int], who: str) -> None:
        """An entry is valid now: the debts of what was broken there must be paid."""
        level, ipa, old, new = change
        if old & _VALID and not _same_memory(level, old, new):
            text = (
                f"line {number}: {who} changed the entry of level {level} for {ipa:x} from {old:x} to {new:x}, and did not "
                "make it invalid in between"
            )
            self.report.findings.append(Finding("break-before-make", number, text))
        end = ipa + (1 << tree.shift(level))
        for debt in [debt for debt in tree.broken if debt.overlaps(ipa, end)]:
            if debt.level != level or not _same_memory(level, debt.before, new):
                self._find(
                    "break-before-make", number, debt, f"{who} made the entry of level {level} for {ipa:x} valid"
                )
                self._pay(debt, {1, 2})

    def _kind(self, tree: Tree, level: int, ipa: int, old: int, new: int, task: str) -> str | None:
        """The kind of debt that a store makes; None for none."""
        if not old & _VALID:
            return None
        if not new & _VALID or not _same_memory(level, old, new):
            if not _is_table(level, old):
                return "unmapped"
            end = ipa + (1 << tree.shift(level))
            full = any(value & _VALID and ipa <= address < end for value, address in _below(tree, level, ipa, end))
            return "full table" if full else "table"
        if (old & ~new) & (_READ | _WRITE) or (new & ~old) & _NOT_EXECUTE:
            return "protected"
        if (new & ~old) & (_READ | _WRITE) or (old & ~new) & _NOT_EXECUTE:
            return "granted"
        stack = self.operations[task]
        return "protected" if (old & ~new) & _ACCESSED and stack and stack[-1][0] == _FLUSHES_YOUNG else None

    def _owe(self, debt: Debt) -> None:
        self.report.counts[debt.kind] += 1
        tree, stack = self.trees[debt.root], self.operations[debt.task]
        tree.debts[debt.level, debt.ipa].append(debt)
        if debt.broken:
            tree.broken.append(debt)
        if stack:
            stack[-1][1].append(debt)
        else:
            self._find("outside", debt.line, debt, "no known operation is under way")

    def _pay(self, debt: Debt, stages: Iterable[int]) -> None:
        """Stages of a debt are paid."""
        tree = self.trees.get(debt.root)
        debt.paid.update(stages)
        if not tree:
            return
        key = debt.level, debt.ipa
        if debt.paid == {1, 2}:
            if debt in tree.debts.get(key, ()):
                tree.debts[key].remove(debt)
                if not tree.debts[key]:
                    del tree.debts[key]
            for group in (tree.broken, tree.half):
                if debt in group:
                    group.remove(debt)
        elif debt not in tree.half:
            debt.near = "no TLBI of stage 1 followed that of stage 2"
            tree.half.append(debt)

    def _on_dsb(self, number: int, words: list[str]) -> None:
        cpu, option = int(words[0]), words[2]
        match = re.fullmatch(r"(?:([nio])sh|sy)?(ld|st)?", option)
        if not match or not option:
            raise ValueError(option)
        domain, loads_only = _DOMAINS[match[1]] if match[1] else _SYSTEM, match[2] == "ld"
        if not loads_only:
            for lower in range(domain + 1):
                self.stores_seen[cpu][lower] = number
        if match[2]:
            return
        left = []
        for debt, which in self.issued[cpu]:
            if domain >= (0 if which.local else _INNER):
                if debt.paid != {1, 2}:
                    self._pay(debt, which.stages)
            else:
                debt.near = f"the DSB {option.upper()} on line {number} does not wait for the TLBI of other CPUs"
                left.append((debt, which))
        self.issued[cpu] = left

    def _on_tlbi(self, number: int, words: list[str]) -> None:
        self.report.counts["tlbis"] += 1
        trees = [tree for tree in self.trees.values() if words[2].startswith("alle1") or tree.vmid == words[3]]
        which = tlbi(words)
        for tree in trees:
            if which.granule not in (None, tree.page_shift):
                # With the TG of another granule it does nothing that can be relied on.
                continue
            for debt in _meant(tree, which):
                why = self._counts(debt, which)
                if why:
                    debt.near = f"the TLBI {which.name.upper()} on line {number} {why}"
                else:
                    debt.near = f"no DSB completed the TLBI {which.name.upper()} on line {number}"
                    self.issued[which.cpu].append((debt, which))

    def _counts(self, debt: Debt, which: Tlbi) -> str:
        """Why a TLBI does not pay, or pay a stage of, a debt that it is meant for; "" if it does."""
        if which.local and not (debt.kind == "granted" and debt.task == which.task):
            return "is for its own CPU only"
        domain = 0 if which.local else _INNER
        if debt.line > max(self.stores_seen[which.cpu][domain], self.stores_seen[debt.cpu][_INNER]):
            return "came before a DSB that waits for the store"
        if which.span is None or debt.kind in ("unmapped", "protected", "granted"):
            wrong = which.hint is not None and which.hint != debt.level
            return f"has the hint that the entry is of level {which.hint}" if wrong else ""
        if debt.kind == "full table" and not (which.span[0] <= debt.ipa and debt.ipa + debt.size <= which.span[1]):
            what = "one address" if which.granule is None else "some addresses"
            return f"is for {what}, and the table had entries for others"
        return "is for leaves only" if which.last_level or which.hint is not None else ""


def _below(tree: Tree, level: int, ipa: int, end: int) -> Iterator[tuple[int, int]]:
    """(value, address) of the leaves below an entry of `level` for addresses from `ipa` to `end`."""
    size = 1 << tree.shift(level + 1)
    for address in range(ipa, end, size):
        value = tree.entries.get((level + 1, address), 0)
        if _is_table(level + 1, value):
            yield from _below(tree, level + 1, address, address + size)
        elif value:
            yield value, address


def _forget_below(tree: Tree, level: int, ipa: int, size: int) -> None:
    """Forget the entries of the tables below an entry of `level`."""
    step = 1 << tree.shift(level + 1)
    for address in range(ipa, ipa + size, step):
        value = tree.entries.pop((level + 1, address), 0)
        if _is_table(level + 1, value):
            _forget_below(tree, level + 1, address, step)


def _meant(tree: Tree, which: Tlbi) -> list[Debt]:
    """The debts of `tree` for whose entries a Tlbi is."""
    if which.span is None:
        return list(tree.half) if which.stages == {1} else [debt for debts in tree.debts.values() for debt in debts]
    start, end = which.span
    if end - start > 1:
        return [debt for debts in tree.debts.values() for debt in debts if debt.overlaps(start, end)]
    places = [(level, start >> tree.shift(level) << tree.shift(level)) for level in range(4)]
    return [debt for place in places for debt in tree.debts.get(place, ())]
