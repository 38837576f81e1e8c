// SPDX-License-Identifier: GPL-2.0
/*
 * Stage-2 faults, aging, the dirty log and unmapping, all of the same few pages,
 * so that they race as often as they can. arm64.
 *
 * What is read and logged is not verified: that is what stage2_fault_stress_test
 * does, with more memory and fewer races. Here the kernel's own checks judge,
 * and patches/instruments/v7.3/aging-delays.patch and undo-delays.patch count.
 *
 * stage2_race_test MODE SECONDS
 *
 * pages: the log of 4 pages is harvested all the time, and the pages are unmapped
 * again and again.
 * page: the log of one page is harvested all the time.
 * unmap: one page, which is not logged, is unmapped again and again.
 * blocks: a huge page, of which 16 pages are written to. Logging is turned on,
 * which has the block split, and off, after which it is mapped by a block again.
 * split: the same with one vCPU, so that aging waits until it splits the block.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "compat.h"
#include "host_mm.h"
#include "metric.h"

#define SLOT		1
#define ADDR		(64ul << 30)
#define BLOCK		(2ul << 20)
#define MAX_VCPUS	4u
/* Without pauses vCPUs would hardly run. */
#define PAUSE_US	500u

static const struct mode {
	const char *name;
	unsigned int nr_pages;
	/* The last so many vCPUs only read: they never wait in a fault of dirty logging. */
	unsigned int vcpus, readers;
	bool block, ages, harvests;
	/* A fault that maps a page again takes long. 0: no unmapping. */
	unsigned int unmap_pause_us;
} modes[] = {
	{ "pages",  .nr_pages = 4,  .vcpus = 4, .readers = 1, .ages = true, .harvests = true,
	  .unmap_pause_us = 20 * PAUSE_US },
	{ "page",   .nr_pages = 1,  .vcpus = 3, .harvests = true },
	{ "unmap",  .nr_pages = 1,  .vcpus = 1, .ages = true, .unmap_pause_us = 20 * PAUSE_US },
	{ "blocks", .nr_pages = 16, .vcpus = 4, .readers = 1, .ages = true, .block = true },
	{ "split",  .nr_pages = 16, .vcpus = 1, .ages = true, .block = true },
};

/* Of the guest. */
static u64 stride, nr_pages, stop;

static const struct mode *mode;
static struct kvm_vm *vm;
static u8 *memory;
static u64 page_size, size, harvests, unmappings, toggles, marked;
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
	struct ucall uc;
	int ret;

	do {
		ret = __vcpu_run(vcpu);
		/* Memory that must not be accessed at the moment. */
	} while (ret && errno == EFAULT);
	TEST_ASSERT(!ret, "KVM_RUN: %d", errno);
	TEST_ASSERT(get_ucall(vcpu, &uc) == UCALL_DONE, "the guest ends by itself");
	return NULL;
}

static void *age(void *unused)
{
	while (!READ_ONCE(quit)) {
		marked += page_idle_mark_range(memory, mode->block ? 1 : mode->nr_pages);
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
		unmappings++;
		usleep(mode->unmap_pause_us);
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

/* New pages wait in a batch of their CPU, and page_idle skips them until then. */
static void move_batches_to_lru(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	TEST_ASSERT(fd >= 0 && write(fd, "1", 1) == 1, "drop_caches: %d", errno);
	close(fd);
}

static const struct mode *find_mode(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(modes); i++)
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	TEST_FAIL("stage2_race_test pages|page|unmap|blocks|split SECONDS");
	return NULL;
}

int main(int argc, char *argv[])
{
	struct kvm_vcpu *vcpus[MAX_VCPUS];
	pthread_t threads[MAX_VCPUS + 3];
	unsigned int i, nr = 0;
	u8 *start;

	mode = find_mode(argc == 3 ? argv[1] : "");
	TEST_REQUIRE(page_idle_open());
	page_size = getpagesize();
	nr_pages = mode->nr_pages;
	stride = mode->block ? BLOCK / nr_pages : page_size;
	size = nr_pages * stride;

	start = mmap(NULL, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(start != MAP_FAILED, "no memory");
	memory = (u8 *)(((uintptr_t)start + BLOCK - 1) & ~(BLOCK - 1));
	/*
	 * A VMA of its own, which merges with no other: to split or merge one takes
	 * a lock that page_idle holds.
	 */
	madvise(memory, size, MADV_DONTFORK);
	madvise(memory, size, mode->block ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(memory, 0, size);
	move_batches_to_lru();

	vm = __vm_create_with_vcpus(VM_SHAPE(VM_MODE_P40V48_4K), mode->vcpus, 1024, guest_code, vcpus);
	set_slot(mode->harvests ? KVM_MEM_LOG_DIRTY_PAGES : 0);
	virt_map(vm, ADDR, ADDR, size / 4096);
	sync_global_to_guest(vm, stride);
	sync_global_to_guest(vm, nr_pages);

	for (i = 0; i < mode->vcpus; i++) {
		vcpu_args_set(vcpus[i], 2, i + 1ul, (u64)(i + mode->readers < mode->vcpus));
		pthread_create(&threads[nr++], NULL, run_vcpu, vcpus[i]);
	}
	if (mode->ages)
		pthread_create(&threads[nr++], NULL, age, NULL);
	if (mode->block)
		pthread_create(&threads[nr++], NULL, toggle, NULL);
	if (mode->harvests)
		pthread_create(&threads[nr++], NULL, harvest, NULL);
	if (mode->unmap_pause_us)
		pthread_create(&threads[nr++], NULL, unmap, NULL);

	sleep(atoi_positive("seconds", argv[2]));
	WRITE_ONCE(quit, true);
	stop = 1;
	sync_global_to_guest(vm, stop);
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	kvm_vm_free(vm);
	printf("%s: %llu harvests, %llu times unmapped, logging turned on and off %llu times, %llu times a page was marked as idle\n",
	       mode->name, (unsigned long long)harvests, (unsigned long long)unmappings,
	       (unsigned long long)toggles, (unsigned long long)marked);
	metric("harvests", harvests, "count");
	metric("unmappings", unmappings, "count");
	metric("toggles", toggles, "count");
	metric("marked", marked, "pages");
	return 0;
}
