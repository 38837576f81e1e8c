"""The plugin that counts TLB refills: what it is told of a kernel, its counts, and its C, under fake_qemu.c."""

import pytest

from kvmseries.base.errors import Fail
from kvmseries.conftest import decoded, plugin_run
from tlb_refills import tlbrefills
from vtime.conftest import instructions

SOURCE = tlbrefills.SOURCE
DECODER = r"""
#include <stdio.h>
#include "refills.h"
int main(void)
{
	static const char *const kinds[] = { "other", "tlbi", "eret", "ret", "hcr" }, *const what[] = { "nothing", "page", "all" };
	unsigned int op;

	while (scanf("%x", &op) == 1) {
		struct tlbi tlbi = arm64_tlbi(op);

		if (arm64_kind(op) != TLBI)
			puts(kinds[arm64_kind(op)]);
		else
			printf("%s%s%s\n", what[tlbi.what], tlbi.what != NOTHING && tlbi.broadcast ? " broadcast" : "",
			       tlbi.needs_guest ? " guest" : "");
	}
}
"""
# What the model does with an instruction, and instructions; with c9 they are TLBIs with nXS.
INSTRUCTIONS = instructions("""\
all guest: tlbi vmalle1; sys #0, c9, c7, #0; tlbi aside1, x0; tlbi rvaae1, x0
all broadcast guest: tlbi vmalle1is; tlbi vmalle1os; sys #0, c9, c3, #0; tlbi aside1is, x0; tlbi rvae1is, x0;
    tlbi rvaale1os, x0
page guest: tlbi vaae1, x0; tlbi vae1, x1; tlbi vale1, x2; tlbi vaale1, x30; sys #0, c9, c7, #3, x0
page broadcast guest: tlbi vaae1is, x0; tlbi vae1is, x0; tlbi vale1os, x0; tlbi vaale1is, x0
all: tlbi alle1; tlbi vmalls12e1
all broadcast: tlbi alle1is; tlbi alle1os; tlbi vmalls12e1is; tlbi vmalls12e1os; sys #4, c9, c3, #6
nothing: tlbi ipas2e1, x0; tlbi ipas2le1, x0; tlbi ipas2e1is, x0; tlbi ipas2e1os, x0; tlbi ripas2e1is, x0;
    tlbi ripas2le1, x0; tlbi alle2is; tlbi vae2is, x0; tlbi vale2is, x0; tlbi rvae2is, x0
eret: eret; eretaa; eretab
ret: ret; retaa; retab
hcr: msr hcr_el2, x3
other: nop; ret x1; mrs x0, hcr_el2; tlbi alle3; dc civac, x0; ic iallu; at s1e1r, x0
""")


def test_every_instruction_is_what_the_assembler_says(decoder, tmp_path):
    words = [word for word, _ in INSTRUCTIONS]
    assert list(zip(words, decoded(decoder, tmp_path, words))) == INSTRUCTIONS


# The kernel's code is at these addresses, with bit 63 set.
HIGH = "ffff80000000"
MARKS = f"__guest_enter {HIGH}1000 {HIGH}1100\n__guest_exit {HIGH}2000 {HIGH}2100\nkvm_handle_guest_abort {HIGH}3000 {HIGH}3100\n"
LDR, NOP, RET, ERET = "f9400020", "d503201f", "d65f03c0", "d69f03e0"
VMALLE1, VMALLE1IS, VAAE1, VAAE1IS = "d508871f", "d508831f", "d5088760", "d5088360"
IPAS2E1, VMALLS12E1IS = "d50c8420", "d50c83df"
SET_HCR = "d51c1102"
# The syndromes of a data abort by a write or a read, and of an instruction abort: permission faults of level 3.
WRITE, READ, FETCH = "9200004f", "9200000f", "8200000f"
TRANSLATION = "92000047"


def enter(cpu=0):
    return f"run {cpu} {HIGH}1010 {ERET}"


def leave(esr="0", cpu=0):
    return [f"x {cpu} 31 {esr}", f"run {cpu} {HIGH}2000 {NOP}"]


