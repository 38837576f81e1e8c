"""The plugin that records stage 2: what it is told of a kernel, and its C, under fake_qemu.c."""

import re

import pytest

from kvmseries.base.errors import Fail, Usage
from kvmseries.conftest import decoded, plugin_run
from kvmseries.vm import machine
from stage2_trace import stage2check, stage2trace
from vtime.conftest import instructions

SOURCE = stage2trace.SOURCE
DECODER = r"""
#include <stdio.h>
#include "trace.h"
#define N(kind) [kind] = #kind
static const char *const names[] = { N(OTHER), N(STORE), N(STORE_EXCLUSIVE), N(TLBI), N(DSB), N(RET), N(SET_HCR), N(SET_VTCR),
	N(SET_VTTBR) };
int main(void)
{
	unsigned int op;
	bool address, stage1;

	while (scanf("%x", &op) == 1)
		printf("%s %s\n", names[arm64_kind(op)], arm64_kind(op) == DSB ? arm64_dsb(op) :
		       arm64_kind(op) == TLBI ? arm64_tlbi(op, &address, &stage1) : "-");
}
"""
INSTRUCTIONS = instructions("""\
STORE: str x0, [x1]; str xzr, [x1, #8]; str x0, [x1, x2]; stur x0, [x1, #1]; str x0, [x1], #8; str x0, [x1, #8]!;
    stlr x0, [x1]; stlur x0, [x1, #8]; cas x0, x1, [x2]; casal x0, x1, [x2]; casa x0, x1, [x2]; casl x0, x1, [x2];
    ldclr x0, x1, [x2]; stclr x0, [x1]; swp x0, x1, [x2]; swpl x0, x1, [x2]; ldaddal x0, x1, [x2]; ldset x0, x1, [x2]
STORE_EXCLUSIVE: stxr w0, x1, [x2]; stlxr w0, x1, [x2]
TLBI: tlbi ipas2e1is, x0; tlbi ipas2le1is, x1; tlbi ipas2e1, x0; tlbi ipas2le1, x0; tlbi ipas2e1os, x0;
    tlbi ipas2le1os, x30; tlbi ripas2e1is, x0; tlbi ripas2le1is, x0; tlbi ripas2e1, x0; tlbi ripas2le1, x0;
    tlbi ripas2e1os, x0; tlbi ripas2le1os, x0; tlbi vmalls12e1is; tlbi vmalls12e1; tlbi vmalls12e1os; tlbi alle1is;
    tlbi alle1; tlbi alle1os; tlbi vmalle1is; tlbi vmalle1; tlbi vmalle1os
DSB: dsb sy; dsb ish; dsb ishst; dsb ishld; dsb nsh; dsb nshst; dsb nshld; dsb osh; dsb oshst; dsb oshld; dsb st;
    dsb ld
RET: ret; retaa; retab
SET_HCR: msr hcr_el2, x0; msr hcr_el2, xzr
SET_VTCR: msr vtcr_el2, x3
SET_VTTBR: msr vttbr_el2, x8
OTHER: ldr x0, [x1]; ldar x0, [x1]; str w0, [x1]; str x0, [sp, #8]; stp x0, x1, [x2]; cas w0, w1, [x2]; ldxr x0, [x1];
    ldapr x0, [x1]; ldclr w0, w1, [x2]; strb w0, [x1]; ssbb; pssbb; isb; dmb ish; tlbi vae1is, x0; tlbi alle2is;
    mrs x0, hcr_el2; msr ttbr0_el2, x0; br x30
""")


def test_every_instruction_is_what_the_assembler_says(decoder, tmp_path):
    found = decoded(decoder, tmp_path, [word for word, _ in INSTRUCTIONS])
    names = [re.sub(r"^\w+ |,.*", "", word) if kind in ("TLBI", "DSB") else "-" for word, kind in INSTRUCTIONS]
    assert found == [f"{kind} {name}" for (_, kind), name in zip(INSTRUCTIONS, names)]


