// SPDX-License-Identifier: GPL-2.0
/*
 * Whether blocks come back when the dirty log is off
 *
 * The log splits each huge page of a memslot by one write, and is turned off. The
 * guest reads all pages. Then the log splits again what has become a block. It is
 * counted how often. arm64, on kernels that count stage2_blocks_split.
 */
#include <stdio.h>
#include <sys/mman.h>

#include <linux/bitops.h>

#include "compat.h"
#include "host_mm.h"
#include "old_vgic.h"
#include "stress_util.h"

#define TEST_SLOT	1
#define ADDR		(64ul << 30)
#define BLOCK		(2ul << 20)
#define NR_BLOCKS	16ul
#define SIZE		(NR_BLOCKS * BLOCK)

enum access { READ_PAGES, WRITE_BLOCKS, VERIFY_PAGES };

static u64 guest_access, guest_page_size, guest_value;

static u64 value_of(u64 gva)
{
	return gva % BLOCK ? gva : gva + guest_value;
}

static void guest_code(void)
{
	u64 gva;

	for (;;) {
		u64 access = READ_ONCE(guest_access);
		u64 step = access == WRITE_BLOCKS ? BLOCK : guest_page_size;
		u64 bad = 0;

		for (gva = ADDR; gva < ADDR + SIZE; gva += step) {
			if (access == WRITE_BLOCKS)
				WRITE_ONCE(*(u64 *)gva, value_of(gva));
			else
				bad += READ_ONCE(*(u64 *)gva) != value_of(gva);
		}
		GUEST_SYNC(access == VERIFY_PAGES ? bad : 0);
	}
}

static void guest_does(struct kvm_vcpu *vcpu, enum access access, u64 value)
{
	struct ucall uc;

	guest_access = access;
	guest_value = value;
	sync_global_to_guest(vcpu->vm, guest_access);
	sync_global_to_guest(vcpu->vm, guest_value);
	vcpu_run(vcpu);
	TEST_ASSERT(get_ucall(vcpu, &uc) == UCALL_SYNC && !uc.args[1],
		    "%lu pages have another value than was written", uc.args[1]);
}

static u64 blocks_split(struct kvm_vm *vm)
{
	u64 value;

	TEST_ASSERT(vm_read_counter(vm, "stage2_blocks_split", &value),
		    "the counter cannot be read");
	return value;
}

static void log_dirty(struct kvm_vm *vm, void *mem, bool on)
{
	vm_set_user_memory_region(vm, TEST_SLOT, on ? KVM_MEM_LOG_DIRTY_PAGES : 0, ADDR, SIZE, mem);
}

int main(void)
{
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	u64 before, split, again, value;
	char *mem;

	TEST_REQUIRE(!thp_missing());
	vm = __vm_create_with_one_vcpu(&vcpu, SIZE / MIN_PAGE_SIZE, guest_code);
	TEST_REQUIRE(vm_read_counter(vm, "stage2_blocks_split", &value));
	setup_old_vgic(vm, 1);
	guest_page_size = vm->page_size;
	sync_global_to_guest(vm, guest_page_size);

	mem = reserve_aligned(SIZE, BLOCK);
	map_fixed(mem, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(!madvise(mem, SIZE, MADV_HUGEPAGE), "madvise");
	for (u64 i = 0; i < SIZE; i += guest_page_size)
		*(u64 *)(mem + i) = ADDR + i;
	log_dirty(vm, mem, false);
	virt_map(vm, ADDR, ADDR, SIZE / vm->page_size);
	guest_does(vcpu, WRITE_BLOCKS, 1);

	before = blocks_split(vm);
	log_dirty(vm, mem, true);
	guest_does(vcpu, WRITE_BLOCKS, 2);
	split = blocks_split(vm) - before;
	log_dirty(vm, mem, false);
	guest_does(vcpu, VERIFY_PAGES, 2);
	/* To pages that the log has write-protected, and the block may be written to */
	log_dirty(vm, mem, true);
	guest_does(vcpu, WRITE_BLOCKS, 3);
	again = blocks_split(vm) - before - split;
	log_dirty(vm, mem, false);
	guest_does(vcpu, VERIFY_PAGES, 3);

	printf("blocks split: %lu, and again: %lu\n", (unsigned long)split, (unsigned long)again);
	TEST_ASSERT(split > NR_BLOCKS / 2, "the host has no huge pages");
	TEST_ASSERT(again == split, "%lu of %lu blocks have not come back",
		    (unsigned long)(split - again), (unsigned long)split);
	kvm_vm_free(vm);
	return 0;
}
