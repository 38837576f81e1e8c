"""The checker of stage-2 traces, on traces that are written by hand: each good one, and the same with one mistake."""

import pytest

from kvmseries.base.errors import Fail
from stage2_trace import stage2check

VM, OTHER = "1000", "9000"
HEAD = ["stage2-trace 1", f"root 0 {VM} 1 1 40 12"]
# Entries: a page's, read-write and read-only, another page's, a block's, a table's, and a locked one.
RW, RO, ELSEWHERE = "800000400007df", "8000004000075f", "800000500007df"
BLOCK, TABLE, LOCKED = "800000400007dd", "5003", "780000000000000"
# CPU and task.
A, B = "0 a", "1 b"
IPA, PAGE, HUGE = "3 201000", "201", "2 200000"
# TLBI arguments: the page's, with the hints for levels 3 and 2.
AT3, AT2 = "7000" + "00000201", "6000" + "00000201"
IOCTL = "kvm_vm_ioctl"
BY_IPA = [f"dsb {A} ishst", f"tlbi {A} ipas2e1is 1 {PAGE}", f"dsb {A} ish", f"tlbi {A} vmalle1is 1 -", f"dsb {A} ish"]
ALL = [f"dsb {A} ishst", f"tlbi {A} vmalls12e1is 1 -", f"dsb {A} ish"]
LOCAL = [f"dsb {A} nsh", f"tlbi {A} ipas2e1 1 {AT3}", f"dsb {A} nsh", f"tlbi {A} vmalle1 1 -", f"dsb {A} nsh"]


def store(entry, old, new, by=A, root=VM):
    """A line of a store to `entry`, a level and an IPA."""
    return f"store {by} {root} {entry} {old} {new} stage2_walker"


def within(operation, *lines):
    """`lines` while `operation` of task a is under way."""
    return [f"begin {A} {operation} 0 0", *lines, f"end {A} {operation} 0"]


def but(lines, old, new):
    """`lines` with `new` in place of `old`."""
    return [line.replace(old, new) for line in lines]


def check(*lines):
    """[rule] of what is found in a trace of `lines`, and the texts."""
    report = stage2check.check([*HEAD, *lines, "done 1"])
    return [finding.rule for finding in report.findings], "\n".join(finding.text for finding in report.findings)


# Stage 1 by VA.
BY_VA = but(LOCAL, "vmalle1 1 -", "vaale1 1 7f")
PROTECTED, UNMAPPED = store(IPA, RW, RO), store(IPA, RW, "0")
GRANTED = store(IPA, RO, RW)
# What the table at 5000 holds: nothing, a page.
EMPTY, FULL = "table 0 1000 3 200000 5000 -", f"table 0 1000 3 200000 5000 1:{RW}"


def range_(base, num=0, scale=0, ttl=0, granule=1):
    """The argument of a range TLBI."""
    return f"{granule << 46 | scale << 44 | num << 39 | ttl << 37 | base:x}"


def by_range(*what, **how):
    """BY_IPA, by range_() instead of an address."""
    return but(BY_IPA, f"ipas2e1is 1 {PAGE}", f"ripas2e1is 1 {range_(*what, **how)}")


def unlinked(*lines):
    """A full table is unlinked, and a block takes its place."""
    return [FULL, store(HUGE, TABLE, LOCKED), *lines, store(HUGE, LOCKED, BLOCK)]


@pytest.mark.parametrize(
    "lines",
    [
        within(IOCTL, PROTECTED, *ALL),
        within(IOCTL, UNMAPPED, *BY_IPA),
        within("kvm_handle_guest_abort", GRANTED, *LOCAL),
        within("kvm_handle_guest_abort", GRANTED, *BY_IPA),
        # Stage 1 by VA, of the own CPU.
        within("kvm_handle_guest_abort", GRANTED, *BY_VA),
        within("kvm_handle_guest_abort", store(HUGE, BLOCK, LOCKED), *BY_IPA, EMPTY, store(HUGE, LOCKED, TABLE)),
        # What another CPU invalidates counts, and so does the DSB of the CPU that has stored.
        within(IOCTL, PROTECTED, f"dsb {A} ishst", f"tlbi {B} vmalls12e1is 1 -", f"dsb {B} ish"),
        # A page that was not mapped, one that is young now, and the same again after it was unmapped.
        within(IOCTL, store(IPA, "0", RW)),
        within(IOCTL, store(IPA, "800000400003df", RW)),
        within(IOCTL, UNMAPPED, store(IPA, "0", RW), *BY_IPA),
        # Aging promises no invalidation, but for one notifier.
        within("kvm_mmu_notifier_clear_young", store(IPA, RW, "800000400003df")),
        # All VMs', with hints, and what the hardware needs no more.
        within(IOCTL, UNMAPPED, f"dsb {A} sy", f"tlbi {A} alle1is 0 -", f"dsb {A} sy"),
        within(IOCTL, UNMAPPED, *but(BY_IPA, f"1 {PAGE}", f"1 {AT3}")),
        within(IOCTL, UNMAPPED, f"gone 0 {VM}"),
        # An empty table goes with the page's address, a full one with the VM.
        within(IOCTL, FULL, store(IPA, RW, "0"), *BY_IPA, store(HUGE, TABLE, "0"), *BY_IPA),
        within(IOCTL, *unlinked(*ALL)),
        # A range of 4 pages (SCALE 0, NUM 1) from 200000 on.
        within(IOCTL, UNMAPPED, *by_range(0x200, num=1)),
        within(IOCTL, UNMAPPED, *by_range(0x200)),
        # A full table takes a range of all that it translates.
        within(IOCTL, *unlinked(*by_range(0x200, num=7, scale=1))),
        # An operation within another one, and one that the end of the trace cuts off.
        within(IOCTL, *within("kvm_pgtable_stage2_unmap", UNMAPPED, *BY_IPA)),
        [f"begin {A} {IOCTL} 0 0", UNMAPPED],
    ],
)
def test_what_keeps_the_rules(lines):
    assert check(*lines) == ([], "")


