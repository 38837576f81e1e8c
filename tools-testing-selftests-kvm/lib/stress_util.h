/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What stress tests need: their options, mappings, a VM to keep, counters of KVM
 */

#ifndef SELFTEST_KVM_STRESS_UTIL_H
#define SELFTEST_KVM_STRESS_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

struct kvm_vm;

/* The value of an option; one that is not right ends the test with a line. */
u64 parse_number(const char *text, u64 lowest, u64 highest);
int parse_name(const char *name, const char * const *names, int nr);

/* Address space with nothing in it, and with more of that behind it; never given back */
void *reserve_aligned(size_t size, size_t alignment);

/* mmap() with MAP_FIXED, which must not fail */
void map_fixed(void *start, size_t size, int prot, int flags, int fd, off_t offset);

/*
 * Keep a VM until the process exits, so that none of the test's is the first or
 * the last one. For these, KVM patches a branch of the scheduler's, and QEMU
 * before 8.1 may go on to emulate what was there before: then vCPUs are not
 * loaded. Skips the test if there is no KVM.
 */
void kvm_keep_vm(void);

/*
 * A counter of the VM's in debugfs, of this process or of another one. Returns
 * whether there is such a counter.
 */
bool vm_read_counter(struct kvm_vm *vm, const char *name, u64 *value);
void vm_counter_path(char *path, size_t size, const char *name, pid_t pid, int vm_fd);

#endif /* SELFTEST_KVM_STRESS_UTIL_H */
