// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of one vCPU on a huge page that the dirty log splits, counted: how
 * many it takes to split the block, to write to its pages, and to have the
 * block back when the slot does not log any more. arm64, for v7.3's milestones
 * `split` and `counts`; needs one hugetlb page of 2 MiB.
 */
#include <stdio.h>
#include <sys/mman.h>

#include <linux/bitmap.h>
#include <linux/bitops.h>

#include "compat.h"
#include "metric.h"

#define TEST_SLOT	1
#define ADDR		(64ul << 30)
/* Memory that no block can map */
#define SMALL_SLOT	2
#define SMALL_ADDR	(65ul << 30)
#define NR_PAGES	512u
#define STRIDE		4096u

enum access { READ_PAGES, WRITE_PAGES };

/* What the guest does next: pages from first on, so many. */
static u64 guest_memory = ADDR, guest_access, guest_first, guest_nr;

static void guest_code(void)
{
	u64 i;

	for (;;) {
		for (i = READ_ONCE(guest_first); i < guest_first + READ_ONCE(guest_nr); i++) {
			u64 *p = (u64 *)(READ_ONCE(guest_memory) + i * STRIDE);

			if (READ_ONCE(guest_access) == WRITE_PAGES)
				WRITE_ONCE(*p, i);
			else
				READ_ONCE(*p);
		}
		GUEST_SYNC(0);
	}
}

/* Returns how many faults it took. */
static u64 guest_does(struct kvm_vcpu *vcpu, enum access access, u64 first, u64 nr)
{
	u64 before = vcpu_get_stat(vcpu, pf_taken);

	guest_access = access;
	guest_first = first;
	guest_nr = nr;
	sync_global_to_guest(vcpu->vm, guest_access);
	sync_global_to_guest(vcpu->vm, guest_first);
	sync_global_to_guest(vcpu->vm, guest_nr);
	vcpu_run(vcpu);
	TEST_ASSERT(get_ucall(vcpu, NULL) == UCALL_SYNC, "unexpected exit: %s",
		    exit_reason_str(vcpu->run->exit_reason));
	return vcpu_get_stat(vcpu, pf_taken) - before;
}

static void expect(const char *what, const char *name, u64 faults, u64 expected)
{
	printf("%s: %lu faults\n", what, (unsigned long)faults);
	metric(name, faults, "count");
	TEST_ASSERT(faults == expected, "%s: %lu faults, expected %lu", what,
		    (unsigned long)faults, (unsigned long)expected);
}

int main(void)
{
	unsigned long *log = bitmap_zalloc(NR_PAGES);
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	u64 page, fast;

	vm = __vm_create_shape_with_one_vcpu(VM_SHAPE(VM_MODE_P40V48_4K), &vcpu, 0, guest_code);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS_HUGETLB_2MB, ADDR, TEST_SLOT,
				    NR_PAGES, 0);
	virt_map(vm, ADDR, ADDR, NR_PAGES);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, SMALL_ADDR, SMALL_SLOT, NR_PAGES, 0);
	madvise(addr_gpa2hva(vm, SMALL_ADDR), NR_PAGES * STRIDE, MADV_NOHUGEPAGE);
	virt_map(vm, SMALL_ADDR, SMALL_ADDR, NR_PAGES);
	/* Maps the block, and what the guest needs besides: code, data, its page tables. */
	guest_does(vcpu, WRITE_PAGES, 0, 1);

	expect("write to the block", "write_block_faults",
	       guest_does(vcpu, WRITE_PAGES, 0, NR_PAGES), 0);
	vm_mem_region_set_flags(vm, TEST_SLOT, KVM_MEM_LOG_DIRTY_PAGES);
	expect("split it by a write", "split_faults",
	       guest_does(vcpu, WRITE_PAGES, 7, 1), 1);
	expect("read all pages", "read_pages_faults",
	       guest_does(vcpu, READ_PAGES, 0, NR_PAGES), 0);
	expect("write to all pages", "write_pages_faults",
	       guest_does(vcpu, WRITE_PAGES, 0, NR_PAGES), NR_PAGES - 1);

	kvm_vm_get_dirty_log(vm, TEST_SLOT, log);
	for (page = 0; page < NR_PAGES; page++)
		TEST_ASSERT(test_bit(page, log), "page %lu is not in the log", (unsigned long)page);
	fast = vcpu_get_stat(vcpu, pf_fast);
	expect("write to all pages after a harvest", "write_after_harvest_faults",
	       guest_does(vcpu, WRITE_PAGES, 0, NR_PAGES), NR_PAGES);
	expect("of these without mmu_lock", "write_after_harvest_fast_faults",
	       vcpu_get_stat(vcpu, pf_fast) - fast, NR_PAGES);

	kvm_vm_get_dirty_log(vm, TEST_SLOT, log);
	vm_mem_region_set_flags(vm, TEST_SLOT, 0);
	expect("read all pages after logging", "read_after_logging_faults",
	       guest_does(vcpu, READ_PAGES, 0, NR_PAGES), 1);
	expect("write to the block again", "write_block_again_faults",
	       guest_does(vcpu, WRITE_PAGES, 0, NR_PAGES), 0);

	/* Small pages stay write-protected: no fault without mmu_lock gives it back. */
	guest_memory = SMALL_ADDR;
	sync_global_to_guest(vm, guest_memory);
	guest_does(vcpu, WRITE_PAGES, 0, NR_PAGES);
	vm_mem_region_set_flags(vm, SMALL_SLOT, KVM_MEM_LOG_DIRTY_PAGES);
	vm_mem_region_set_flags(vm, SMALL_SLOT, 0);
	fast = vcpu_get_stat(vcpu, pf_fast);
	expect("write to small pages after logging", "write_after_logging_faults",
	       guest_does(vcpu, WRITE_PAGES, 0, NR_PAGES), NR_PAGES);
	expect("of these without mmu_lock", "write_after_logging_fast_faults",
	       vcpu_get_stat(vcpu, pf_fast) - fast, 0);
	kvm_vm_free(vm);
	free(log);
	return 0;
}
