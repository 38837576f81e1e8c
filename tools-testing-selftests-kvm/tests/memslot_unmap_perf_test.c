// SPDX-License-Identifier: GPL-2.0
/*
 * How long it takes to unmap memory of a VM, and for how long vCPUs wait meanwhile
 *
 * First, a large memslot with little in it: to create it, to turn the dirty log
 * on and off, to harvest it, to discard and to unmap the memory behind it, and to
 * delete it. On arm64 also to turn a vCPU's caches off and on, for which KVM
 * cleans all that is mapped if the CPUs do not have FWB.
 *
 * Then, a memslot that the guest has mapped all of: to discard its memory, to
 * delete the memslot, and to turn its dirty log on. Each is done while no vCPU
 * runs, and while all vCPUs write to pages of another memslot for the first time.
 * They take the time of each write. What "host only" takes is for the same memory
 * if no vCPU has touched it. With -l the dirty log has split its huge pages before,
 * each by one write; then it is unmapped and aged, too.
 *
 * While memory is being discarded, KVM maps nothing: a write that faults waits
 * until it is over. The other two let faults in, as soon as they get mmu_lock.
 *
 * It is verified that what was discarded reads as zeroes, and that nothing else
 * has changed.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/kernel.h>

#include "compat.h"
#include "guest_counter.h"
#include "host_mm.h"
#include "latency_hist.h"
#include "metric.h"
#include "old_vgic.h"
#include "stress_util.h"

#define MAX_VCPUS		64

/* The size of a huge page with 4K pages */
#define BLOCK_SIZE		(2UL << 20)

#define MAPPED_SLOT		1
#define FRESH_SLOT		2
#define SHARED_SLOT		3
#define SPARSE_SLOT		4
/* More of MAPPED_SLOT's kind, with -N */
#define FIRST_PART		4

/*
 * The same guest virtual as guest physical addresses, far from the test's code
 * and from what ucall() uses, which is at 640G.
 */
#define MAPPED_GPA		(16UL << 30)
#define FRESH_GPA		(32UL << 30)
#define SHARED_GPA		(44UL << 30)
#define SPARSE_GPA		(256UL << 30)
#define MAX_MAPPED		(16UL << 30)
#define MAX_FRESH		(8UL << 30)
#define MAX_SPARSE		(256UL << 30)
#define MAX_TOUCHED		4096

/* How many pages of what is mapped are verified, at most */
#define NR_VERIFIED		256

/* Writes of each vCPU before the host does something */
#define NR_WARM_UP		8

/* Stages of GUEST_SYNC() */
#define STAGE_DONE		1
#define STAGE_FAILED		2

enum command {
	WRITE_PAGES,
	VERIFY_PAGES,
	WRITE_FRESH,
	TOGGLE_CACHES,
};

struct vcpu_state {
	/* How far it got in its part of the fresh memory */
	u64 written;
	u64 failed_gva;
	u64 failed_value;
	struct latency_hist hist;
} __aligned(4096);

/* Host and guest share this, by memory that nothing happens to. */
struct shared {
	/* Written by the host: what to do, and with what pages */
	u32 command;
	u32 stop;
	u64 gva;
	u64 nr_pages;
	u64 stride;
	u64 value;

	/* Of each vCPU */
	u64 page_size;
	u64 fresh_pages;
	u64 pause_ticks;

	/* Ticks to turn the caches off and on */
	u64 caches_off;
	u64 caches_on;

	struct vcpu_state vcpu[MAX_VCPUS];
};

/* Options */
static int nr_vcpus = 4;
static unsigned long nr_iterations = 1;
static unsigned long nr_slots = 1;
static bool huge, split;
static u64 mapped_size = 64UL << 20;
static u64 fresh_size = 4UL << 20;
static u64 pause_us = 20;
static unsigned long nr_touched = 16;
#ifdef __x86_64__
/* KVM allocates 8 bytes for each page of a memslot. */
static u64 sparse_size = 16UL << 30;
#else
static u64 sparse_size = 256UL << 30;
#endif

static struct kvm_vm *vm;
static struct kvm_vcpu *vcpus[MAX_VCPUS];
static struct shared *sh;
static void *mapped, *fresh, *sparse;
static unsigned long *bmap;
static u64 page_size;
static unsigned long iteration;
static double ns_per_tick;

