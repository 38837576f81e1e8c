"""TLB maintenance of the arm64 host, by traces of its stage-2 page tables (tools-testing-selftests-kvm/stage2_trace): the
series keeps the rules, and mistakes that no selftest notices here are found."""

import pytest

from kvmseries.vm import machine
from stage2_trace import stage2check
from tests import stage2traces
from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]

MUTANTS = Lab("v5.10", patches=("delays", "x86-delays", "mutants", "tlb-mutants"))
DIRTY_LOG = ("/tests/dirty_log_test", "-i", "3", "-M", "dirty-log", "-m", "2")
STRESS = "/tests/stage2_fault_stress_test -m get -n 1000000 -r 3 -i 300 -b 8M -t 8 -o".split()
CHANGE_PTE = ("/tests/change_pte_test", "-t", "6", "-f", "-n", "-i", "1", "-b", "2M")
ALL = "rally,punch,log,slots,remap,split,collapse,ksm,migrate,pageout,age,exec,readonly"
# What must have happened for a run to have shown something.
KINDS = ("unmapped", "protected", "granted", "table", "full table")
# Mistakes: the rule that finds each, and words of what it says.
MUTANTS = {
    "tlb-harvest-no-flush": ("invalidate", "kvm_vm_ioctl ended.*stage2_wrprotect_entries.*no TLBI for it came"),
    "tlb-log-on-no-flush": ("invalidate", "kvm_vm_ioctl ended.*stage2_wrprotect_entries.*no TLBI for it came"),
    "tlb-log-on-flush-first": ("invalidate", "kvm_vm_ioctl ended.*stage2_wrprotect_entries.*no TLBI for it came"),
    "tlb-relax-no-tlbi": ("forget", "stage2_attr_walker.*no TLBI for it came"),
    "tlb-break-no-tlbi": ("break-before-make", "no TLBI for it came"),
    "tlb-break-local": ("break-before-make", "is for its own CPU only"),
    "tlb-break-skipped": ("break-before-make", "did not make it invalid in between"),
    "tlb-break-wrong-level": ("break-before-make", "has the hint that the entry is of level"),
    "tlb-unmap-table-level": ("invalidate", "led to an empty table.*is for leaves only"),
    "tlb-unmap-next-page": ("invalidate", "was unmapped.*no TLBI for it came"),
    "tlb-no-dsb-before": ("invalidate", "came before a DSB that waits for the store"),
    "tlb-no-dsb-after": ("invalidate", "no DSB completed the TLBI VMALLE1IS"),
    "tlb-no-stage1": ("invalidate", "no TLBI of stage 1 followed that of stage 2"),
}
# The same, of patches/mutants/v5.10/mutants.patch.
CONTROLS = {
    "no-tlbi-in-unmap": ("invalidate", "was unmapped.*no TLBI for it came"),
    "change-pte-no-flush": ("invalidate", "kvm_mmu_notifier_change_pte ended.*no TLBI for it came"),
}


@pytest.mark.parametrize(
    "command, kinds",
    [(DIRTY_LOG, KINDS[:4]), (CHANGE_PTE, ("unmapped", "protected"))],
    ids=["dirty_log_test", "change_pte_test"],
)
def test_the_series_keeps_the_rules(command, kinds):
    stage2traces.keeps_the_rules(Lab("v5.10"), command[0].rpartition("/")[2], command, kinds)


def test_negative_control_base_hints_at_a_level_where_it_unlinks_a_table():
    """What patch 7 mends, and nothing else."""
    _, report = stage2traces.trace(Lab("v5.10", "base"), "dirty-log-base", DIRTY_LOG)
    rule, words = MUTANTS["tlb-unmap-table-level"]
    assert report.findings and stage2check.found(report, rule, words) == report.findings, report.findings[:5]


@pytest.mark.parametrize("cpu", machine.CPUS["arm64"])
@pytest.mark.parametrize("helpers, kinds", [("rally,punch,log", KINDS), (ALL, KINDS[:4])], ids=["rally", "all"])
def test_faults_that_race_keep_the_rules(helpers, kinds, cpu):
    """With delays; on a CPU with LSE atomics and level hints, and on one with neither."""
    label = f"{'all' if helpers == ALL else 'rally'}-{cpu}"
    stage2traces.keeps_the_rules(MUTANTS.but(machine={"cpu": cpu}), label, (*STRESS, helpers), kinds)


@pytest.mark.parametrize("mutant", [*MUTANTS, *CONTROLS])
def test_negative_control_a_mistake_with_tlbs_is_found(mutant):
    command = CHANGE_PTE if mutant.startswith("change-pte") else (*STRESS, "rally,punch,log,ksm")
    stage2traces.finds(MUTANTS.but(mutant=mutant), command, (MUTANTS | CONTROLS)[mutant])
