// SPDX-License-Identifier: GPL-2.0
/*
 * VMs that are killed while their vCPUs write to all of their memory: how long a
 * process takes to exit, and whether stage-2 tables are left, if the kernel counts
 * them.
 *
 * With -a another process, which shares the memory, marks its pages as idle all
 * the time, so that the VM is aged until the last moment. arm64.
 *
 * With -c several VMs are killed at once, and the time is until the last one has gone.
 *
 * vm_killed_test [-a] [-v VCPUS] [-n TIMES] [-c VMS] [-b MIB]
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "host_mm.h"
#include "compat.h"
#include "metric.h"

#define SLOT		1
#define ADDR		(64ul << 30)
#define PAGE		4096ul
/* Tables are freed by RCU: they have so long to go. */
#define TABLES_MS	5000

/* Of the guest; each vCPU writes to an equal part of the pages. */
static u64 nr_pages;
static u64 nr_vcpus = 1;

static long at_once = 1;

/* Of all VMs. The first word of each vCPU's part of it: how often it has been written to. */
static u64 *memory;
static bool quit;

static void guest_code(u64 vcpu)
{
	u64 pages = nr_pages / nr_vcpus, i, round;
	u64 part = ADDR + vcpu * pages * PAGE;

	for (round = 1; ; round++) {
		for (i = 1; i < pages; i++)
			WRITE_ONCE(*(u64 *)(part + i * PAGE), round);
		WRITE_ONCE(*(u64 *)part, round);
	}
}

/* The first word of the part of a vCPU, counted over all VMs. */
static u64 *rounds_of(u64 vcpu)
{
	return memory + vcpu * (nr_pages / nr_vcpus) * (PAGE / sizeof(*memory));
}

/* Whether all vCPUs have written to all of their parts. */
static bool all_written(void)
{
	u64 vcpu;

	for (vcpu = 0; vcpu < at_once * nr_vcpus; vcpu++) {
		if (!READ_ONCE(*rounds_of(vcpu)))
			return false;
	}
	return true;
}

static void *run_vcpu(void *vcpu)
{
	vcpu_run(vcpu);
	TEST_FAIL("the guest has exited: %s",
		  exit_reason_str(((struct kvm_vcpu *)vcpu)->run->exit_reason));
	return NULL;
}

static void run_vm(u64 *mem)
{
	struct kvm_vcpu *vcpus[KVM_MAX_VCPUS];
	pthread_t thread;
	struct kvm_vm *vm;
	u64 i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vm = __vm_create_with_vcpus(VM_SHAPE(VM_MODE_P40V48_4K), nr_vcpus, nr_pages,
				    guest_code, vcpus);
	vm_set_user_memory_region(vm, SLOT, 0, ADDR, nr_pages * PAGE, mem);
	virt_map(vm, ADDR, ADDR, nr_pages);
	sync_global_to_guest(vm, nr_pages);
	sync_global_to_guest(vm, nr_vcpus);
	for (i = 0; i < nr_vcpus; i++)
		vcpu_args_set(vcpus[i], 1, i);
	for (i = 1; i < nr_vcpus; i++)
		TEST_ASSERT(!pthread_create(&thread, NULL, run_vcpu, vcpus[i]), "no thread");
	run_vcpu(vcpus[0]);
}

static void *age(void *unused)
{
	while (!READ_ONCE(quit))
		page_idle_mark_range(memory, at_once * nr_pages * PAGE / getpagesize());
	return NULL;
}

/* In KiB, of stage-2 page tables, or -1 if the kernel does not count them */
static long tables(void)
{
	char line[128];
	long kib = -1;
	FILE *file = fopen("/proc/meminfo", "r");

	TEST_ASSERT(file, "/proc/meminfo cannot be read");
	while (fgets(line, sizeof(line), file))
		sscanf(line, "SecPageTables: %ld", &kib);
	fclose(file);
	return kib;
}

int main(int argc, char *argv[])
{
	long times = 1, mib = 8, before, left, vm;
	u64 exit_ns = 0, waited = 0;
	bool ages = false;
	pthread_t ager;
	int opt, i;

	while ((opt = getopt(argc, argv, "av:n:c:b:")) != -1) {
		if (opt == 'a')
			ages = true;
		else if (opt == 'v')
			nr_vcpus = atoi_positive("vCPUs", optarg);
		else if (opt == 'n')
			times = atoi_positive("times", optarg);
		else if (opt == 'c')
			at_once = atoi_positive("VMs", optarg);
		else if (opt == 'b')
			mib = atoi_positive("MiB", optarg);
		else
			exit(KSFT_FAIL);
	}

	TEST_ASSERT(nr_vcpus <= KVM_MAX_VCPUS, "more than %d vCPUs", KVM_MAX_VCPUS);
	nr_pages = (u64)mib * (1ul << 20) / PAGE / nr_vcpus * nr_vcpus;
	memory = mmap(NULL, at_once * nr_pages * PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(memory != MAP_FAILED, "no memory");
	memset(memory, 0, at_once * nr_pages * PAGE);
	before = tables();
	if (ages) {
		TEST_REQUIRE(page_idle_open());
		TEST_ASSERT(!pthread_create(&ager, NULL, age, NULL), "no thread");
	}

	for (i = 0; i < times; i++) {
		struct timespec start;
		pid_t pids[at_once];
		u64 part;
		int status;

		for (part = 0; part < at_once * nr_vcpus; part++)
			WRITE_ONCE(*rounds_of(part), 0);
		fflush(stdout);
		for (vm = 0; vm < at_once; vm++) {
			pids[vm] = fork();
			TEST_ASSERT(pids[vm] >= 0, "fork() failed");
			if (!pids[vm])
				run_vm(rounds_of(vm * nr_vcpus));
		}

		while (!all_written() && !waitpid(-1, &status, WNOHANG))
			usleep(1000);
		TEST_ASSERT(all_written(), "a VM did not run, time %d", i);
		clock_gettime(CLOCK_MONOTONIC, &start);
		for (vm = 0; vm < at_once; vm++)
			kill(pids[vm], SIGKILL);
		for (vm = 0; vm < at_once; vm++) {
			TEST_ASSERT(waitpid(pids[vm], &status, 0) == pids[vm] && WIFSIGNALED(status),
				    "a VM ended by itself, time %d", i);
		}
		exit_ns += timespec_to_ns(timespec_elapsed(start));
	}

	quit = true;
	if (ages)
		pthread_join(ager, NULL);
	/* Whatever else uses stage 2 is not there in a test's guest. */
	for (left = tables() - before; left > 0 && waited < TABLES_MS; waited += 10) {
		usleep(10000);
		left = tables() - before;
	}
	printf("%ld times %ld VMs of %ld MiB killed: exit takes %llu us", times, at_once, mib,
	       (unsigned long long)(exit_ns / times / 1000));
	if (before >= 0)
		printf("; tables of %ld KiB left", left);
	printf("\n");
	metric("exit_time", exit_ns / times / 1e9, "s");
	if (before >= 0)
		metric("tables_left", left, "KiB");
	return left > 0 ? KSFT_FAIL : KSFT_PASS;
}