static pthread_t vcpu_threads[MAX_VCPUS];
static pthread_barrier_t start_barrier, end_barrier;
static bool quit;

/* Guest code */

/* What is written to a page: zero, or something that tells it from the others */
static u64 page_value(struct shared *sh, u64 offset)
{
	return sh->value ? sh->value + offset / sh->page_size : 0;
}

static void guest_write_fresh(struct shared *sh, u64 id)
{
	struct vcpu_state *vcpu = &sh->vcpu[id];
	u64 gva = FRESH_GPA + id * sh->fresh_pages * sh->page_size;
	u64 i, start, end;

	for (i = 0; i < sh->fresh_pages && !READ_ONCE(sh->stop); i++) {
		start = guest_counter();
		WRITE_ONCE(*(u64 *)(gva + i * sh->page_size), i + 1);
		end = guest_counter();
		latency_record(&vcpu->hist, end - start);
		WRITE_ONCE(vcpu->written, i + 1);

		while (guest_counter() - end < sh->pause_ticks)
			;
	}
}

/*
 * Turn the caches off and on. KVM traps that once, and again after an operation
 * by set and way. Nothing is read or written in between: all that is dirty in the
 * caches has been cleaned by the time that they are off.
 */
static void guest_toggle_caches(struct shared *sh)
{
#ifdef __aarch64__
	u64 on, off, start, middle, end;

	asm volatile("mrs %0, sctlr_el1" : "=r" (on));
	off = on & ~BIT(2);
	asm volatile("dc cisw, xzr\n\t"
		     "dsb sy\n\t"
		     "isb\n\t"
		     "mrs %0, cntvct_el0\n\t"
		     "msr sctlr_el1, %4\n\t"
		     "isb\n\t"
		     "mrs %1, cntvct_el0\n\t"
		     "msr sctlr_el1, %3\n\t"
		     "isb\n\t"
		     "mrs %2, cntvct_el0\n\t"
		     : "=&r" (start), "=&r" (middle), "=&r" (end)
		     : "r" (on), "r" (off) : "memory");
	sh->caches_off = middle - start;
	sh->caches_on = end - middle;
#endif
}

static bool guest_verify_pages(struct shared *sh, struct vcpu_state *vcpu)
{
	u64 i, gva, value;

	for (i = 0; i < sh->nr_pages; i++) {
		gva = sh->gva + i * sh->stride;
		value = READ_ONCE(*(u64 *)gva);
		if (value == page_value(sh, i * sh->stride))
			continue;
		vcpu->failed_gva = gva;
		vcpu->failed_value = value;
		return false;
	}
	return true;
}

static void guest_code(u64 id)
{
	struct shared *sh = (struct shared *)SHARED_GPA;
	bool good = true;
	u64 i;

	for (;;) {
		switch (READ_ONCE(sh->command)) {
		case WRITE_PAGES:
			for (i = 0; !id && i < sh->nr_pages; i++)
				WRITE_ONCE(*(u64 *)(sh->gva + i * sh->stride),
					   page_value(sh, i * sh->stride));
			break;
		case VERIFY_PAGES:
			good = id || guest_verify_pages(sh, &sh->vcpu[id]);
			break;
		case WRITE_FRESH:
			guest_write_fresh(sh, id);
			break;
		case TOGGLE_CACHES:
			if (!id)
				guest_toggle_caches(sh);
			break;
		}
		GUEST_SYNC(good ? STAGE_DONE : STAGE_FAILED);
	}
}

/* Running the vCPUs */

static void *vcpu_worker(void *data)
{
	int id = (long)data;
	struct ucall uc;

	for (;;) {
		pthread_barrier_wait(&start_barrier);
		if (READ_ONCE(quit))
			return NULL;
		vcpu_run(vcpus[id]);
		TEST_ASSERT(get_ucall(vcpus[id], &uc) == UCALL_SYNC,
			    "vCPU %d: unexpected exit, exit_reason=%s", id,
			    exit_reason_str(vcpus[id]->run->exit_reason));
		TEST_ASSERT(uc.args[1] == STAGE_DONE,
			    "Iteration %lu: the word at 0x%lx is 0x%lx, expected %s", iteration,
			    sh->vcpu[id].failed_gva, sh->vcpu[id].failed_value,
			    sh->value ? "what was written" : "zero");
		pthread_barrier_wait(&end_barrier);
	}
}

