/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The library of the KVM selftests, as linux 7.3 has it, for tests of older trees as well
 *
 * Tests include this in place of the library's headers that follow.
 */

#ifndef SELFTEST_KVM_COMPAT_H
#define SELFTEST_KVM_COMPAT_H

#include "kvm_util.h"
#include "processor.h"
#include "test_util.h"
#ifdef HAVE_UCALL_COMMON_H
#include "ucall_common.h"
#endif
#ifdef HAVE_GUEST_MODES_H
#include "guest_modes.h"
#endif

#ifndef HAVE_GVA_T
#define gva_t	vm_vaddr_t
#define gpa_t	vm_paddr_t
#endif

#ifndef HAVE_KVM_VCPU
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/types.h>

/* vm->page_size and others */
#include "../lib/kvm_util_internal.h"

/* A vCPU was a VM and a number. */
struct kvm_vcpu {
	struct kvm_vm *vm;
	u32 id;
	struct kvm_run *run;
};

static inline void compat_vcpu_run(struct kvm_vcpu *vcpu)
{
	vcpu_run(vcpu->vm, vcpu->id);
}

static inline int compat__vcpu_run(struct kvm_vcpu *vcpu)
{
	return _vcpu_run(vcpu->vm, vcpu->id);
}

static inline u64 compat_get_ucall(struct kvm_vcpu *vcpu, struct ucall *uc)
{
	return get_ucall(vcpu->vm, vcpu->id, uc);
}

static inline int compat_vcpu_ioctl(struct kvm_vcpu *vcpu, unsigned long cmd, void *arg)
{
	return _vcpu_ioctl(vcpu->vm, vcpu->id, cmd, arg);
}

static inline void compat_vcpu_regs_get(struct kvm_vcpu *vcpu, struct kvm_regs *regs)
{
	vcpu_regs_get(vcpu->vm, vcpu->id, regs);
}

static inline void compat_vcpu_sregs_get(struct kvm_vcpu *vcpu, struct kvm_sregs *sregs)
{
	vcpu_sregs_get(vcpu->vm, vcpu->id, sregs);
}

#define vcpu_run		compat_vcpu_run
#define _vcpu_run		compat__vcpu_run
#define __vcpu_run		compat__vcpu_run
#define __vcpu_ioctl		compat_vcpu_ioctl
#define vcpu_regs_get		compat_vcpu_regs_get
#define vcpu_sregs_get		compat_vcpu_sregs_get
#define get_ucall		compat_get_ucall
#define vcpu_args_set(vcpu, nr, ...) ({						\
	struct kvm_vcpu *__vcpu = vcpu;						\
										\
	vcpu_args_set(__vcpu->vm, __vcpu->id, nr, __VA_ARGS__);			\
})

#define virt_map(vm, gva, gpa, nr)	virt_map(vm, gva, gpa, nr, 0)
#define virt_pg_map(vm, gva, gpa)	virt_pg_map(vm, gva, gpa, 0)
#define vm_enable_cap(vm, number, arg)	\
	vm_enable_cap(vm, &(struct kvm_enable_cap){ .cap = number, .args = { arg } })
#define kvm_vm_free(vm)			compat_vm_free(vm)

/* A type of VM was its guest mode alone. */
struct vm_shape {
	u32 mode;
};

#define VM_SHAPE(guest_mode)		((struct vm_shape){ .mode = (guest_mode) })
#define VM_SHAPE_DEFAULT		VM_SHAPE(VM_MODE_DEFAULT)
#define MIN_PAGE_SIZE			4096U
#define KVM_MAX_VCPUS			512

struct kvm_vm *__vm_create_with_vcpus(struct vm_shape shape, u32 nr_vcpus, u64 extra_mem_pages,
				      void *guest_code, struct kvm_vcpu *vcpus[]);
void compat_vm_free(struct kvm_vm *vm);

static inline struct kvm_vm *
__vm_create_shape_with_one_vcpu(struct vm_shape shape, struct kvm_vcpu **vcpu,
				u64 extra_mem_pages, void *guest_code)
{
	return __vm_create_with_vcpus(shape, 1, extra_mem_pages, guest_code, vcpu);
}

#define __vm_create_with_one_vcpu(vcpu, extra_mem_pages, guest_code)	\
	__vm_create_shape_with_one_vcpu(VM_SHAPE_DEFAULT, vcpu, extra_mem_pages, guest_code)
#define vm_create_with_one_vcpu(vcpu, guest_code)			\
	__vm_create_with_one_vcpu(vcpu, 0, guest_code)

#ifdef __x86_64__
#define vm_install_exception_handler(vm, vector, handler)		\
	vm_handle_exception(vm, vector, handler)
#endif

struct guest_mode {
	bool supported;
	bool enabled;
};

struct vm_guest_mode_params {
	unsigned int page_size;
};

extern struct guest_mode guest_modes[NUM_VM_MODES];
extern struct vm_guest_mode_params vm_guest_mode_params[NUM_VM_MODES];
void guest_modes_append_default(void);
#endif /* HAVE_KVM_VCPU */

#if defined(__aarch64__) && defined(HAVE_VGIC_ITS_SETUP) && !defined(HAVE_KVM_SUPPORTS_VGIC_V3)
/* A VM on arm64 had a GIC only if the test made one. Without it each exit looks after userspace's. */
struct kvm_vm *compat_vm_create_with_vcpus(struct vm_shape shape, u32 nr_vcpus, u64 extra_mem_pages,
					   void *guest_code, struct kvm_vcpu *vcpus[]);
#define __vm_create_with_vcpus	compat_vm_create_with_vcpus
#endif

#ifndef HAVE_VM_SET_USER_MEMORY_REGION
void vm_set_user_memory_region(struct kvm_vm *vm, u32 slot, u32 flags, gpa_t gpa, u64 size,
			       void *hva);
#endif

#ifndef HAVE_TIMESPEC_ELAPSED
#define timespec_elapsed(start)		timespec_diff_now(start)
#endif

#ifndef HAVE_ATOI_POSITIVE
u32 atoi_positive(const char *name, const char *text);
#endif

#ifndef HAVE_BITMAP_ZALLOC
#define bitmap_zalloc(nr)		bitmap_alloc(nr)
#endif

#ifndef HAVE_TEST_ASSERT_EQ
#define TEST_ASSERT_EQ(a, b)		ASSERT_EQ(a, b)
#endif

#ifndef HAVE___TEST_REQUIRE
#define __TEST_REQUIRE(condition, fmt, ...) do {		\
	if (!(condition)) {					\
		print_skip(fmt, ##__VA_ARGS__);			\
		exit(KSFT_SKIP);				\
	}							\
} while (0)
#define TEST_REQUIRE(condition)		\
	__TEST_REQUIRE(condition, "Requirement not met: %s", #condition)
#endif

#ifdef HAVE_READ_STAT_DATA
#ifndef HAVE_VCPU_GET_STAT
u64 compat_vcpu_get_stat(struct kvm_vcpu *vcpu, const char *name);
#define vcpu_get_stat(vcpu, stat)	compat_vcpu_get_stat(vcpu, #stat)
#endif

#ifndef HAVE_PIN_SELF_TO_ANY_CPU
int pin_self_to_any_cpu(void);
#endif

#if defined(__aarch64__) && !defined(HAVE_VIRT_GET_PTE_HVA_AT_LEVEL)
u64 *virt_get_pte_hva_at_level(struct kvm_vm *vm, gva_t gva, int level);
#endif
#endif /* HAVE_READ_STAT_DATA */

#endif /* SELFTEST_KVM_COMPAT_H */
