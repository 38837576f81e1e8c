// SPDX-License-Identifier: GPL-2.0
/*
 * How long KVM_CLEAR_DIRTY_LOG takes, and how long vCPUs wait meanwhile for the
 * first write to a page that is logged. arm64; for virtual time.
 *
 * All pages of a slot have been written to. Its log is cleared while the vCPUs
 * are stopped; then, when all pages have been written to again, while each vCPU
 * writes to write-protected pages of another slot, with pauses. At last the
 * slot's memory is discarded, with the vCPUs stopped.
 *
 * With patches/instruments/v7.3/hold-times.patch it also prints the longest hold of
 * mmu_lock for write of each of these three. The memory is then discarded as if
 * somebody waited for the lock all the time.
 *
 * dirty_hold_test [-v VCPUS] [-b MIB] [-p PAUSE_NS]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "arch_timer.h"
#include "compat.h"
#include "metric.h"

#define SLOT_CLEARED	1
#define SLOT_WRITTEN	2
#define CLEARED_ADDR	0x100000000ul
#define WRITTEN_ADDR	0x200000000ul
/* Pages of the other slot for each vCPU. */
#define NR_WRITTEN	2048u
#define MAX_VCPUS	64
#define PAGE		4096ul
#define HOLDS		"/sys/kernel/debug/mmu_lock_holds"
#define WAITED		"/sys/kernel/debug/mmu_lock_waited"

enum stage { POPULATE, WRITE, QUIT };

/* Of the guest; the host finds them by SHARED(). */
static u64 nr_cleared, nr_vcpus, pause_ns;
static enum stage stage;
static bool go;
static struct {
	u64 started, writes, longest_ns;
} __attribute__((aligned(64))) vcpus[MAX_VCPUS];

#define SHARED(vm, name) (*(volatile typeof(name) *)addr_gva2hva(vm, (gva_t)&(name)))

static pthread_barrier_t barrier;

static u64 guest_ns(void)
{
	return timer_get_cntct(VIRTUAL) * (NSEC_PER_SEC / timer_get_cntfrq());
}

static void guest_write(u64 addr, u64 page)
{
	WRITE_ONCE(*(u64 *)(addr + page * PAGE), page);
}

static void guest_populate(u64 id)
{
	u64 i;

	for (i = id; i < nr_cleared; i += nr_vcpus)
		guest_write(CLEARED_ADDR, i);
	for (i = 0; i < NR_WRITTEN; i++)
		guest_write(WRITTEN_ADDR, id * NR_WRITTEN + i);
}

static void guest_write_while_told(u64 id)
{
	u64 i, begin, end;

	vcpus[id].writes = 0;
	vcpus[id].longest_ns = 0;
	WRITE_ONCE(vcpus[id].started, 1);
	while (!READ_ONCE(go))
		cpu_relax();

	for (i = 0; i < NR_WRITTEN && READ_ONCE(go); i++) {
		begin = guest_ns();
		guest_write(WRITTEN_ADDR, id * NR_WRITTEN + i);
		end = guest_ns();
		if (end - begin > vcpus[id].longest_ns)
			vcpus[id].longest_ns = end - begin;
		vcpus[id].writes++;
		while (guest_ns() - end < pause_ns)
			cpu_relax();
	}
}

static void guest_code(u64 id)
{
	while (READ_ONCE(stage) != QUIT) {
		if (READ_ONCE(stage) == POPULATE)
			guest_populate(id);
		else
			guest_write_while_told(id);
		GUEST_SYNC(id);
	}
	GUEST_DONE();
}

static void *vcpu_thread(void *arg)
{
	struct kvm_vcpu *vcpu = arg;
	struct ucall uc;

	do {
		pthread_barrier_wait(&barrier);
		vcpu_run(vcpu);
		if (get_ucall(vcpu, &uc) == UCALL_ABORT)
			REPORT_GUEST_ASSERT(uc);
		pthread_barrier_wait(&barrier);
	} while (uc.cmd == UCALL_SYNC);
	return NULL;
}

static void run_stage(struct kvm_vm *vm, enum stage which)
{
	SHARED(vm, stage) = which;
	pthread_barrier_wait(&barrier);
}

static u64 host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* Write a character to a file that may not be there. */
static void tell(const char *path, char what)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0)
		return;
	TEST_ASSERT(write(fd, &what, 1) == 1, "cannot write %s", path);
	close(fd);
}

static void print_holds(const char *what, const char *name)
{
	FILE *file = fopen(HOLDS, "r");
	char line[128];
	u64 ns;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "longest hold %lu ns", &ns) == 1) {
			printf("%s: longest hold %lu ns\n", what, ns);
			metric(name, ns / 1e9, "s");
		}
	if (file)
		fclose(file);
}

/* Clear the log of all pages of @slot; returns how long it took, in ns. */
static u64 clear_log(struct kvm_vm *vm, int slot, u64 nr_pages, unsigned long *bitmap)
{
	u64 begin;

	memset(bitmap, 0xff, DIV_ROUND_UP(nr_pages, 64) * 8);
	tell(HOLDS, '0');
	begin = host_ns();
	kvm_vm_clear_dirty_log(vm, slot, bitmap, 0, nr_pages);
	return host_ns() - begin;
}

