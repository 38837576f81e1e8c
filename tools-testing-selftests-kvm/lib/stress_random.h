/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers of a stress test, for the host and for guest code
 */

#ifndef SELFTEST_KVM_STRESS_RANDOM_H
#define SELFTEST_KVM_STRESS_RANDOM_H

#include <linux/types.h>

/* The state to begin with, which must not be 0 */
static inline u64 random_seeded(u64 seed)
{
	return seed * 0x9e3779b97f4a7c15UL | 1;
}

static inline u64 next_random(u64 *state)
{
	u64 x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;

	/* The low bits of x alone are not random enough. */
	return x >> 11;
}

#endif /* SELFTEST_KVM_STRESS_RANDOM_H */