# {rule: [(what an operation does, words of the one finding)]}
MISTAKES = {
    "invalidate": [
        ([PROTECTED], "no TLBI for it came"),
        ([*ALL, PROTECTED], "no TLBI for it came"),
        ([PROTECTED, *ALL[1:]], "came before a DSB that waits for the store"),
        ([PROTECTED, ALL[0].replace("ishst", "nshst"), *ALL[1:]], "came before a DSB"),
        ([PROTECTED, ALL[0].replace("ishst", "ishld"), *ALL[1:]], "came before a DSB"),
        ([PROTECTED, *ALL[:-1]], "no DSB completed the TLBI VMALLS12E1IS"),
        ([PROTECTED, *ALL[:-1], f"dsb {A} ishst"], "no DSB completed"),
        ([PROTECTED, *ALL[:-1], f"dsb {B} ish"], "no DSB completed"),
        ([PROTECTED, *ALL[:-1], f"dsb {A} nsh"], "NSH on line 7 does not wait"),
        ([PROTECTED, *but(ALL, "1is 1", "1 1")], "is for its own CPU only"),
        ([PROTECTED, *but(ALL, "1is 1", "1is 2")], "no TLBI for it came"),
        ([PROTECTED, *LOCAL], "is for its own CPU only"),
        ([PROTECTED, *BY_VA], "is for its own CPU only"),
        # Ranges that end before the page, begin behind it, are of another granule, have another level's hint.
        ([UNMAPPED, *by_range(0x1FF)], "no TLBI for it came"),
        ([UNMAPPED, *by_range(0x202)], "no TLBI for it came"),
        ([UNMAPPED, *by_range(0x200 >> 4, granule=3)], "no TLBI for it came"),
        ([UNMAPPED, *by_range(0x200, ttl=2)], "the entry is of level 2"),
        ([UNMAPPED, *but(BY_IPA, PAGE, "202")], "no TLBI for it came"),
        ([UNMAPPED, *but(BY_IPA, f"1 {PAGE}", f"1 {AT2}")], "the entry is of level 2"),
        ([UNMAPPED, *BY_IPA[:3]], "no TLBI of stage 1 followed that of stage 2"),
        ([UNMAPPED, *BY_IPA[:2], *BY_IPA[3:]], "no TLBI of stage 1 followed that of stage 2"),
        ([FULL, store(HUGE, TABLE, "0"), *BY_IPA], "is for one address, and the table had entries for others"),
        ([EMPTY, store(HUGE, TABLE, "0"), *but(BY_IPA, "s2e1", "s2le1")], "is for leaves only"),
        ([EMPTY, store(HUGE, TABLE, "0"), *but(BY_IPA, f"1 {PAGE}", f"1 {AT2}")], "is for leaves only"),
    ],
    "break-before-make": [
        ([UNMAPPED, store(IPA, "0", ELSEWHERE), *BY_IPA], "made the entry of level 3 for 201000 valid"),
        ([store(IPA, RW, ELSEWHERE), *BY_IPA], "did not make it invalid in between"),
        ([EMPTY, store(HUGE, BLOCK, TABLE), *ALL], "did not make it invalid"),
        ([store(HUGE, BLOCK, LOCKED), EMPTY, store(HUGE, LOCKED, TABLE), *ALL], "no TLBI for it came"),
        ([UNMAPPED, store(HUGE, "0", BLOCK), *ALL], "the entry of level 2 for 200000 valid"),
        (unlinked(*by_range(0x200, num=6, scale=1)), "is for some addresses, and the table had entries for others"),
        (unlinked(*by_range(0x240, num=7, scale=1)), "is for some addresses"),
        (unlinked(*by_range(0x200, num=7, scale=1, ttl=3)), "is for leaves only"),
    ],
    "forget": [
        ([GRANTED], "no TLBI for it came"),
        ([GRANTED, *LOCAL[1:]], "came before a DSB"),
        ([GRANTED, *LOCAL[:-1]], "no DSB completed the TLBI VMALLE1"),
        ([GRANTED, *but(LOCAL, A, B)], "is for its own CPU only"),
        ([GRANTED, *BY_VA[:-1]], "no DSB completed the TLBI VAALE1"),
    ],
}