# What the plugin is told: three functions of each role.
CODE = "store stage2_walker 1000 2000\nop kvm_vm_ioctl 3000 4000\ndestroy kvm_pgtable_stage2_destroy 5000 6000\n"
STR, STXR, DSB_ISH, RET = "f9000020", "c8007c41", "d5033b9f", "d65f03c0"
TLBI_IPA, TLBI_ALL, TLBI_S1 = "d50c8020", "d50c83df", "d508831f"
HCR, VTCR, VTTBR = "d51c1102", "d51c2142", "d51c2102"
# 40 bits of IPA, 4 KiB pages, from level 1 on.
SETUP = ["x 0 31 aa", "x 1 31 bb", "x 0 2 58", f"run 0 9000 {VTCR}", "x 0 2 1000040001000", f"run 0 9000 {VTTBR}"]
ROOT = "root 0 40001000 1 1 40 12"


@pytest.fixture
def traced(plugged, tmp_path):
    """traced(line..., options): (lines of the trace, what QEMU said); options: more of the plugin's."""

    def run(*lines, options=()):
        (tmp_path / "code").write_text(CODE, encoding="ascii")
        arguments = [f"out={tmp_path / 'trace'}", f"code={tmp_path / 'code'}", *options]
        done = plugin_run(plugged, arguments, [*SETUP, *lines])
        trace = tmp_path / "trace"
        return trace.read_text(encoding="ascii").splitlines() if trace.exists() else [], done.stderr

    return run


def _put(address, value, by=0, at="1000", how=STR):
    return f"run {by} {at} {how} {address} {value}"


def test_stores_are_told_where_tables_are(traced):
    found, _ = traced(
        "mem 40002008 800000400007dd",
        _put("40001000", "40002003"),  # level 1: a table, with one entry
        _put("40002000", "40003003"),  # level 2: a table
        _put("40003010", "400007df", by=1),
        _put("40003010", "400007df"),  # nothing changes
        _put("40005000", "400007df"),  # no table
        _put("40003018", "400007df", at="2000"),  # not by that code
        _put("40003018", "0"),  # and what it did is undone
        f"run 0 1000 {STXR}",
        f"run 1 1000 {STXR} only",  # they fail
        _put("40003010", "4000075f", by=1, how=STXR),
        _put("40003010", "400007df", how=STXR) + " only",
        _put("40001ff8", "40004001"),
        "run 0 9000 d65f03c0",
    )
    assert found == [
        "stage2-trace 1",
        ROOT,
        "table 0 40001000 2 0 40002000 1:800000400007dd",
        "store 0 aa 40001000 1 0 0 40002003 stage2_walker",
        "table 0 40001000 3 0 40003000 -",
        "store 0 aa 40001000 2 0 0 40003003 stage2_walker",
        "store 1 bb 40001000 3 2000 0 400007df stage2_walker",
        "store 1 bb 40001000 3 2000 400007df 4000075f stage2_walker",
        "store 0 aa 40001000 3 2000 4000075f 400007df stage2_walker",
        "store 0 aa 40001000 1 7fc0000000 0 40004001 stage2_walker",
        "done 10",
    ]


def test_a_row_of_entries_is_short(traced):
    rows = [f"mem {0x40002000 + 8 * index:x} {0x40000001 + 0x200000 * index:x}" for index in range(512)]
    found, _ = traced(*rows, "mem 40002ff8 7", _put("40001000", "40002003"))
    line = next(line for line in found if line.startswith("table"))
    assert line.endswith(" 0:40000001+200000*511,511:7")
    row = {index: 0x40000001 + 0x200000 * index for index in range(511)}
    assert stage2check.content(line.split()[-1]) == {**row, 511: 7}


def test_a_store_that_was_not_seen_is_told(traced):
    link = [_put("40001000", "40002003"), _put("40002000", "400007dd")]
    found, _ = traced(*link, "mem 40002008 5", "mem 40002000 400003dd", _put("40001000", "0"))
    assert found[-3:-1] == ["store 0 aa 40001000 1 0 40002003 0 stage2_walker", "missed 0 40001000 2 200000 0 5"]
    # In the first table, before the first store to it.
    found, _ = traced("mem 40001010 5", *link)
    assert found[2] == "missed 0 40001000 1 80000000 0 5"


