// SPDX-License-Identifier: GPL-2.0
/*
 * Stage-2 faults, aging, the dirty log and unmapping, all of the same few pages,
 * so that they race as often as they can. arm64.
 *
 * What is read and logged is not verified: that is what stage2_fault_stress_test
 * does, with more memory and fewer races. Here the kernel's own checks judge,
 * and patches/debug/v7.3-aging-delays.patch and v7.3-undo-delays.patch count.
 *
 * stage2_race_test pages|blocks SECONDS
 *
 * pages: 4 pages. The log is harvested all the time, and the pages are unmapped
 * again and again.
 * blocks: a huge page, of which 16 pages are written to. Logging is turned on,
 * which has the block split, and off, after which it is mapped by a block again.
 *
 * The last vCPU only reads, so it never waits in a fault of dirty logging.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "host_mm.h"
#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"

#define SLOT		1
#define ADDR		(64ul << 30)
#define BLOCK		(2ul << 20)
#define NR_VCPUS	4u
/* Without pauses vCPUs would hardly run. */
#define PAUSE_US	500u

/* Of the guest. */
static u64 stride, nr_pages, stop;

static struct kvm_vm *vm;
static u8 *memory;
static u64 page_size, size, harvests, toggles, marked;
static bool quit;

static void guest_code(u64 seed, u64 writes)
{
	u64 random = seed;

	while (!READ_ONCE(stop)) {
		u64 *p;

		random = random * 6364136223846793005ul + 1442695040888963407ul;
		p = (u64 *)(ADDR + (random >> 32) % nr_pages * stride);
		if (writes && random >> 58 & 1)
			WRITE_ONCE(*p, random);
		else
			READ_ONCE(*p);
	}
	GUEST_DONE();
}

static void *run_vcpu(void *vcpu)
{
	int ret;

	do {
		ret = __vcpu_run(vcpu);
		/* Memory that must not be accessed at the moment. */
	} while (ret && errno == EFAULT);
	TEST_ASSERT(!ret, "KVM_RUN: %d", errno);
	return NULL;
}

static void *age(void *nr_folios)
{
	while (!READ_ONCE(quit)) {
		marked += page_idle_mark_range(memory, (uintptr_t)nr_folios);
		usleep(PAUSE_US / 2);
	}
	return NULL;
}

static void *unmap(void *unused)
{
	/* The pages stay, so that they can be aged at once when they are mapped again. */
	while (!READ_ONCE(quit)) {
		mprotect(memory, size, PROT_NONE);
		mprotect(memory, size, PROT_READ | PROT_WRITE);
		/* A fault that maps a page again takes long. */
		usleep(20 * PAUSE_US);
	}
	return NULL;
}

static void set_slot(u32 flags)
{
	vm_set_user_memory_region(vm, SLOT, flags, ADDR, size, memory);
}

static void *harvest(void *unused)
{
	unsigned long *log = calloc(1, size / page_size / 8 + 8);

	while (!READ_ONCE(quit)) {
		kvm_vm_get_dirty_log(vm, SLOT, log);
		harvests++;
		usleep(PAUSE_US);
	}
	return NULL;
}

static void *toggle(void *unused)
{
	unsigned long *log = calloc(1, size / page_size / 8 + 8);
	while (!READ_ONCE(quit)) {
		set_slot(KVM_MEM_LOG_DIRTY_PAGES);
		usleep(2 * PAUSE_US);
		/* What is write-protected faults, and is mapped by a block then. */
		kvm_vm_get_dirty_log(vm, SLOT, log);
		set_slot(0);
		toggles++;
		usleep(16 * PAUSE_US);
	}
	return NULL;
}

int main(int argc, char *argv[])
{
	struct kvm_vcpu *vcpus[NR_VCPUS];
	pthread_t threads[NR_VCPUS + 3];
	unsigned int i, nr = 0;
	bool blocks;
	u8 *start;

	TEST_ASSERT(argc == 3, "stage2_race_test pages|blocks SECONDS");
	TEST_REQUIRE(page_idle_open());
	blocks = !strcmp(argv[1], "blocks");
	TEST_ASSERT(blocks || !strcmp(argv[1], "pages"), "stage2_race_test pages|blocks SECONDS");
	page_size = getpagesize();
	nr_pages = blocks ? 16 : 4;
	stride = blocks ? BLOCK / nr_pages : page_size;
	size = blocks ? BLOCK : nr_pages * page_size;

	start = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(start != MAP_FAILED, "no memory");
	memory = (u8 *)(((uintptr_t)start + BLOCK - 1) & ~(BLOCK - 1));
	/* A VMA of its own: to split or merge one takes a lock that aging holds, too. */
	madvise(memory, size, blocks ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(memory, 0, size);

	vm = __vm_create_with_vcpus(VM_SHAPE(VM_MODE_P40V48_4K), NR_VCPUS, 1024, guest_code, vcpus);
	set_slot(blocks ? 0 : KVM_MEM_LOG_DIRTY_PAGES);
	virt_map(vm, ADDR, ADDR, size / 4096);
	sync_global_to_guest(vm, stride);
	sync_global_to_guest(vm, nr_pages);

	for (i = 0; i < NR_VCPUS; i++) {
		vcpu_args_set(vcpus[i], 2, i + 1ul, (u64)(i + 1 < NR_VCPUS));
		pthread_create(&threads[nr++], NULL, run_vcpu, vcpus[i]);
	}
	pthread_create(&threads[nr++], NULL, age, (void *)(blocks ? 1 : nr_pages));
	if (blocks) {
		pthread_create(&threads[nr++], NULL, toggle, NULL);
	} else {
		pthread_create(&threads[nr++], NULL, harvest, NULL);
		pthread_create(&threads[nr++], NULL, unmap, NULL);
	}

	sleep(atoi_positive("seconds", argv[2]));
	WRITE_ONCE(quit, true);
	stop = 1;
	sync_global_to_guest(vm, stop);
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	kvm_vm_free(vm);
	printf("%s: %llu harvests, logging turned on and off %llu times, %llu times a page was marked as idle\n",
	       argv[1], (unsigned long long)harvests, (unsigned long long)toggles,
	       (unsigned long long)marked);
	return 0;
}
