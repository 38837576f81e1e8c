// SPDX-License-Identifier: GPL-2.0
/*
 * What libraries of older trees lack of that of linux 7.3
 */

#include "compat.h"

#ifndef HAVE_KVM_VCPU
#undef kvm_vm_free

/* Code and what else the library puts into memslot 0, page tables */
static u64 nr_pages(u32 nr_vcpus, u64 extra_mem_pages)
{
	return 2 * DEFAULT_GUEST_PHY_PAGES + nr_vcpus * DEFAULT_STACK_PGS + 512 +
	       extra_mem_pages / 256;
}

struct kvm_vm *__vm_create_with_vcpus(struct vm_shape shape, u32 nr_vcpus, u64 extra_mem_pages,
				      void *guest_code, struct kvm_vcpu *vcpus[])
{
	u64 pages = vm_adjust_num_guest_pages(shape.mode, nr_pages(nr_vcpus, extra_mem_pages));
	struct kvm_vcpu *all = calloc(nr_vcpus, sizeof(*all));
	struct kvm_vm *vm = vm_create(shape.mode, pages, O_RDWR);
	u32 i;

	TEST_ASSERT(all, "Memory allocation failed");
	kvm_vm_elf_load(vm, program_invocation_name, 0, 0);
#ifdef __x86_64__
	vm_create_irqchip(vm);
#endif
	for (i = 0; i < nr_vcpus; i++) {
		vm_vcpu_add_default(vm, i, guest_code);
#ifdef __x86_64__
		vcpu_set_cpuid(vm, i, kvm_get_supported_cpuid());
#endif
		all[i].vm = vm;
		all[i].id = i;
		all[i].run = vcpu_state(vm, i);
		vcpus[i] = &all[i];
	}
#ifdef __x86_64__
	vm_init_descriptor_tables(vm);
	for (i = 0; i < nr_vcpus; i++)
		vcpu_init_descriptor_tables(vm, i);
#endif
	ucall_init(vm, NULL);
	return vm;
}

/* The vCPUs go with the process. */
void compat_vm_free(struct kvm_vm *vm)
{
	ucall_uninit(vm);
	kvm_vm_free(vm);
}

struct guest_mode guest_modes[NUM_VM_MODES];
struct vm_guest_mode_params vm_guest_mode_params[NUM_VM_MODES];

static bool mode_supported(int mode)
{
#ifdef __aarch64__
	unsigned int pa_bits, limit = kvm_check_cap(KVM_CAP_ARM_VM_IPA_SIZE);

	return sscanf(vm_guest_mode_string(mode), "PA-bits:%u", &pa_bits) == 1 &&
	       pa_bits <= (limit ? limit : 40);
#else
	return mode == VM_MODE_DEFAULT;
#endif
}

void guest_modes_append_default(void)
{
	int i;

	for (i = 0; i < NUM_VM_MODES; i++) {
		guest_modes[i].supported = mode_supported(i);
		guest_modes[i].enabled = i == VM_MODE_DEFAULT;
		vm_guest_mode_params[i].page_size =
			strstr(vm_guest_mode_string(i), "64K") ? 65536 : 4096;
	}
}
#endif /* HAVE_KVM_VCPU */

#ifndef HAVE_VM_SET_USER_MEMORY_REGION
void vm_set_user_memory_region(struct kvm_vm *vm, u32 slot, u32 flags, gpa_t gpa, u64 size,
			       void *hva)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.flags = flags,
		.guest_phys_addr = gpa,
		.memory_size = size,
		.userspace_addr = (uintptr_t)hva,
	};
	int ret = ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &region);

	TEST_ASSERT(!ret,
		    "KVM_SET_USER_MEMORY_REGION failed, slot: %u flags: 0x%x gpa: 0x%lx size: 0x%lx errno: %i (%s)",
		    slot, flags, gpa, size, errno, strerror(errno));
}
#endif

#ifndef HAVE_ATOI_POSITIVE
u32 atoi_positive(const char *name, const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	TEST_ASSERT(value > 0 && value <= INT32_MAX && !*end,
		    "%s must be greater than 0, got '%s'", name, text);
	return value;
}
#endif
