// SPDX-License-Identifier: GPL-2.0
/*
 * vm_killed_test for the library of 5.10's selftests: how long a process takes to
 * exit whose VM is killed while its vCPUs write to all of their memory.
 *
 * 5.10 does not count the pages of stage-2 tables, so what is left is not checked.
 *
 * vm_killed_test [-v VCPUS] [-n VMS] [-b MIB]
 */
#include <fcntl.h>
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

#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"

#define SLOT		1
#define ADDR		(64ul << 30)
#define PAGE		4096ul
#define MAX_VCPUS	64

/* Of the guest; each vCPU writes to an equal part of the pages. */
static uint64_t nr_pages;
static uint64_t nr_vcpus = 1;

/* The first word of each part of the shared memory: how often it has been written to. */
static uint64_t *memory;
static struct kvm_vm *vm;

static void guest_code(uint64_t vcpu)
{
	uint64_t pages = nr_pages / nr_vcpus, i, round;
	uint64_t part = ADDR + vcpu * pages * PAGE;

	for (round = 1; ; round++) {
		for (i = 1; i < pages; i++)
			*(volatile uint64_t *)(part + i * PAGE) = round;
		*(volatile uint64_t *)part = round;
	}
}

/* The first word of the part of a vCPU. */
static volatile uint64_t *rounds_of(uint64_t vcpu)
{
	return memory + vcpu * (nr_pages / nr_vcpus) * (PAGE / sizeof(*memory));
}

/* Whether all vCPUs have written to all of their parts. */
static bool all_written(void)
{
	uint64_t vcpu;

	for (vcpu = 0; vcpu < nr_vcpus; vcpu++) {
		if (!*rounds_of(vcpu))
			return false;
	}
	return true;
}

static void *run_vcpu(void *vcpu)
{
	uint32_t id = (uintptr_t)vcpu;

	vcpu_run(vm, id);
	TEST_FAIL("the guest has exited: %s", exit_reason_str(vcpu_state(vm, id)->exit_reason));
	return NULL;
}

static void run_vm(void)
{
	pthread_t thread;
	uintptr_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Pages for the guest's own tables: it maps all of its memory in pages. */
	vm = vm_create_default(0, nr_pages / 256, guest_code);
	for (i = 1; i < nr_vcpus; i++)
		vm_vcpu_add_default(vm, i, guest_code);
	vm_set_user_memory_region(vm, SLOT, 0, ADDR, nr_pages * PAGE, memory);
	virt_map(vm, ADDR, ADDR, nr_pages, 0);
	sync_global_to_guest(vm, nr_pages);
	sync_global_to_guest(vm, nr_vcpus);
	for (i = 0; i < nr_vcpus; i++)
		vcpu_args_set(vm, i, 1, (uint64_t)i);
	for (i = 1; i < nr_vcpus; i++)
		TEST_ASSERT(!pthread_create(&thread, NULL, run_vcpu, (void *)i), "no thread");
	run_vcpu((void *)0);
}

static long positive(const char *what, const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	TEST_ASSERT(value > 0 && value <= 1 << 20 && !*end, "%s: '%s' is no positive number",
		    what, text);
	return value;
}

int main(int argc, char *argv[])
{
	long vms = 1, mib = 8;
	uint64_t exit_ns = 0;
	int opt, i;

	while ((opt = getopt(argc, argv, "v:n:b:")) != -1) {
		if (opt == 'v')
			nr_vcpus = positive("vCPUs", optarg);
		else if (opt == 'n')
			vms = positive("VMs", optarg);
		else if (opt == 'b')
			mib = positive("MiB", optarg);
		else
			exit(1);
	}

	TEST_ASSERT(nr_vcpus <= MAX_VCPUS, "more than %d vCPUs", MAX_VCPUS);
	nr_pages = (uint64_t)mib * (1ul << 20) / PAGE / nr_vcpus * nr_vcpus;
	memory = mmap(NULL, nr_pages * PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(memory != MAP_FAILED, "no memory");
	memset(memory, 0, nr_pages * PAGE);

	for (i = 0; i < vms; i++) {
		struct timespec start, end;
		uint64_t part;
		pid_t pid;
		int status;

		for (part = 0; part < nr_vcpus; part++)
			*rounds_of(part) = 0;
		fflush(stdout);
		pid = fork();
		TEST_ASSERT(pid >= 0, "fork() failed");
		if (!pid)
			run_vm();

		while (!all_written() && !waitpid(pid, &status, WNOHANG))
			usleep(1000);
		TEST_ASSERT(all_written(), "VM %d did not run", i);
		clock_gettime(CLOCK_MONOTONIC, &start);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		exit_ns += timespec_to_ns(timespec_sub(end, start));
		TEST_ASSERT(WIFSIGNALED(status), "VM %d ended by itself", i);
	}

	printf("%ld VMs of %ld MiB killed: exit takes %llu us each\n",
	       vms, mib, (unsigned long long)(exit_ns / vms / 1000));
	return 0;
}
