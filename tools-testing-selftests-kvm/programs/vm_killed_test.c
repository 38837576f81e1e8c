// SPDX-License-Identifier: GPL-2.0
/*
 * VMs that are killed while their vCPU writes to all of its memory: how long a
 * process takes to exit, and whether stage-2 tables are left.
 *
 * With -a another process, which shares the memory, marks its pages as idle all
 * the time, so that the VM is aged until the last moment. arm64.
 *
 * vm_killed_test [-a] [-n VMS] [-b MIB]
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
#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"

#define SLOT		1
#define ADDR		(64ul << 30)
#define PAGE		4096ul
/* Tables are freed by RCU: they have so long to go. */
#define TABLES_MS	5000

/* Of the guest. */
static u64 nr_pages;

/* The first word of the shared memory: how often the guest has been through. */
static u64 *memory;
static bool quit;

static void guest_code(void)
{
	u64 i, round;

	for (round = 1; ; round++) {
		for (i = 1; i < nr_pages; i++)
			WRITE_ONCE(*(u64 *)(ADDR + i * PAGE), round);
		WRITE_ONCE(*(u64 *)ADDR, round);
	}
}

static void run_vm(void)
{
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	vm = __vm_create_shape_with_one_vcpu(VM_SHAPE(VM_MODE_P40V48_4K), &vcpu,
					     nr_pages, guest_code);
	vm_set_user_memory_region(vm, SLOT, 0, ADDR, nr_pages * PAGE, memory);
	virt_map(vm, ADDR, ADDR, nr_pages);
	sync_global_to_guest(vm, nr_pages);
	vcpu_run(vcpu);
	TEST_FAIL("the guest has exited: %s", exit_reason_str(vcpu->run->exit_reason));
}

static void *age(void *unused)
{
	while (!READ_ONCE(quit))
		page_idle_mark_range(memory, nr_pages * PAGE / getpagesize());
	return NULL;
}

/* In KiB, of stage-2 page tables, or -1. */
static long tables(void)
{
	char line[128];
	long kib = -1;
	FILE *file = fopen("/proc/meminfo", "r");

	TEST_ASSERT(file, "/proc/meminfo cannot be read");
	while (fgets(line, sizeof(line), file))
		sscanf(line, "SecPageTables: %ld", &kib);
	fclose(file);
	TEST_ASSERT(kib >= 0, "/proc/meminfo has no SecPageTables");
	return kib;
}

int main(int argc, char *argv[])
{
	long vms = 1, mib = 8, before, left;
	u64 exit_ns = 0, waited = 0;
	bool ages = false;
	pthread_t ager;
	int opt, i;

	while ((opt = getopt(argc, argv, "an:b:")) != -1) {
		if (opt == 'a')
			ages = true;
		else if (opt == 'n')
			vms = atoi_positive("VMs", optarg);
		else if (opt == 'b')
			mib = atoi_positive("MiB", optarg);
		else
			exit(KSFT_FAIL);
	}

	nr_pages = (u64)mib * (1ul << 20) / PAGE;
	memory = mmap(NULL, nr_pages * PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(memory != MAP_FAILED, "no memory");
	memset(memory, 0, nr_pages * PAGE);
	before = tables();
	if (ages) {
		TEST_REQUIRE(page_idle_open());
		TEST_ASSERT(!pthread_create(&ager, NULL, age, NULL), "no thread");
	}

	for (i = 0; i < vms; i++) {
		struct timespec start;
		pid_t pid;
		int status;

		WRITE_ONCE(*memory, 0);
		fflush(stdout);
		pid = fork();
		TEST_ASSERT(pid >= 0, "fork() failed");
		if (!pid)
			run_vm();

		while (!READ_ONCE(*memory) && !waitpid(pid, &status, WNOHANG))
			usleep(1000);
		TEST_ASSERT(READ_ONCE(*memory), "VM %d did not run", i);
		clock_gettime(CLOCK_MONOTONIC, &start);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		exit_ns += timespec_to_ns(timespec_elapsed(start));
		TEST_ASSERT(WIFSIGNALED(status), "VM %d ended by itself", i);
	}

	quit = true;
	if (ages)
		pthread_join(ager, NULL);
	/* Whatever else uses stage 2 is not there in a test's guest. */
	for (left = tables() - before; left > 0 && waited < TABLES_MS; waited += 10) {
		usleep(10000);
		left = tables() - before;
	}
	printf("%ld VMs of %ld MiB killed: exit takes %llu us each; tables of %ld KiB left\n",
	       vms, mib, (unsigned long long)(exit_ns / vms / 1000), left);
	return left > 0 ? KSFT_FAIL : KSFT_PASS;
}