def host(op, cpu=0):
    return f"run {cpu} {HIGH}9000 {op}"


def load(page, cpu=0):
    """The nested guest reads the page, by an instruction of page 400."""
    return f"run {cpu} 400000 {LDR} {page}010"


def fault(*lines, esr=WRITE, cpu=0):
    """The nested guest takes a fault; the lines are what KVM does."""
    begin = [f"x {cpu} 31 bad", f"run {cpu} {HIGH}3000 {NOP}"]
    return [*leave(esr, cpu), *begin, *lines, f"run {cpu} {HIGH}30f0 {RET}", enter(cpu)]


@pytest.fixture
def count(plugged, tmp_path):
    """count(lines): (counts, what QEMU said) after `lines`; None for no counts."""

    def run(lines, block=None):
        (tmp_path / "marks").write_text(MARKS, encoding="ascii")
        arguments = [f"out={tmp_path / 'refills'}", f"marks={tmp_path / 'marks'}"]
        arguments += [f"block={block}"] if block else []
        # One instruction in a block.
        done = plugin_run(plugged, arguments, [f"{line} only" for line in lines])
        return (None if done.returncode else tlbrefills.read(tmp_path)), done.stderr

    return run


PAGES = ["10", "11", "12", "13"]
HOT = [load(page) for page in PAGES]


def test_a_tlbi_of_all_has_all_filled_again(count):
    found, _ = count([enter(), *HOT, *fault(host(IPAS2E1), host(VMALLE1)), *HOT])
    # The page of the code, too.
    assert (found.write_faults, found.refills_write_faults, found.pages) == (1, 5, 5)
    assert (found.tlbis_page, found.tlbis_all, found.per_fault) == (0, 1, 5.0)


def test_a_tlbi_of_a_page_has_that_one_filled_again(count):
    # Bits 63 to 44 of the operand are no address.
    lines = [enter(), *HOT, "x 0 0 abcd300000000012", *fault(host(IPAS2E1), host(VAAE1)), *HOT, *HOT]
    found, _ = count(lines)
    assert (found.refills_write_faults, found.tlbis_page, found.tlbis_all) == (1, 1, 0)
    assert (found.least_of_a_fault, found.most_of_a_fault) == (1, 1)
    assert count([*lines[:5], "x 0 0 99", *lines[6:]])[0].refills_write_faults == 0


def test_a_tlbi_of_a_page_of_a_block_has_the_block_filled_again(count):
    lines = [enter(), *HOT, load("210"), "x 0 0 11", *fault(host(VAAE1)), *HOT, load("210")]
    # The code is in the block of page 400.
    assert count(lines, block="0")[0].refills_write_faults == 4
    assert count(lines, block="200000")[0].refills_write_faults == 1


def test_negative_control_stage_2_alone_removes_nothing(count):
    found, _ = count([enter(), *HOT, *fault(host(IPAS2E1)), *HOT])
    assert (found.write_faults, found.refills_write_faults, found.tlbis_page + found.tlbis_all) == (1, 0, 0)


def test_refills_belong_to_what_removed_the_entry(count):
    # A harvest removes all; of a fault that comes before they are filled again it stays the cause.
    harvest = [*leave(), host(VMALLS12E1IS), enter()]
    found, _ = count([enter(), *HOT, *harvest, *HOT, *harvest, *fault(host(VMALLE1)), *HOT])
    assert (found.refills_no_fault, found.refills_write_faults) == (10, 0)
    # A harvest after a fault, with no entry in between.
    late = [*fault(host(VAAE1), esr=TRANSLATION)[:-1], host(VMALLE1), enter()]
    found, _ = count([enter(), *HOT, *late, *HOT])
    assert (found.refills_no_fault, found.refills_other_faults) == (5, 0)


@pytest.mark.parametrize("esr, kind", [(WRITE, "write"), (READ, "other"), (FETCH, "other"), (TRANSLATION, "other")])
def test_which_faults_are_those_of_the_dirty_log(count, esr, kind):
    found, _ = count([enter(), *HOT, *fault(host(VMALLE1), esr=esr), *HOT])
    assert (found.write_faults, found.other_faults) == ((1, 0) if kind == "write" else (0, 1))
    assert (found.refills_write_faults, found.refills_other_faults) == ((5, 0) if kind == "write" else (0, 5))


