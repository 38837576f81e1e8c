"""TLB maintenance of the series on arm64, by traces of its stage-2 page tables: as for v5.10."""

from pathlib import Path

import pytest

from tests import stage2traces
from tests.lab import Lab

pytestmark = [pytest.mark.boot, pytest.mark.slow]
SERIES = Path(__file__).parent.name

DIRTY_LOG = ("/tests/dirty_log_test", "-i", "3", "-M", "dirty-log", "-m", "3")
# Pages of which the log takes the permission, and vCPUs that take it back.
HUGE = "/tests/dirty_log_perf_test -v 2 -b 2M -m 3 -i 3 -s anonymous_hugetlb_2mb -g".split()
HUGE_PAGES = ("series.hugepages=64",)
STRESS = "/tests/stage2_fault_stress_test -m get -n 1000000 -r 3 -i 300 -b 8M -t 8 -o".split()
RALLY = [*STRESS, "rally,punch,log,split,collapse"]
ALL = [*STRESS, "rally,punch,log,slots,remap,split,collapse,ksm,migrate,pageout,age,exec,readonly"]
# {name: (command, what must have happened for the run to have shown something)}
RUNS = {
    "log": (DIRTY_LOG, ("unmapped", "protected", "table")),
    "huge": (HUGE, ("unmapped", "protected", "granted")),
    "rally": (RALLY, ("unmapped", "protected", "granted", "table", "full table")),
    "all": (ALL, ("unmapped", "protected", "granted", "table")),
}
# Of patches/mutants/SERIES/tlb-mutants.patch: the command, the rule that finds each, and words of what it says.
MUTANTS = {
    "tlb-harvest-no-flush": (HUGE, "invalidate", "kvm_vm_ioctl ended.*stage2_wrprotect_l.*no TLBI for it came"),
    "tlb-log-on-no-flush": (HUGE, "invalidate", "kvm_vm_ioctl ended.*stage2_attr_walker.*no TLBI for it came"),
    "tlb-undo-no-tlbi": (HUGE, "forget", "kvm_pgtable_stage2_undo_wrprotect.*no TLBI for it came"),
    "tlb-relax-no-tlbi": (RALLY, "forget", "stage2_attr_walker.*no TLBI for it came"),
    "tlb-break-no-tlbi": (RALLY, "break-before-make", "no TLBI for it came"),
    "tlb-break-one-address": (RALLY, "break-before-make", "is for one address, and the table had entries for others"),
    "tlb-unmap-no-tlbi": (RALLY, "invalidate", "kvm_pgtable_stage2_unmap_some ended.*no TLBI for it came"),
    "tlb-unmap-short": (RALLY, "invalidate", "kvm_pgtable_stage2_unmap_some ended.*was unmapped.*no TLBI for it came"),
    "tlb-no-dsb-before": (RALLY, "invalidate", "came before a DSB that waits for the store"),
    "tlb-no-stage1": (HUGE, "forget", "no TLBI of stage 1 followed that of stage 2"),
}


@pytest.mark.parametrize("what", RUNS)
def test_the_series_keeps_the_rules(what):
    command, kinds = RUNS[what]
    stage2traces.keeps_the_rules(Lab(SERIES, params=HUGE_PAGES), f"{SERIES}-{what}", command, kinds)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_negative_control_a_mistake_with_tlbs_is_found(mutant):
    command, rule, words = MUTANTS[mutant]
    lab = Lab(SERIES, params=HUGE_PAGES, patches=("mutants", "tlb-mutants"), mutant=mutant)
    stage2traces.finds(lab, command, (rule, words))