static void begin(enum command command)
{
	sh->command = command;
	sh->stop = 0;
	pthread_barrier_wait(&start_barrier);
}

static void end(void)
{
	WRITE_ONCE(sh->stop, 1);
	pthread_barrier_wait(&end_barrier);
}

/* Have vCPU 0 do something with every so many bytes of what is at gva. */
static void run_pages(enum command command, u64 gva, u64 size, u64 stride,
		      u64 value)
{
	sh->gva = gva;
	sh->nr_pages = size / stride;
	sh->stride = stride;
	sh->value = value;
	begin(command);
	end();
}

/* The host's part */

/* The name of a metric: @what with underscores */
static const char *name_of(const char *what)
{
	static char name[64];
	char *c;

	snprintf(name, sizeof(name), "%s", what);
	while ((c = strchr(name, ' ')))
		*c = '_';
	return name;
}

/* What vCPUs do meanwhile, and how the metric says so */
enum during {
	HOST_ONLY,
	VCPUS_IDLE,
	VCPUS_WRITING,
	SPARSE,
};

static const char * const during_text[] = { ", host only", ", vCPUs idle", ", vCPUs writing", "" };
static const char * const during_name[] = { ".host", ".idle", ".writing", "" };

static void print_time(const char *what, enum during during, struct timespec start)
{
	struct timespec time = timespec_elapsed(start);
	char name[96];

	pr_info("Iteration %lu %s%s: %ld.%.9lds\n", iteration, what, during_text[during],
		time.tv_sec, time.tv_nsec);
	snprintf(name, sizeof(name), "%s_time%s", name_of(what), during_name[during]);
	metric_of(name, iteration, timespec_to_ns(time) / 1e9, "s");
}

static struct timespec now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time;
}

static void set_slot(u32 slot, u32 flags, u64 gpa, u64 size, void *hva)
{
	vm_set_user_memory_region(vm, slot, flags, gpa, size, hva);
}

/* The memslots of what is mapped and unmapped; a size of 0 deletes them. */
static void set_mapped(u32 flags, u64 size)
{
	u64 i, part = mapped_size / nr_slots;

	for (i = 0; i < nr_slots; i++)
		set_slot(i ? FIRST_PART + i : MAPPED_SLOT, flags, MAPPED_GPA + i * part,
			 size / nr_slots, mapped + i * part);
}

static void discard(void *start, u64 size)
{
	TEST_ASSERT(!madvise(start, size, MADV_DONTNEED), "madvise(MADV_DONTNEED) failed (%s)",
		    strerror(errno));
}

