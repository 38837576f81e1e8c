// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a guest keeps access to a page that the host has taken away, when it
 * executes INVLPG meanwhile. With shadow page tables alone (kvm_intel.ept=0,
 * kvm_amd.npt=0) does KVM see an INVLPG.
 *
 * In each round the guest writes to all pages, so that they are mapped. Then it
 * changes a bit that is its own in their page-table entries, which makes KVM's
 * shadow of them unsync, and executes INVLPG for each, again and again, while
 * the host discards the pages. Then the guest writes to all pages once more. The
 * host must see this: it does not if the guest wrote to a page that was freed.
 *
 * invlpg_test [SECONDS]
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "compat.h"
#include "metric.h"

#define PAGES		512
#define SIZE		(PAGES * 4096ul)
#define MEM_SLOT	10
#define MEM_GPA		0x40000000ul
#define MEM_GVA		0x40000000ul
#define PTES_GVA	0x80000000ul
/* A bit of a page-table entry that hardware ignores */
#define PTE_AVL		(1ul << 9)
#define PTE_ADDR	0x000ffffffffff000ul

enum phase { WRITE, INVALIDATE, QUIT };

/* The guest's; the host finds them by SHARED(). */
static volatile enum phase phase;
static volatile u64 value, written, invalidated;

#define SHARED(vm, name) \
	(*(volatile typeof(name) *)addr_gva2hva(vm, (gva_t)&(name)))

static void guest_write_all(void)
{
	u64 i;

	for (i = 0; i < PAGES; i++)
		*(volatile u64 *)(MEM_GVA + i * 4096) = value;
	written = value;
}

static void guest_invalidate_all(void)
{
	volatile u64 *ptes = (void *)PTES_GVA;
	u64 i;

	for (i = 0; i < PAGES && phase == INVALIDATE; i++) {
		ptes[i] ^= PTE_AVL;
		asm volatile("invlpg (%0)" :: "r"(MEM_GVA + i * 4096) : "memory");
		invalidated++;
	}
}

static void guest_code(void)
{
	while (phase != QUIT) {
		if (phase == INVALIDATE)
			guest_invalidate_all();
		else if (written != value)
			guest_write_all();
	}
	GUEST_DONE();
}

/* The guest physical address of the page table that maps @gva */
static gpa_t page_table(struct kvm_vm *vm, u64 gva)
{
#ifdef HAVE_KVM_MMU
	gpa_t pa = vm->mmu.pgd;
#else
	gpa_t pa = vm->pgd;
#endif
	int shift;

	for (shift = 39; shift > 12; shift -= 9)
		pa = ((u64 *)addr_gpa2hva(vm, pa))[(gva >> shift) & 511] & PTE_ADDR;
	return pa;
}

static void *vcpu_thread(void *data)
{
	struct kvm_vcpu *vcpu = data;

	vcpu_run(vcpu);
	return NULL;
}

/* Have the guest write a new value to all pages. */
static void write_all(struct kvm_vm *vm)
{
	SHARED(vm, phase) = WRITE;
	SHARED(vm, value)++;
	while (SHARED(vm, written) != SHARED(vm, value))
		;
}

/* Discard all pages while the guest invalidates, after @count invalidations. */
static void discard_all(struct kvm_vm *vm, void *mem, u64 count)
{
	u64 start = SHARED(vm, invalidated);

	SHARED(vm, phase) = INVALIDATE;
	while (SHARED(vm, invalidated) - start < count)
		;
	TEST_ASSERT(!madvise(mem, SIZE, MADV_DONTNEED), "madvise");
}

/* The number of pages that do not have what the guest has written */
static unsigned long count_lost(struct kvm_vm *vm, char *mem)
{
	unsigned long lost = 0;
	int i;

	for (i = 0; i < PAGES; i++)
		lost += *(volatile u64 *)(mem + i * 4096) != SHARED(vm, value);
	return lost;
}

int main(int argc, char *argv[])
{
	int seconds = argc > 1 ? atoi(argv[1]) : 10;
	unsigned long rounds, lost = 0;
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	pthread_t thread;
	time_t end;
	void *mem;

	if (argc > 2 || seconds <= 0) {
		fprintf(stderr, "usage: %s [SECONDS]\n", argv[0]);
		return 1;
	}

	vm = vm_create_with_one_vcpu(&vcpu, guest_code);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, MEM_GPA, MEM_SLOT,
				    PAGES, 0);
	virt_map(vm, MEM_GVA, MEM_GPA, PAGES);
	virt_pg_map(vm, PTES_GVA, page_table(vm, MEM_GVA));
	mem = addr_gpa2hva(vm, MEM_GPA);
	pthread_create(&thread, NULL, vcpu_thread, vcpu);

	end = time(NULL) + seconds;
	for (rounds = 0; !lost && time(NULL) < end; rounds++) {
		write_all(vm);
		discard_all(vm, mem, PAGES / 4 + rounds % PAGES);
		write_all(vm);
		lost = count_lost(vm, mem);
	}

	SHARED(vm, phase) = QUIT;
	pthread_join(thread, NULL);
	printf("rounds %lu, INVLPGs %lu: %lu pages that the guest wrote to were not its any more\n",
	       rounds, (unsigned long)SHARED(vm, invalidated), lost);
	metric("rounds", rounds, "count");
	metric("invlpgs", SHARED(vm, invalidated), "count");
	metric("lost", lost, "pages");
	kvm_vm_free(vm);
	TEST_ASSERT(!lost, "the guest has access to pages that were taken away");
	return 0;
}