def test_the_extremes_of_faults(count):
    one = ["x 0 0 10", *fault(host(VAAE1)), *HOT]
    found, _ = count([enter(), *HOT, *one, *fault(host(VMALLE1)), *HOT, *fault(host(VMALLE1)), HOT[0]])
    assert (found.least_of_a_fault, found.most_of_a_fault, found.refills_write_faults) == (1, 5, 8)
    assert count(HOT)[0].least_of_a_fault == 0


def test_only_what_the_guest_accesses_counts(count):
    high = f"run 0 {HIGH}9000 {LDR} 10010"
    # Before the entry, after the exit, by code of EL2, and addresses of EL2.
    lines = [load("10"), enter(), high, f"run 0 400000 {LDR} {HIGH}9010", *leave(), load("11")]
    assert count(lines)[0].pages == 1
    # __guest_enter() may return without an ERET, and other code has one.
    lines = [f"run 0 {HIGH}1010 {RET}", load("10"), f"run 0 {HIGH}1100 {ERET}", load("10")]
    assert count(lines)[0].pages == 0


def test_cpus_and_broadcasts(count):
    other = [enter(1), *(load(page, 1) for page in PAGES)]
    for op, refilled in ((VMALLE1, 5), (VMALLE1IS, 10)):
        found, _ = count([enter(), *HOT, *other, *fault(host(op)), *HOT, *other])
        assert found.refills_write_faults == refilled
    for op, refilled in ((VAAE1, 1), (VAAE1IS, 2)):
        lines = [enter(), *HOT, *other, "x 0 0 11", "x 1 0 12", *fault(host(op)), *HOT, *other]
        assert count(lines)[0].refills_write_faults == refilled


def test_the_host_s_own_tlbis_remove_nothing(count):
    tge = ["x 0 2 8000000", host(SET_HCR)]
    for op, refilled in ((VMALLE1IS, 0), (VAAE1IS, 0), (VMALLS12E1IS, 5)):
        found, _ = count([enter(), *HOT, *fault(*tge, "x 0 0 10", host(op)), *HOT])
        assert found.refills_write_faults == refilled


def test_a_guest_s_own_tlbi_is_broadcast_by_fb(count):
    other = [enter(1), *(load(page, 1) for page in PAGES)]
    for hcr, refilled in (("0", 5), ("200", 10)):
        lines = ["x 0 2 " + hcr, host(SET_HCR), enter(), *HOT, *other, f"run 0 400000 {VMALLE1}", *HOT, *other]
        assert count(lines)[0].refills_no_fault == refilled


def test_a_guest_with_too_many_pages_ends_the_run(count):
    found, said = count([enter(), *(load(f"{page:x}") for page in range(0x1000, 0x3001))])
    assert found is None and "accesses more than 8192 pages" in said


# What it is told of a kernel, and its counts

TABLE = "".join(f"{0x1000 + 0x10 * number:016x} T {name}\n" for number, name in enumerate([*tlbrefills.MARKS, "end"]))


def test_the_marks_of_a_kernel():
    assert tlbrefills.marks(TABLE, "7.3") == (
        "__guest_enter 1000 1010\n__guest_exit 1010 1020\nkvm_handle_guest_abort 1020 1030\n"
    )
    for name in tlbrefills.MARKS:
        with pytest.raises(Fail, match=rf"linux 7.3 has no {name}\(\)"):
            tlbrefills.marks(TABLE.replace(name, "other"), "7.3")


def test_counts_that_are_not_whole_are_refused(tmp_path):
    with pytest.raises(Fail, match="have no end"):
        tlbrefills.parse("write_faults 1\n")
    with pytest.raises(Fail, match="are not those of tlbrefills.py"):
        tlbrefills.parse("write_faults 1\ndone 1\n")
    with pytest.raises(Fail):
        tlbrefills.read(tmp_path)
