/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time, for guest code
 */

#ifndef SELFTEST_KVM_GUEST_COUNTER_H
#define SELFTEST_KVM_GUEST_COUNTER_H

#include "compat.h"

/* Ticks: after all instructions before this, and before any behind it */
static inline u64 guest_counter(void)
{
#ifdef __aarch64__
	u64 value;

	asm volatile("isb\n\tmrs %0, cntvct_el0\n\tisb"
		     : "=r" (value) : : "memory");
	return value;
#else
	return rdtsc();
#endif
}

/* For the host: how many ticks are a millisecond of @vcpu's */
static inline u64 ticks_per_ms(struct kvm_vcpu *vcpu)
{
#ifdef __aarch64__
	u64 hz;

	asm volatile("mrs %0, cntfrq_el0" : "=r" (hz));
	return hz / 1000;
#else
	return __vcpu_ioctl(vcpu, KVM_GET_TSC_KHZ, NULL);
#endif
}

#endif /* SELFTEST_KVM_GUEST_COUNTER_H */
