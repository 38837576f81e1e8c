// SPDX-License-Identifier: GPL-2.0
/*
 * KVM_CLEAR_DIRTY_LOG write-protects the pages of its bitmap and no others: the
 * faults of one vCPU that writes to all pages are counted. The first word of the
 * bitmap is of pages in two page tables. arm64, for v7.3's milestones `harvest`
 * and `counts`.
 */
#include <stdio.h>

#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <sys/mman.h>

#include "compat.h"

#define TEST_SLOT	1
#define PAGE		4096ul
/* So many pages of the first word are in the first table. */
#define NR_FIRST	17ul
#define ADDR		((64ul << 30) + (2ul << 20) - NR_FIRST * PAGE)
#define NR_WORDS	4u
#define NR_PAGES	(NR_WORDS * 64)

/* The same for each word. */
static const u64 masks[] = {
	~0ul,
	1ul,
	1ul << 63,
	1ul << 63 | 1,
	/* The last page of the first table; the first of the second; both. */
	1ul << (NR_FIRST - 1),
	1ul << NR_FIRST,
	3ul << (NR_FIRST - 1),
	0x5555555555555555,
	0xaaaaaaaaaaaaaaaa,
	0xff00000000000ff0,
};

static void guest_code(void)
{
	u64 i;

	for (;;) {
		for (i = 0; i < NR_PAGES; i++)
			WRITE_ONCE(*(u64 *)(ADDR + i * PAGE), i);
		GUEST_SYNC(0);
	}
}

/* Returns how many faults it took. */
static u64 guest_writes(struct kvm_vcpu *vcpu)
{
	u64 before = vcpu_get_stat(vcpu, pf_taken);

	vcpu_run(vcpu);
	TEST_ASSERT(get_ucall(vcpu, NULL) == UCALL_SYNC, "unexpected exit: %s",
		    exit_reason_str(vcpu->run->exit_reason));
	return vcpu_get_stat(vcpu, pf_taken) - before;
}

static void clear(struct kvm_vm *vm, u64 mask)
{
	u64 bits[NR_WORDS], log[NR_WORDS];
	u32 i;

	for (i = 0; i < NR_WORDS; i++)
		bits[i] = mask;
	kvm_vm_clear_dirty_log(vm, TEST_SLOT, bits, 0, NR_PAGES);
	kvm_vm_get_dirty_log(vm, TEST_SLOT, log);
	for (i = 0; i < NR_WORDS; i++)
		TEST_ASSERT(log[i] == ~mask, "word %u of the log is %lx, expected %lx", i,
			    (unsigned long)log[i], (unsigned long)~mask);
}

static void expect(const char *what, u64 mask, u64 faults, u64 expected)
{
	TEST_ASSERT(faults == expected, "%s %016lx: %lu faults, expected %lu", what,
		    (unsigned long)mask, (unsigned long)faults, (unsigned long)expected);
}

int main(void)
{
	u64 faults, total = 0, mask, gap;
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	void *memory;
	u32 i;

	vm = __vm_create_shape_with_one_vcpu(VM_SHAPE(VM_MODE_P40V48_4K), &vcpu, 0, guest_code);
	vm_enable_cap(vm, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, ADDR, TEST_SLOT, NR_PAGES, 0);
	virt_map(vm, ADDR, ADDR, NR_PAGES);
	memory = addr_gpa2hva(vm, ADDR);
	madvise(memory, NR_PAGES * PAGE, MADV_NOHUGEPAGE);
	/* Maps the pages, and what the guest needs besides. */
	guest_writes(vcpu);

	vm_mem_region_set_flags(vm, TEST_SLOT, KVM_MEM_LOG_DIRTY_PAGES);
	expect("logging is on", 0, guest_writes(vcpu), NR_PAGES);
	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		mask = masks[i];
		clear(vm, mask);
		faults = guest_writes(vcpu);
		expect("after a clear of", mask, faults, __builtin_popcountll(mask) * NR_WORDS);
		total += faults;
	}

	/* A gap in the memory, from the second page of a word to its last but one. */
	for (gap = 0; gap < NR_WORDS; gap++) {
		madvise(memory + (gap * 64 + 1) * PAGE, 62 * PAGE, MADV_DONTNEED);
		clear(vm, ~0ul);
		expect("after a clear with a gap", gap, guest_writes(vcpu), NR_PAGES);
	}
	/* No tables at all */
	madvise(memory, NR_PAGES * PAGE, MADV_DONTNEED);
	clear(vm, ~0ul);
	expect("after a clear of nothing", ~0ul, guest_writes(vcpu), NR_PAGES);
	kvm_vm_free(vm);
	printf("%lu faults\n", (unsigned long)total);
	return 0;
}
