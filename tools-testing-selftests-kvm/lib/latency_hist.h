/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Histogram of latencies, filled by a vCPU and read by the host
 *
 * A vCPU cannot keep all its samples, and must not exit to hand one over: that
 * would be what it measures. The buckets are log-linear: values up to 15 have
 * one each, and each power of two above them is divided into 16, so what is
 * read from the histogram is at most 1/16 above what was recorded, whatever its
 * size. Values are in ticks of the counter that the guest reads.
 */

#ifndef SELFTEST_KVM_LATENCY_HIST_H
#define SELFTEST_KVM_LATENCY_HIST_H

#include <linux/compiler.h>
#include <linux/types.h>

/* Buckets to a power of two, and its log2 */
#define LATENCY_SUBS		16
#define LATENCY_SUB_BITS	4

/* One group below LATENCY_SUBS, and one for each of the upper bits */
#define LATENCY_BUCKETS		((65 - LATENCY_SUB_BITS) * LATENCY_SUBS)

/* Whole pages, so that vCPUs do not share any with 4K pages */
struct latency_hist {
	u64 buckets[LATENCY_BUCKETS];
	u64 max;
} __aligned(4096);

static inline unsigned int latency_bucket(u64 value)
{
	unsigned int shift;

	if (value < LATENCY_SUBS)
		return value;

	shift = 63 - __builtin_clzl(value) - LATENCY_SUB_BITS;
	return (shift + 1) * LATENCY_SUBS + (value >> shift) % LATENCY_SUBS;
}

/* Guest code, and for one writer at a time */
static inline void latency_record(struct latency_hist *hist, u64 value)
{
	hist->buckets[latency_bucket(value)]++;
	if (value > hist->max)
		hist->max = value;
}

/* Add what is in one histogram to another. */
void latency_add(struct latency_hist *to, const struct latency_hist *from);

/* Number of values recorded */
u64 latency_count(const struct latency_hist *hist);

/*
 * The smallest value that percent of the recorded ones do not exceed, at most
 * 1/16 too large, and no larger than hist->max. Zero if there are none.
 */
u64 latency_percentile(const struct latency_hist *hist, unsigned int percent);

#endif /* SELFTEST_KVM_LATENCY_HIST_H */