@pytest.mark.parametrize("rule, lines, why", [(rule, *one) for rule, some in MISTAKES.items() for one in some])
def test_a_mistake_is_found(rule, lines, why):
    found, text = check(*within(IOCTL, *lines))
    assert found == [rule] and why in text, text


def test_one_notifier_of_aging_promises_an_invalidation():
    aged = store(IPA, RW, "800000400003df")
    name = "kvm_mmu_notifier_clear_flush_young"
    assert check(*within(name, aged))[0] == ["invalidate"]
    assert check(*within(name, aged, *ALL))[0] == []


def test_a_store_that_no_operation_answers_for_is_found():
    assert check(PROTECTED, *ALL)[0] == ["outside"]
    # Of another task, while one of this task is under way.
    assert check(*within(IOCTL, store(IPA, RW, "0", B), *BY_IPA))[0] == ["outside"]


def test_another_vm_with_the_same_addresses_is_not_meant():
    second = f"root 1 {OTHER} 2 1 40 12"
    lines = within(IOCTL, PROTECTED, store(IPA, RW, RO, root=OTHER), *ALL)
    assert check(second, *lines)[0] == ["invalidate"]
    assert check(second, *lines[:-1], *but(ALL, "1is 1", "1is 2"), lines[-1])[0] == []
    # Its VMID changes.
    assert check(second, f"root 1 {OTHER} 1 1 40 12", *lines)[0] == []


def test_each_debt_is_found_once_and_counted():
    lines = [*HEAD, *within(IOCTL, *within("kvm_pgtable_stage2_unmap", UNMAPPED), PROTECTED), "done 9"]
    report = stage2check.check(lines)
    assert [finding.line for finding in report.findings] == [6, 8]
    assert report.counts == {"stores": 2, "unmapped": 1, "protected": 1}


@pytest.mark.parametrize(
    "argument, span, hint",
    [
        (range_(0x201), (0x201000, 0x203000), None),
        (range_(0x201, num=31), (0x201000, 0x241000), None),
        (range_(0, num=31, scale=3), (0, 1 << 33), None),
        (range_(1, scale=2, ttl=2), (0x1000, 0x801000), 2),
        (range_((1 << 37) - 1, ttl=3), (((1 << 37) - 1) << 12, ((1 << 37) + 1) << 12), 3),
        (range_(1, granule=2), (0x4000, 0xC000), None),
        (range_(1, granule=3), (0x10000, 0x30000), None),
    ],
)
def test_the_argument_of_a_range_tlbi(argument, span, hint):
    found = stage2check.tlbi(["0", "a", "ripas2e1is", "1", argument])
    assert (found.span, found.hint, found.local) == (span, hint, False)


@pytest.mark.parametrize(
    "text, entries",
    [
        ("-", {}),
        ("5:7df", {5: 0x7DF}),
        ("0:1000+1000*3,9:1", {0: 0x1000, 1: 0x2000, 2: 0x3000, 9: 1}),
        ("0:2+ffffffffffffffff*2", {0: 2, 1: 1}),
    ],
)
def test_the_content_of_a_table(text, entries):
    assert stage2check.content(text) == entries


@pytest.mark.parametrize(
    "lines, why",
    [
        ([], "breaks off after line 0"),
        (["no trace"], "this is no trace of stage 2, version 1: it begins with 'no trace'"),
        (["stage2-trace 2"], "version 1"),
        (HEAD, "breaks off after line 2"),
        ([*HEAD, "cut"], "was cut at line 3"),
        ([*HEAD, f"missed 0 {VM} 3 201000 0 7d"], "lacks a store to the entry of level 3 for 201000, between 0 and 7d"),
        ([*HEAD, "tlbi 0 a ripas2e1is 1 201"], "line 3 of the trace cannot be read"),
        ([*HEAD, "tlbi 0 a vae1 1 201"], "line 3 of the trace cannot be read"),
        ([*HEAD, "tlbi 0 a vmalls12e1isnxs 1 -"], "line 3 of the trace cannot be read"),
        ([*HEAD, "dsb 0 a full"], "line 3"),
        ([*HEAD, "what 0"], "line 3"),
        ([*HEAD, "store 0 a 77 3 0 0 1 who"], "line 3"),
        ([*HEAD, "store 0 a"], "line 3"),
        ([*HEAD, f"table 0 {VM} 3 0 5000 1"], "line 3"),
        ([*HEAD, f"end {A} {IOCTL} 0"], f"ends {IOCTL}, and nothing was under way"),
        ([*HEAD, f"begin {A} other 0 0", f"end {A} {IOCTL} 0"], "and other was under way"),
    ],
)
def test_a_trace_that_cannot_be_checked(lines, why):
    with pytest.raises(Fail, match=why):
        stage2check.check(lines)
