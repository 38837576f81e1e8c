// SPDX-License-Identifier: GPL-2.0
/*
 * Whether all writes that follow a harvest of the dirty log are in the next log.
 *
 * idle: while the log is harvested the vCPU spins in the guest. Then it writes
 * to pages to which it has written before. If their translations have stayed
 * writable in a TLB, these writes are not logged. QEMU empties a nested guest's
 * TLB at each exit, so a vCPU that exits would find no translation in it,
 * flushed or not.
 *
 * busy: the vCPU goes on writing to all pages while the log is harvested. If a
 * fault makes a page writable and its bit is cleared afterwards, the writes that
 * follow are not logged.
 *
 * dirty_harvest_test idle|busy ROUNDS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "metric.h"

#define SLOT		1
#define ADDR		0xc0000000ul
#define PAGE		4096ul
/* So many that KVM may release mmu_lock on the way. */
#define NR_PAGES	4096u
/* Those that are written to, page n of word n of the bitmap. */
#define NR_WRITTEN	(NR_PAGES / 64)
#define OFFSET(n)	((n) * 65 * PAGE)
#define QUIT		(~0ul)

/*
 * Of the guest; the host finds them by SHARED(). The guest goes over the pages
 * until it has done so @wanted times, and counts in @done.
 */
static u64 wanted, done;

#define SHARED(vm, name) (*(volatile typeof(name) *)addr_gva2hva(vm, (gva_t)&(name)))

static void guest_code(void)
{
	u64 i, last;

	while ((last = READ_ONCE(wanted)) != QUIT) {
		if (done >= last)
			continue;
		/* Twice: the second time without faults, so all get into the TLB. */
		for (i = 0; i < 2 * NR_WRITTEN; i++)
			WRITE_ONCE(*(u64 *)(ADDR + OFFSET(i % NR_WRITTEN)), done + 1);
		WRITE_ONCE(done, done + 1);
	}
	GUEST_DONE();
}

static void *vcpu_thread(void *vcpu)
{
	vcpu_run(vcpu);
	return NULL;
}

/*
 * Wait until the guest has gone over its pages @passes times more; if it is not
 * @busy, it stops then.
 */
static void have_written(struct kvm_vm *vm, bool busy, u64 passes)
{
	u64 enough = SHARED(vm, done) + passes;

	SHARED(vm, wanted) = busy ? QUIT - 1 : enough;
	while (SHARED(vm, done) < enough)
		;
}

/* Harvest the log: clear it, or get and clear it if @vm has no manual protection. */
static void harvest(struct kvm_vm *vm, bool manual, unsigned long *bitmap)
{
	if (manual) {
		memset(bitmap, 0xff, NR_PAGES / 8);
		kvm_vm_clear_dirty_log(vm, SLOT, bitmap, 0, NR_PAGES);
	} else {
		kvm_vm_get_dirty_log(vm, SLOT, bitmap);
	}
}

static u64 content(char *mem, u64 n)
{
	return READ_ONCE(*(u64 *)(mem + OFFSET(n)));
}

/* How many pages change after a harvest and are not in the next log. */
static u64 round_missing(struct kvm_vm *vm, bool busy, bool manual)
{
	char *mem = addr_gpa2hva(vm, ADDR);
	unsigned long bitmap[NR_PAGES / 64];
	u64 before[NR_WRITTEN], i, missing = 0;

	have_written(vm, busy, 1);
	harvest(vm, manual, bitmap);
	for (i = 0; i < NR_WRITTEN; i++)
		before[i] = content(mem, i);
	/* If it is busy the first pass may have begun before the harvest. */
	have_written(vm, busy, busy ? 2 : 1);

	kvm_vm_get_dirty_log(vm, SLOT, bitmap);
	for (i = 0; i < NR_WRITTEN; i++) {
		TEST_ASSERT(content(mem, i) != before[i], "page %lu was not written to", i);
		missing += !(bitmap[i] >> i & 1);
	}
	return missing;
}

static u64 count_missing(u64 rounds, bool busy, bool manual)
{
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	pthread_t thread;
	u64 i, missing = 0;

	vm = vm_create_with_one_vcpu(&vcpu, guest_code);
	if (manual)
		vm_enable_cap(vm, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2,
			      KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, ADDR, SLOT, NR_PAGES,
				    KVM_MEM_LOG_DIRTY_PAGES);
	virt_map(vm, ADDR, ADDR, NR_PAGES);
	pthread_create(&thread, NULL, vcpu_thread, vcpu);

	for (i = 0; i < rounds; i++)
		missing += round_missing(vm, busy, manual);

	SHARED(vm, wanted) = QUIT;
	pthread_join(thread, NULL);
	kvm_vm_free(vm);
	return missing;
}

int main(int argc, char *argv[])
{
	u64 rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	bool busy = argc == 3 && !strcmp(argv[1], "busy");
	u64 missing[2];

	if (!rounds || (!busy && strcmp(argv[1], "idle"))) {
		fprintf(stderr, "usage: %s idle|busy ROUNDS\n", argv[0]);
		return 1;
	}
	missing[0] = count_missing(rounds, busy, false);
	missing[1] = count_missing(rounds, busy, true);
	printf("%s: of %lu pages that were written to after a harvest %lu (get) and %lu (clear) are not in the next log\n",
	       argv[1], rounds * NR_WRITTEN, missing[0], missing[1]);
	metric("missing.get", missing[0], "pages");
	metric("missing.clear", missing[1], "pages");
	TEST_ASSERT(!missing[0] && !missing[1], "writes are missing in the log");
	return 0;
}
