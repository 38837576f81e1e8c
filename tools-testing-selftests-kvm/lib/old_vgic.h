/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A GIC for a VM of 5.10's library on arm64, where patches/v5.10 has added a helper for
 * it. Later libraries make one with the VM, lib/compat.c for those that do not.
 */

#ifndef SELFTEST_KVM_OLD_VGIC_H
#define SELFTEST_KVM_OLD_VGIC_H

#include "compat.h"

#if defined(__aarch64__) && defined(HAVE_VGIC_V3_SUPPORTED)
#include "vgic.h"
#endif

/* Without it each exit looks after userspace's, with a lock for all CPUs. */
static inline void setup_old_vgic(struct kvm_vm *vm, int nr_vcpus)
{
#if defined(__aarch64__) && defined(HAVE_VGIC_V3_SUPPORTED)
	if (vgic_v3_supported(vm))
		vgic_v3_setup(vm, nr_vcpus, 48UL << 30);
#endif
}

#endif /* SELFTEST_KVM_OLD_VGIC_H */