static void clear_while_vcpus_write(struct kvm_vm *vm, u64 nr_pages, unsigned long *bitmap)
{
	u64 i, ns, writes = 0, longest = 0;

	for (i = 0; i < nr_vcpus; i++)
		SHARED(vm, vcpus[i]).started = 0;
	SHARED(vm, go) = false;
	run_stage(vm, WRITE);
	for (i = 0; i < nr_vcpus; i++)
		while (!SHARED(vm, vcpus[i]).started)
			;

	SHARED(vm, go) = true;
	ns = clear_log(vm, SLOT_CLEARED, nr_pages, bitmap);
	print_holds("clear busy", "clear_busy_hold");
	SHARED(vm, go) = false;
	pthread_barrier_wait(&barrier);

	for (i = 0; i < nr_vcpus; i++) {
		TEST_ASSERT(SHARED(vm, vcpus[i]).writes < NR_WRITTEN,
			    "vCPU %lu had no page left to write to: a longer pause is needed", i);
		writes += SHARED(vm, vcpus[i]).writes;
		if (SHARED(vm, vcpus[i]).longest_ns > longest)
			longest = SHARED(vm, vcpus[i]).longest_ns;
	}
	printf("clear busy: %lu ns\n", ns);
	printf("clear busy: longest write %lu ns of %lu\n", longest, writes);
	metric("clear_busy_time", ns / 1e9, "s");
	metric("clear_busy_write", longest / 1e9, "s");
	metric("clear_busy_writes", writes, "count");
}

static u64 number(const char *text, u64 max)
{
	char *end;
	u64 value = strtoul(text, &end, 10);

	if (*end || end == text || !value || value > max) {
		fprintf(stderr, "'%s' is not a number from 1 to %lu\n", text, max);
		exit(1);
	}
	return value;
}

int main(int argc, char *argv[])
{
	struct kvm_vcpu *vcpu[MAX_VCPUS];
	pthread_t threads[MAX_VCPUS];
	unsigned long *bitmap;
	u64 i, size = 64ul << 20, ns, written;
	struct kvm_vm *vm;
	void *mem;
	int opt;

	nr_vcpus = 8;
	pause_ns = 20000;
	while ((opt = getopt(argc, argv, "v:b:p:")) != -1) {
		switch (opt) {
		case 'v':
			nr_vcpus = number(optarg, MAX_VCPUS);
			break;
		case 'b':
			size = number(optarg, 2048) << 20;
			break;
		case 'p':
			pause_ns = number(optarg, NSEC_PER_SEC);
			break;
		default:
			optind = argc + 1;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "usage: %s [-v VCPUS] [-b MIB] [-p PAUSE_NS]\n", argv[0]);
		return 1;
	}
	nr_cleared = size / PAGE;
	written = nr_vcpus * NR_WRITTEN;

	vm = __vm_create_with_vcpus(VM_SHAPE_DEFAULT, nr_vcpus, nr_cleared + written, guest_code,
				    vcpu);
	vm_enable_cap(vm, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, CLEARED_ADDR, SLOT_CLEARED,
				    nr_cleared, KVM_MEM_LOG_DIRTY_PAGES);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, WRITTEN_ADDR, SLOT_WRITTEN,
				    written, KVM_MEM_LOG_DIRTY_PAGES);
	virt_map(vm, CLEARED_ADDR, CLEARED_ADDR, nr_cleared);
	virt_map(vm, WRITTEN_ADDR, WRITTEN_ADDR, written);
	mem = addr_gpa2hva(vm, CLEARED_ADDR);
	memset(mem, 1, size);
	memset(addr_gpa2hva(vm, WRITTEN_ADDR), 1, written * PAGE);
	bitmap = calloc(DIV_ROUND_UP(nr_cleared + written, 64), 8);
	sync_global_to_guest(vm, nr_cleared);
	sync_global_to_guest(vm, nr_vcpus);
	sync_global_to_guest(vm, pause_ns);

	pthread_barrier_init(&barrier, NULL, nr_vcpus + 1);
	for (i = 0; i < nr_vcpus; i++) {
		vcpu_args_set(vcpu[i], 1, i);
		pthread_create(&threads[i], NULL, vcpu_thread, vcpu[i]);
	}

	for (i = 0; i < 2; i++) {
		run_stage(vm, POPULATE);
		pthread_barrier_wait(&barrier);
		clear_log(vm, SLOT_WRITTEN, written, bitmap);
		if (!i) {
			ns = clear_log(vm, SLOT_CLEARED, nr_cleared, bitmap);
			print_holds("clear idle", "clear_idle_hold");
			printf("clear idle: %lu ns\n", ns);
			metric("clear_idle_time", ns / 1e9, "s");
		}
	}
	clear_while_vcpus_write(vm, nr_cleared, bitmap);

	tell(WAITED, 'Y');
	tell(HOLDS, '0');
	ns = host_ns();
	TEST_ASSERT(!madvise(mem, size, MADV_DONTNEED), "madvise");
	ns = host_ns() - ns;
	print_holds("discard", "discard_hold");
	tell(WAITED, 'N');
	printf("discard: %lu ns\n", ns);
	metric("discard_time", ns / 1e9, "s");

	run_stage(vm, QUIT);
	pthread_barrier_wait(&barrier);
	for (i = 0; i < nr_vcpus; i++)
		pthread_join(threads[i], NULL);
	kvm_vm_free(vm);
	free(bitmap);
	return 0;
}
