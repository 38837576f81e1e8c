// SPDX-License-Identifier: GPL-2.0
/*
 * A vCPU with 2 MiB of hot code and data takes faults of the dirty log: after
 * each of them it executes and reads all that is hot. How many TLB entries it
 * has to fill again is counted by a plugin of QEMU, tlb-refills. arm64.
 *
 * In each round the guest reads all logged pages and goes over what is hot once,
 * so that what the harvest before has invalidated is in the TLB again. Then it
 * writes to one logged page after the other. Each was write-protected by the
 * harvest (in the first round: was mapped without write permission by the
 * read), so each write is one fault.
 *
 * The guest's hot code is one function in each page, which the host has put
 * there before the vCPU runs.
 *
 * "block": one block of the guest's stage 1 maps the logged pages, and all that
 * is left of its 2 MiB, which is hot, too.
 *
 * tlb_refill_test ROUNDS [block]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/sizes.h>

#include "compat.h"
#include "metric.h"

#define LOG_SLOT	1
#define HOT_SLOT	2
#define PAGE		((u64)SZ_4K)
#define LOG_ADDR	(64ul << 30)
#define NR_LOGGED	64u
#define HOT_ADDR	(65ul << 30)
#define NR_CODE		256u
#define NR_HOT		512u		/* Code, then data. */
#define BLOCK_SLOT	3
#define NR_BLOCK	512u
#define PTE_TABLE_BIT	BIT_ULL(1)
#define RET		0xd65f03c0u

static bool use_block;

static void guest_uses_what_is_hot(void)
{
	u64 i;

	for (i = 0; i < NR_CODE; i++)
		((void (*)(void))(HOT_ADDR + i * PAGE))();
	for (; i < NR_HOT; i++)
		READ_ONCE(*(u64 *)(HOT_ADDR + i * PAGE));
	for (i = NR_LOGGED; use_block && i < NR_BLOCK; i++)
		READ_ONCE(*(u64 *)(LOG_ADDR + i * PAGE));
}

static void guest_code(void)
{
	u64 round, i;

	for (round = 1; ; round++) {
		for (i = 0; i < NR_LOGGED; i++)
			READ_ONCE(*(u64 *)(LOG_ADDR + i * PAGE));
		guest_uses_what_is_hot();
		for (i = 0; i < NR_LOGGED; i++) {
			WRITE_ONCE(*(u64 *)(LOG_ADDR + i * PAGE), round);
			guest_uses_what_is_hot();
		}
		GUEST_SYNC(round);
	}
}

/* Memory that the host has written to, so no fault has to do with the page of zeroes. */
static void add_memory(struct kvm_vm *vm, u64 addr, u32 slot, u64 nr, u32 flags)
{
	u64 i;

	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, addr, slot, nr, flags);
	virt_map(vm, addr, addr, nr);
	for (i = 0; i < nr; i++)
		*(u64 *)addr_gpa2hva(vm, addr + i * PAGE) = ~0ul;
}

static void add_code(struct kvm_vm *vm)
{
	char *memory = addr_gpa2hva(vm, HOT_ADDR);
	u64 i;

	for (i = 0; i < NR_CODE; i++)
		*(u32 *)(memory + i * PAGE) = RET;
	__builtin___clear_cache(memory, memory + NR_CODE * PAGE);
}

/* Before the vCPU runs: instead of the table of pages, which are contiguous, a block. */
static void map_block(struct kvm_vm *vm)
{
	u64 *entry = virt_get_pte_hva_at_level(vm, LOG_ADDR, 2);

	*entry = *virt_get_pte_hva(vm, LOG_ADDR) & ~PTE_TABLE_BIT;
}

/* The round's writes, all of them in the log. */
static void check_log(struct kvm_vm *vm, unsigned long *log, u64 round)
{
	u64 i;

	kvm_vm_get_dirty_log(vm, LOG_SLOT, log);
	for (i = 0; i < NR_LOGGED; i++) {
		TEST_ASSERT(test_bit(i, log), "page %lu is not in the log", (unsigned long)i);
		TEST_ASSERT(*(u64 *)addr_gpa2hva(vm, LOG_ADDR + i * PAGE) == round,
			    "page %lu was not written to", (unsigned long)i);
	}
}

int main(int argc, char *argv[])
{
	bool block = argc == 3 && !strcmp(argv[2], "block");
	u64 round, rounds = argc == 2 || block ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long *log = bitmap_zalloc(NR_LOGGED);
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;

	if (!rounds) {
		fprintf(stderr, "usage: %s ROUNDS [block]\n", argv[0]);
		return 1;
	}
	/* What a TLB holds is of a CPU. */
	pin_self_to_any_cpu();
	vm = __vm_create_shape_with_one_vcpu(VM_SHAPE(VM_MODE_P40V48_4K), &vcpu, 0, guest_code);
	add_memory(vm, LOG_ADDR, LOG_SLOT, NR_LOGGED, KVM_MEM_LOG_DIRTY_PAGES);
	add_memory(vm, HOT_ADDR, HOT_SLOT, NR_HOT, 0);
	add_code(vm);
	if (block) {
		add_memory(vm, LOG_ADDR + NR_LOGGED * PAGE, BLOCK_SLOT, NR_BLOCK - NR_LOGGED, 0);
		map_block(vm);
	}
	use_block = block;
	sync_global_to_guest(vm, use_block);

	for (round = 1; round <= rounds; round++) {
		vcpu_run(vcpu);
		TEST_ASSERT(get_ucall(vcpu, NULL) == UCALL_SYNC, "unexpected exit: %s",
			    exit_reason_str(vcpu->run->exit_reason));
		check_log(vm, log, round);
	}
	printf("%lu faults of the dirty log, %u pages of hot code and data\n",
	       (unsigned long)(rounds * NR_LOGGED), NR_HOT);
	metric("faults", rounds * NR_LOGGED, "count");
	metric("hot_pages", NR_HOT, "pages");
	kvm_vm_free(vm);
	free(log);
	return 0;
}