def test_a_table_that_is_unlinked_is_a_table_no_more(traced):
    stores = {"40001000": "40002003", "40002000": "40003003"}, {"40001000": "0", "40002008": "1", "40003008": "1"}
    found, _ = traced(*(_put(*one) for some in stores for one in some.items()))
    assert found[-2] == "store 0 aa 40001000 1 0 40002003 0 stage2_walker"


def test_page_tables_of_lpa2_end_the_run(traced):
    loads = [f"run 0 9000 {VTCR}", "x 0 2 1000040008000", f"run 0 9000 {VTTBR}", _put("40001000", "40002003")]
    found, said = traced("x 0 2 100000058", *loads)
    assert said.startswith("stage2-trace: VTCR_EL2.DS is set: ") and len(said.splitlines()) == 1
    assert not any(line.startswith(("store", "done")) for line in found)
    assert any(line.startswith("store") for line in traced("x 0 2 58", *loads)[0])


def test_tlbis_and_the_dsbs_around_them(traced):
    found, _ = traced(
        "run 0 9000 " + DSB_ISH,
        _put("40001000", "40002001"),
        *["run 0 9000 " + DSB_ISH] * 2,
        "run 1 9000 " + DSB_ISH,
        "x 0 0 7123",
        f"run 0 9000 {TLBI_IPA}",
        "run 0 9000 " + DSB_ISH,
        f"run 0 9000 {TLBI_S1}",
        f"run 0 9000 {TLBI_ALL}",
        f"run 1 9000 {TLBI_S1}",
        # With TGE, and with no VTTBR: the host's own.
        "x 0 2 8000000",
        f"run 0 9000 {HCR}",
        f"run 0 9000 {TLBI_S1}",
        "x 0 2 0",
        f"run 0 9000 {HCR}",
        f"run 0 9000 {VTTBR}",
        f"run 0 9000 {TLBI_S1}",
        f"run 0 9000 {TLBI_ALL}",
    )
    assert found[3:-1] == [
        "dsb 0 aa ish",
        "dsb 1 bb ish",
        "tlbi 0 aa ipas2e1is 1 7123",
        "dsb 0 aa ish",
        "tlbi 0 aa vmalle1is 1 -",
        "tlbi 0 aa vmalls12e1is 1 -",
        "tlbi 0 aa vmalls12e1is 0 -",
    ]


def test_operations_and_the_end_of_a_tree(traced):
    found, _ = traced(
        "x 0 1 ae41",
        "x 0 2 7",
        f"run 0 3000 {STR}",
        f"run 0 3004 {STR}",
        "x 0 0 0",
        f"run 0 3ffc {RET}",
        f"run 0 4000 {RET}",
        _put("40001000", "40002003"),
        "mem 40008008 ffff000000001000",
        "x 0 0 ffff000000008000",
        f"run 0 5000 {STR}",
        _put("40001000", "1"),
        _put("40002000", "1"),
        "x 0 2 1000040001000",
        f"run 0 9000 {VTTBR}",
    )
    assert found[2:-1] == [
        "begin 0 aa kvm_vm_ioctl ae41 7",
        "end 0 aa kvm_vm_ioctl 0",
        "table 0 40001000 2 0 40002000 -",
        "store 0 aa 40001000 1 0 0 40002003 stage2_walker",
        "gone 0 40001000",
        ROOT,
    ]


def test_concatenated_tables_and_another_vmid(traced):
    # 40 bits from level 2 on: 16 tables.
    found, _ = traced(
        "x 1 2 18",
        f"run 1 9000 {VTCR}",
        "x 1 2 2000040010000",
        f"run 1 9000 {VTTBR}",
        _put("4001f008", "1"),
        "x 1 2 3000040010000",
        f"run 1 9000 {VTTBR}",
        f"run 1 9000 {VTTBR}",
    )
    assert found[2:-1] == [
        "root 1 40010000 2 2 40 12",
        "store 0 aa 40010000 2 3c0200000 0 1 stage2_walker".replace("3c0200000", f"{15 * 0x40000000 + 0x200000:x}"),
        "root 1 40010000 3 2 40 12",
    ]


