// SPDX-License-Identifier: GPL-2.0
/*
 * How long it takes to destroy a VM whose vCPUs have EL2, each with two shadow
 * stage-2 page tables. arm64, with kvm-arm.mode=nested; the vCPUs do not run.
 *
 * nested_destroy_test VCPUS
 */
#include <stdio.h>
#include <time.h>

#include "compat.h"
#include "metric.h"

static void guest_code(void)
{
}

int main(int argc, char *argv[])
{
	struct kvm_vcpu_init init;
	struct timespec start, took;
	struct kvm_vm *vm;
	u32 i, vcpus;

	TEST_REQUIRE(kvm_check_cap(KVM_CAP_ARM_EL2));
	TEST_ASSERT(argc == 2, "nested_destroy_test VCPUS");
	vcpus = atoi_positive("vCPUs", argv[1]);

	vm = vm_create(vcpus);
	kvm_get_default_vcpu_target(vm, &init);
	init.features[0] |= BIT(KVM_ARM_VCPU_HAS_EL2);
	for (i = 0; i < vcpus; i++)
		aarch64_vcpu_add(vm, i, &init, guest_code);

	clock_gettime(CLOCK_MONOTONIC, &start);
	kvm_vm_free(vm);
	took = timespec_elapsed(start);
	printf("%u vCPUs: destroyed in %lld us\n", vcpus, (long long)(timespec_to_ns(took) / 1000));
	metric("destroy_time", timespec_to_ns(took) / 1e9, "s");
	return 0;
}