/* Memory at an address as for huge pages, or as it was before */
static void *map_memory(void *start, u64 size, bool huge)
{
	void *p = start;

	if (!p) {
		p = mmap(NULL, size + BLOCK_SIZE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		TEST_ASSERT(p != MAP_FAILED, "mmap() failed, size: 0x%lx (%s)",
			    size, strerror(errno));
		p = (void *)roundup((uintptr_t)p, BLOCK_SIZE);
	}
	start = mmap(p, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	TEST_ASSERT(start == p, "mmap() failed, size: 0x%lx (%s)",
		    size, strerror(errno));
	/* Where there are no huge pages at all, this fails, and is not needed. */
	madvise(p, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return p;
}

static void populate(void *start, u64 size)
{
	u64 offset;

	for (offset = 0; offset < size; offset += page_size)
		WRITE_ONCE(*(u64 *)(start + offset), ~0UL);
}

/* The large memslot */

static u64 sparse_stride(void)
{
	return sparse_size / nr_touched & ~(page_size - 1);
}

/* By the host, of what vCPU 0 wrote last */
static void verify_sparse(void)
{
	u64 offset, found;

	for (offset = 0; offset < nr_touched * sparse_stride(); offset += sparse_stride()) {
		found = READ_ONCE(*(u64 *)(sparse + offset));
		TEST_ASSERT(found == page_value(sh, offset),
			    "The page at 0x%lx of the large memslot has 0x%lx, expected 0x%lx",
			    offset, found, page_value(sh, offset));
	}
}

static void touch_sparse(u64 value)
{
	run_pages(WRITE_PAGES, SPARSE_GPA, nr_touched * sparse_stride(), sparse_stride(), value);
	verify_sparse();
}

static void create_sparse(const char *what)
{
	struct timespec start = now();

	set_slot(SPARSE_SLOT, 0, SPARSE_GPA, sparse_size, sparse);
	print_time(what, SPARSE, start);
}

static void delete_sparse(const char *what)
{
	struct timespec start = now();

	set_slot(SPARSE_SLOT, 0, SPARSE_GPA, 0, sparse);
	print_time(what, SPARSE, start);
}

static void log_sparse(void)
{
	struct kvm_dirty_log log = { .slot = SPARSE_SLOT, .dirty_bitmap = bmap };
	struct timespec start;
	int ret;

	start = now();
	set_slot(SPARSE_SLOT, KVM_MEM_LOG_DIRTY_PAGES, SPARSE_GPA, sparse_size, sparse);
	print_time("sparse log on", SPARSE, start);

	start = now();
	ret = ioctl(vm->fd, KVM_GET_DIRTY_LOG, &log);
	print_time("sparse get dirty log", SPARSE, start);
	TEST_ASSERT(!ret, "KVM_GET_DIRTY_LOG failed, errno: %i (%s)", errno, strerror(errno));

	start = now();
	set_slot(SPARSE_SLOT, 0, SPARSE_GPA, sparse_size, sparse);
	print_time("sparse log off", SPARSE, start);
}

static void toggle_caches(void)
{
#ifdef __aarch64__
	begin(TOGGLE_CACHES);
	end();
	pr_info("Iteration %lu sparse caches off: %.9fs\n", iteration,
		sh->caches_off * ns_per_tick / 1e9);
	metric_of("sparse_caches_off_time", iteration, sh->caches_off * ns_per_tick / 1e9, "s");
	pr_info("Iteration %lu sparse caches on: %.9fs\n", iteration,
		sh->caches_on * ns_per_tick / 1e9);
	metric_of("sparse_caches_on_time", iteration, sh->caches_on * ns_per_tick / 1e9, "s");
#endif
}

static void test_sparse(void)
{
	struct timespec start;

	create_sparse("sparse create");
	touch_sparse(3 * iteration);
	toggle_caches();
	log_sparse();
	verify_sparse();

	start = now();
	discard(sparse, sparse_size);
	print_time("sparse discard", SPARSE, start);
	run_pages(VERIFY_PAGES, SPARSE_GPA, nr_touched * sparse_stride(), sparse_stride(), 0);

	touch_sparse(3 * iteration + 1);
	start = now();
	TEST_ASSERT(!munmap(sparse, sparse_size), "munmap() failed (%s)", strerror(errno));
	print_time("sparse munmap", SPARSE, start);

	map_memory(sparse, sparse_size, false);
	touch_sparse(3 * iteration + 2);
	delete_sparse("sparse delete");
	verify_sparse();
	discard(sparse, sparse_size);
}

/* The memslot that is mapped */

static void do_nothing(void)
{
	struct timespec start = now();

	while (timespec_to_ns(timespec_elapsed(start)) < 1000000)
		;
}

static void do_discard(void)
{
	discard(mapped, mapped_size);
}

static void do_delete(void)
{
	set_mapped(0, 0);
}

static void do_munmap(void)
{
	TEST_ASSERT(!munmap(mapped, mapped_size), "munmap() failed (%s)", strerror(errno));
}

static void undo_munmap(void)
{
	map_memory(mapped, mapped_size, huge);
}

static void do_age(void)
{
	u64 offset;

	for (offset = 0; offset < mapped_size; offset += BLOCK_SIZE)
		page_idle_mark_range(mapped + offset, 1);
}

static void do_log(void)
{
	set_mapped(KVM_MEM_LOG_DIRTY_PAGES, mapped_size);
}

/* The memslot is there, and its log is off. */
static void undo(void)
{
	set_mapped(0, mapped_size);
}

static const struct op {
	const char *name;
	void (*run)(void);
	void (*undo)(void);
	bool zeroes;
	bool control;
	bool split;
} ops[] = {
	/* What a write takes if nothing happens */
	{ "nothing", do_nothing, NULL, false, true },
	{ "discard", do_discard, NULL, true },
	{ "delete", do_delete, undo },
	{ "log on", do_log, undo },
	{ "munmap", do_munmap, undo_munmap, .zeroes = true, .split = true },
	{ "age", do_age, .split = true },
};

/* Have the dirty log split each huge page. */
static void split_mapped(const struct op *op, u64 value)
{
	do_log();
	run_pages(WRITE_PAGES, MAPPED_GPA, mapped_size, BLOCK_SIZE, value);
	/* It is turned on for the second time. */
	if (op->run == do_log)
		undo();
}

static void print_latency(const struct op *op)
{
	struct latency_hist all = {};
	double p50, p99, most;
	int id, out = 0;

	for (id = 0; id < nr_vcpus; id++) {
		latency_add(&all, &sh->vcpu[id].hist);
		out += sh->vcpu[id].written == sh->fresh_pages;
	}
	p50 = latency_percentile(&all, 50) * ns_per_tick;
	p99 = latency_percentile(&all, 99) * ns_per_tick;
	most = all.max * ns_per_tick;
	pr_info("Iteration %lu %s write latency: p50 %.0f ns, p99 %.0f ns, max %.0f ns, %lu writes\n",
		iteration, op->name, p50, p99, most, latency_count(&all));
	metric_part("write_p50.", name_of(op->name), iteration, p50 / 1e9, "s");
	metric_part("write_p99.", name_of(op->name), iteration, p99 / 1e9, "s");
	metric_part("write_max.", name_of(op->name), iteration, most / 1e9, "s");
	metric_part("writes.", name_of(op->name), iteration, latency_count(&all), "count");
	if (!out)
		return;
	pr_info("Iteration %lu %s: %d of %d vCPUs ran out of memory to write to\n",
		iteration, op->name, out, nr_vcpus);
	metric_part("vcpus_out.", name_of(op->name), iteration, out, "count");
}

/* Have the vCPUs write to memory that the host has mapped, but KVM has not. */
static void begin_writes(void)
{
	int id;

	discard(fresh, nr_vcpus * fresh_size);
	populate(fresh, nr_vcpus * fresh_size);
	for (id = 0; id < nr_vcpus; id++)
		memset(&sh->vcpu[id], 0, sizeof(sh->vcpu[id]));

	begin(WRITE_FRESH);
	for (id = 0; id < nr_vcpus; id++)
		while (READ_ONCE(sh->vcpu[id].written) < NR_WARM_UP)
			;
}

static void verify_writes(void)
{
	u64 i, value;
	int id;

	for (id = 0; id < nr_vcpus; id++)
		for (i = 0; i < sh->vcpu[id].written; i++) {
			value = *(u64 *)(fresh + id * fresh_size + i * page_size);
			TEST_ASSERT(value == i + 1, "vCPU %d: its page %lu has 0x%lx",
				    id, i, value);
		}
}

/* Anew: where there was a small page, there would be no huge one. */
static void populate_mapped(void)
{
	map_memory(mapped, mapped_size, huge);
	populate(mapped, mapped_size);
}

static void time_op(const struct op *op, bool writes)
{
	u64 value = iteration << 32, stride;
	struct timespec start;

	populate_mapped();
	run_pages(WRITE_PAGES, MAPPED_GPA, mapped_size, page_size, value);
	if (split)
		split_mapped(op, value);
	if (writes)
		begin_writes();

	start = now();
	op->run();
	if (!op->control)
		print_time(op->name, writes ? VCPUS_WRITING : VCPUS_IDLE, start);

	if (writes) {
		end();
		print_latency(op);
		verify_writes();
	}
	if (op->undo)
		op->undo();

	if (split)
		undo();

	stride = max(mapped_size / NR_VERIFIED, page_size);
	run_pages(VERIFY_PAGES, MAPPED_GPA, mapped_size, stride, op->zeroes ? 0 : value);
}

static void test_mapped(void)
{
	struct timespec start;
	int i;

	populate_mapped();
	start = now();
	discard(mapped, mapped_size);
	print_time("discard", HOST_ONLY, start);

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		if (ops[i].split && !split)
			continue;
		if (!ops[i].control)
			time_op(&ops[i], false);
		if (!split)
			time_op(&ops[i], true);
	}
}

/* Setting up */

static void setup_vcpus(void)
{
	u64 khz;
	long i;

	for (i = 0; i < nr_vcpus; i++)
		vcpu_args_set(vcpus[i], 1, i);

	setup_old_vgic(vm, nr_vcpus);
	khz = ticks_per_ms(vcpus[0]);
	ns_per_tick = 1e6 / khz;
	sh->pause_ticks = pause_us * khz / 1000;

	pthread_barrier_init(&start_barrier, NULL, nr_vcpus + 1);
	pthread_barrier_init(&end_barrier, NULL, nr_vcpus + 1);
	for (i = 0; i < nr_vcpus; i++)
		pthread_create(&vcpu_threads[i], NULL, vcpu_worker, (void *)i);
}

static void create_vm(void)
{
	u64 all_fresh = nr_vcpus * fresh_size;
	u64 shared_size = roundup(sizeof(*sh), BLOCK_SIZE);
	u64 pages, guest_page_size, i;

	/* The library adds what is for code, stacks, ucall() and page tables; each touched page has its own. */
	pages = (mapped_size + all_fresh + shared_size + nr_touched * BLOCK_SIZE) / MIN_PAGE_SIZE;
	vm = __vm_create_with_vcpus(VM_SHAPE_DEFAULT, nr_vcpus, pages, guest_code, vcpus);
	guest_page_size = vm->page_size;

	sh = map_memory(NULL, shared_size, false);
	sh->page_size = page_size;
	sh->fresh_pages = fresh_size / page_size;
	set_slot(SHARED_SLOT, 0, SHARED_GPA, shared_size, sh);
	virt_map(vm, SHARED_GPA, SHARED_GPA, shared_size / guest_page_size);

	fresh = map_memory(NULL, all_fresh, false);
	set_slot(FRESH_SLOT, 0, FRESH_GPA, all_fresh, fresh);
	virt_map(vm, FRESH_GPA, FRESH_GPA, all_fresh / guest_page_size);

	if (mapped_size) {
		mapped = map_memory(NULL, mapped_size, huge);
		set_mapped(0, mapped_size);
		virt_map(vm, MAPPED_GPA, MAPPED_GPA, mapped_size / guest_page_size);
	}

	if (sparse_size) {
		sparse = map_memory(NULL, sparse_size, false);
		bmap = bitmap_zalloc(sparse_size / page_size);
		for (i = 0; i < nr_touched; i++)
			virt_map(vm, SPARSE_GPA + i * sparse_stride(),
				 SPARSE_GPA + i * sparse_stride(), 1);
	}
}

static void help(char *name)
{
	printf("usage: %s [-h] [-v vcpus] [-i iterations] [-S bytes] [-n pages] [-b bytes]\n"
	       "          [-N memslots] [-s backing] [-l] [-f bytes] [-p us]\n\n", name);
	printf(" -v: specify the number of vCPUs (default: %d)\n", nr_vcpus);
	printf(" -i: specify how many times all is measured (default: %lu)\n", nr_iterations);
	printf(" -S: specify the size of the large memslot, 0 for none (default: %luG)\n",
	       sparse_size >> 30);
	printf(" -n: specify how many pages of it the guest touches (default: %lu)\n", nr_touched);
	printf(" -b: specify the size of the memory that is mapped and unmapped, 0 for none\n"
	       "     (default: %luM)\n", mapped_size >> 20);
	printf(" -N: specify how many memslots it is divided into (default: %lu)\n", nr_slots);
	printf(" -s: specify what backs it: anonymous (default) or anonymous_thp\n");
	printf(" -l: have the dirty log split its huge pages first; no vCPU writes then\n");
	printf(" -f: specify for how much memory each vCPU faults meanwhile (default: %luM)\n",
	       fresh_size >> 20);
	printf(" -p: specify for how long a vCPU pauses after each of these writes, so that\n"
	       "     they do not end before the rest (default: %lu us)\n", pause_us);
	exit(0);
}

static void invalid(const char *option, const char *text, const char *expected)
{
	fprintf(stderr, "Invalid %s '%s': expected %s, see -h\n", option, text, expected);
	exit(1);
}

static u64 number_option(const char *option, const char *text, u64 lowest,
			      u64 highest)
{
	unsigned long long number;
	char *end, expected[64];

	errno = 0;
	number = strtoull(text, &end, 0);
	if (end == text || *end || *text == '-' || errno || number < lowest || number > highest) {
		snprintf(expected, sizeof(expected), "a number from %lu to %lu", lowest, highest);
		invalid(option, text, expected);
	}
	return number;
}

/* A multiple of 2M */
static u64 bytes_option(const char *option, const char *text, u64 lowest,
			     u64 highest)
{
	unsigned long long number;
	char *end, expected[64];
	int shift = 0;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (*end == 'M' || *end == 'G')
		shift = *end++ == 'M' ? 20 : 30;
	if (end == text || *end || *text == '-' || errno || number > highest >> shift ||
	    number << shift < lowest || (number << shift) % BLOCK_SIZE) {
		snprintf(expected, sizeof(expected), "a multiple of 2M from %luM to %luG",
			 lowest >> 20, highest >> 30);
		invalid(option, text, expected);
	}
	return number << shift;
}

static bool parse_huge(const char *text)
{
	if (strcmp(text, "anonymous") && strcmp(text, "anonymous_thp"))
		invalid("-s", text, "anonymous or anonymous_thp");
	return !strcmp(text, "anonymous_thp");
}

static void parse_options(int argc, char *argv[])
{
	int opt;

	while ((opt = getopt(argc, argv, "hv:i:S:n:b:N:s:lf:p:")) != -1) {
		switch (opt) {
		case 'v':
			nr_vcpus = number_option("-v", optarg, 1, MAX_VCPUS);
			break;
		case 'i':
			nr_iterations = number_option("-i", optarg, 1, 1UL << 20);
			break;
		case 'S':
			sparse_size = bytes_option("-S", optarg, 0, MAX_SPARSE);
			break;
		case 'n':
			nr_touched = number_option("-n", optarg, 1, MAX_TOUCHED);
			break;
		case 'b':
			mapped_size = bytes_option("-b", optarg, 0, MAX_MAPPED);
			break;
		case 'N':
			nr_slots = number_option("-N", optarg, 1, 400);
			break;
		case 's':
			huge = parse_huge(optarg);
			break;
		case 'l':
			split = true;
			break;
		case 'f':
			fresh_size = bytes_option("-f", optarg, BLOCK_SIZE, MAX_FRESH / MAX_VCPUS);
			break;
		case 'p':
			pause_us = number_option("-p", optarg, 0, 1000000);
			break;
		case 'h':
			help(argv[0]);
		default:
			exit(1);
		}
	}
	if (optind < argc)
		invalid("argument", argv[optind], "options only");
	if (mapped_size % (nr_slots * page_size))
		invalid("-N", "", "a number that divides the pages of -b");
}

int main(int argc, char *argv[])
{
	int i;

	page_size = getpagesize();
	parse_options(argc, argv);
	if (huge && thp_missing()) {
		print_skip("%s", thp_missing());
		return KSFT_SKIP;
	}
	if (split && (!huge || !page_idle_open())) {
		print_skip("-l needs huge pages and " PAGE_IDLE_BITMAP);
		return KSFT_SKIP;
	}
	kvm_keep_vm();

	setbuf(stdout, NULL);
	create_vm();
	setup_vcpus();
	pr_info("Test iterations: %lu\n", nr_iterations);
	pr_info("%d vCPUs, %lu MiB of %s mapped, memslot of %lu GiB with %lu pages mapped\n",
		nr_vcpus, mapped_size >> 20, huge ? "anonymous_thp" : "anonymous",
		sparse_size >> 30, nr_touched);

	for (iteration = 1; iteration <= nr_iterations; iteration++) {
		if (sparse_size)
			test_sparse();
		if (mapped_size)
			test_mapped();
	}

	quit = true;
	pthread_barrier_wait(&start_barrier);
	for (i = 0; i < nr_vcpus; i++)
		pthread_join(vcpu_threads[i], NULL);
	free(bmap);
	kvm_vm_free(vm);
	return 0;
}
