// SPDX-License-Identifier: GPL-2.0
/*
 * What stress tests need: their options, mappings, a VM to keep, counters of KVM
 */

#include <sys/ioctl.h>
#include <sys/mman.h>

#include "compat.h"
#include "host_file.h"
#include "stress_util.h"

u64 parse_number(const char *text, u64 lowest, u64 highest)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (end == text || *end || errno || number < lowest || number > highest) {
		fprintf(stderr, "Invalid number '%s', must be between %lu and %lu\n",
			text, lowest, highest);
		exit(KSFT_FAIL);
	}
	return number;
}

int parse_name(const char *name, const char * const *names, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(name, names[i]))
			return i;

	fprintf(stderr, "Unknown name '%s', see -h\n", name);
	exit(KSFT_FAIL);
}

void *reserve_aligned(size_t size, size_t alignment)
{
	void *p = mmap(NULL, size + alignment, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	TEST_ASSERT(p != MAP_FAILED, "mmap() failed, errno: %i (%s)", errno, strerror(errno));
	return (void *)(((uintptr_t)p + alignment - 1) & ~(alignment - 1));
}

void map_fixed(void *start, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *p = mmap(start, size, prot, flags | MAP_FIXED, fd, offset);

	TEST_ASSERT(p == start, "mmap() failed, size: 0x%lx errno: %i (%s)", size, errno,
		    strerror(errno));
}

void kvm_keep_vm(void)
{
	int kvm_fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm_fd < 0) {
		print_skip("/dev/kvm cannot be opened (%s)", strerror(errno));
		exit(KSFT_SKIP);
	}
	TEST_ASSERT(ioctl(kvm_fd, KVM_CREATE_VM, 0) >= 0,
		    "KVM_CREATE_VM failed, errno: %i (%s)", errno, strerror(errno));
}

void vm_counter_path(char *path, size_t size, const char *name, pid_t pid, int vm_fd)
{
	snprintf(path, size, "/sys/kernel/debug/kvm/%d-%d/%s", pid, vm_fd, name);
}

bool vm_read_counter(struct kvm_vm *vm, const char *name, u64 *value)
{
	char path[128];

	vm_counter_path(path, sizeof(path), name, getpid(), vm->fd);
	return host_read_number(path, value);
}
