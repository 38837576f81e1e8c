// SPDX-License-Identifier: GPL-2.0
/*
 * A VM that dies with a block of 1 GiB mapped, in the topmost stage-2 table:
 * with 40 bits of guest physical address space that is the table of 1 GiB
 * blocks. arm64; needs a hugetlb page of 1 GiB.
 */
#include <stdio.h>

#include "compat.h"
#include "metric.h"

#define ADDR	(64ul << 30)

static void guest_code(void)
{
	WRITE_ONCE(*(u64 *)ADDR, 1);
	GUEST_DONE();
}

int main(void)
{
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	struct ucall uc;

	vm = __vm_create_shape_with_one_vcpu(VM_SHAPE(VM_MODE_P40V48_4K), &vcpu, 0, guest_code);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS_HUGETLB_1GB, ADDR, 1, 1ul << 18, 0);
	virt_map(vm, ADDR, ADDR, 1);
	vcpu_run(vcpu);
	TEST_ASSERT_EQ(get_ucall(vcpu, &uc), UCALL_DONE);
	/* To free the VM would unmap its memory first. */
	printf("a VM dies with a block of 1 GiB\n");
	metric("blocks_mapped", 1, "count");
	return 0;
}