def test_the_limit_cuts_the_trace(traced):
    found, _ = traced(*(_put("40001000", value) for value in "159"), options=["limit=3"])
    assert found[2:] == ["store 0 aa 40001000 1 0 0 1 stage2_walker", "cut", "done 3"]


def test_what_the_plugin_records_is_what_the_checker_reads(traced):
    # IPA 201000 is broken, and made again after its TLBI, or before.
    make = _put("40003008", "400007df")
    breaks = [
        f"run 0 3000 {STR}",
        _put("40001000", "40002003"),
        _put("40002008", "40003003"),
        make,
        _put("40003008", "0"),
        "run 0 9000 " + DSB_ISH,
        "x 0 0 201",
        f"run 0 9000 {TLBI_IPA}",
        "run 0 9000 " + DSB_ISH,
        f"run 0 9000 {TLBI_S1}",
        "run 0 9000 " + DSB_ISH,
    ]
    other, end = make.replace("40000", "50000").replace("50003008", "40003008"), f"run 0 3004 {RET}"
    good = stage2check.check(traced(*breaks, other, end)[0])
    assert good.findings == [] and good.counts["unmapped"] == 1
    bad = stage2check.check(traced(*breaks[:5], other, *breaks[5:], end)[0])
    assert [finding.rule for finding in bad.findings] == ["break-before-make"]


def _map(*lacking):
    """The text of a System.map that lacks these names."""
    names = ["stage2_map_walker", "kvm_pgtable_stage2_map", "__kvm_pgtable_walk", *stage2trace.OPERATIONS]
    names += ["kvm_pgtable_stage2_destroy", "other", "end"]
    found = [(0x1000 + 0x10 * number, name) for number, name in enumerate(names) if name not in lacking]
    return "".join(f"{address:016x} T {name}\n" for address, name in found)


def test_the_code_of_a_kernel():
    text = _map().replace("T kvm_vm_ioctl", "t kvm_vm_ioctl.isra.0") + "0000000000000ff0 t kvm_vm_ioctl.cold\n"
    lines = stage2trace.code(text, "5.10").splitlines()
    assert "store stage2_map_walker 1000 1010" in lines and "op kvm_vm_ioctl 1030 1040" in lines
    assert sum(line.startswith("destroy ") for line in lines) == 1
    assert sum(line.startswith("op kvm_vm_ioctl ") for line in lines) == 1
    assert not any(" other " in line for line in lines)


def test_the_code_of_a_kernel_without_change_pte_that_frees_tables_in_parts():
    text = _map("kvm_mmu_notifier_change_pte").replace("T other", "T kvm_pgtable_stage2_destroy_range")
    lines = stage2trace.code(text, "7.3").splitlines()
    assert [line.split()[1] for line in lines if line.startswith("destroy ")] == ["kvm_pgtable_stage2_destroy_range"]
    assert not any("change_pte" in line for line in lines)


@pytest.mark.parametrize(
    "lacking, why",
    [
        (["kvm_vm_ioctl"], r"linux 5.10 has no kvm_vm_ioctl\(\)"),
        (["kvm_pgtable_stage2_destroy"], r"no kvm_pgtable_stage2_destroy\(\)"),
    ],
)
def test_a_kernel_that_lacks_a_function_is_refused(lacking, why):
    with pytest.raises(Fail, match=why):
        stage2trace.code(_map(*lacking), "5.10")
    with pytest.raises(Fail, match="no function that writes stage-2 page tables"):
        stage2trace.code("1000 T other\n2000 T end\n", "5.10")


@pytest.mark.parametrize(
    "wanted", [{"arch": "x86_64"}, {"clock": "virtual"}, {"accel": "kvm"}, {"refills": True}], ids=str
)
def test_a_machine_that_cannot_be_recorded(wanted):
    with pytest.raises(Usage, match="on emulated CPUs of arm64 with the wall clock"):
        machine.check(machine.Machine(**{"arch": "arm64", **wanted}, trace=True))
