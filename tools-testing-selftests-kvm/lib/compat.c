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

#if defined(__aarch64__) && defined(HAVE_VGIC_ITS_SETUP) && !defined(HAVE_KVM_SUPPORTS_VGIC_V3)
#include "vgic.h"
#undef __vm_create_with_vcpus

struct kvm_vm *compat_vm_create_with_vcpus(struct vm_shape shape, u32 nr_vcpus, u64 extra_mem_pages,
					   void *guest_code, struct kvm_vcpu *vcpus[])
{
	struct kvm_vm *vm = __vm_create_with_vcpus(shape, nr_vcpus, extra_mem_pages, guest_code,
						   vcpus);
	int fd = vgic_v3_setup(vm, nr_vcpus, 64);

	/* The GIC stays for as long as the VM. Some hosts have none of that version. */
	if (fd >= 0)
		close(fd);
	return vm;
}
#endif

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

#ifdef HAVE_READ_STAT_DATA
#ifndef HAVE_VCPU_GET_STAT
u64 compat_vcpu_get_stat(struct kvm_vcpu *vcpu, const char *name)
{
	int fd = __vcpu_ioctl(vcpu, KVM_GET_STATS_FD, NULL);
	struct kvm_stats_desc *all, *one = NULL;
	struct kvm_stats_header header;
	u64 value;
	u32 i;

	TEST_ASSERT(fd >= 0, KVM_IOCTL_ERROR(KVM_GET_STATS_FD, fd));
	read_stats_header(fd, &header);
	all = read_stats_descriptors(fd, &header);
	for (i = 0; i < header.num_desc; i++) {
		one = get_stats_descriptor(all, i, &header);
		if (!strcmp(one->name, name))
			break;
	}
	TEST_ASSERT(i < header.num_desc, "This kernel has no statistic %s", name);
	read_stat_data(fd, &header, one, &value, 1);
	free(all);
	close(fd);
	return value;
}
#endif

#ifndef HAVE_PIN_SELF_TO_ANY_CPU
#include <sched.h>

int pin_self_to_any_cpu(void)
{
	int cpu = sched_getcpu();

	kvm_pin_this_task_to_pcpu(cpu);
	return cpu;
}
#endif

#if defined(__aarch64__) && !defined(HAVE_VIRT_GET_PTE_HVA_AT_LEVEL)
u64 *virt_get_pte_hva_at_level(struct kvm_vm *vm, gva_t gva, int level)
{
	int bits = vm->page_shift - 3, at = 4 - (int)vm->pgtable_levels;
	u64 *entry, table = vm->pgd;

	for (;; at++) {
		entry = (u64 *)addr_gpa2hva(vm, table) +
			((gva >> (vm->page_shift + (3 - at) * bits)) & ((1 << bits) - 1));
		if (at == level)
			return entry;
		table = *entry & GENMASK_ULL(47, vm->page_shift);
	}
}
#endif
#endif /* HAVE_READ_STAT_DATA */

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
