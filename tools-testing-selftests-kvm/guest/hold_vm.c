// SPDX-License-Identifier: GPL-2.0
/*
 * hold_vm: create a VM while no other CPU runs the scheduler, and keep it
 *
 *	hold_vm
 *
 * With the first VM of the host KVM patches a branch of the scheduler
 * (preempt_notifier_key). An emulator may miss that if another CPU translates the
 * branch in the same moment: then KVM does not load or save a vCPU's registers at
 * context switches. So each of the other CPUs runs one process of real time
 * meanwhile, which spins here, without a context switch. The VM stays until the host
 * goes, so nobody patches the branch again.
 *
 * Returns when there is the VM. Without /dev/kvm it does nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"
/* Seconds after which the spinning ends in any case: a host may need its threads. */
#define PATIENCE	10

struct shared {
	int spinning;
	int done;
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "hold_vm: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Nothing but a higher priority takes the CPU away from this process. */
static void have_cpu(int cpu)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity()");
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		fail("SCHED_FIFO");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* Wait for *value to become at least @wanted. False if that takes too long. */
static bool spin(int *value, int wanted)
{
	double end = now() + PATIENCE;

	while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < wanted)
		if (now() > end)
			return false;
	return true;
}

static void spin_until_done(struct shared *shared, int cpu)
{
	have_cpu(cpu);
	__atomic_add_fetch(&shared->spinning, 1, __ATOMIC_RELEASE);
	spin(&shared->done, 1);
	exit(0);
}

/* A real-time process may have all of a CPU. Returns what was there before. */
static void set_rt_runtime(const char *value, char *old, size_t size)
{
	int fd = open(RT_RUNTIME, O_RDWR | O_CLOEXEC);
	ssize_t length = -1;

	if (fd >= 0 && old)
		length = read(fd, old, size - 1);
	if (old)
		old[length > 0 ? length : 0] = 0;
	if (fd < 0 || lseek(fd, 0, SEEK_SET) || write(fd, value, strlen(value)) < 0)
		fail(RT_RUNTIME);
	close(fd);
}

int main(void)
{
	int cpu, cpus = sysconf(_SC_NPROCESSORS_ONLN), kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	struct shared *shared;
	char runtime[32];
	bool alone;
	int vm;

	if (kvm < 0)
		return 0;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("mmap()");

	set_rt_runtime("-1", runtime, sizeof(runtime));
	for (cpu = 1; cpu < cpus; cpu++) {
		switch (fork()) {
		case -1:
			fail("fork()");
		case 0:
			spin_until_done(shared, cpu);
		}
	}
	have_cpu(0);
	alone = spin(&shared->spinning, cpus - 1);
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	__atomic_store_n(&shared->done, 1, __ATOMIC_RELEASE);
	if (vm < 0)
		fail("KVM_CREATE_VM");
	while (wait(NULL) > 0)
		;
	set_rt_runtime(runtime, NULL, 0);
	if (!alone)
		printf("hold_vm: other CPUs did not begin to spin within %d s\n", PATIENCE);
	fflush(stdout);

	/* The job ends what it has started, by process groups. */
	switch (fork()) {
	case -1:
		fail("fork()");
	case 0:
		setsid();
		for (;;)
			pause();
	}
	return 0;
}
