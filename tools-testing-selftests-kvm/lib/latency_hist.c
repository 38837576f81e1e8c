// SPDX-License-Identifier: GPL-2.0
/*
 * Histogram of latencies, the host's part
 */

#include "latency_hist.h"

/* The largest value that goes to a bucket */
static u64 bucket_limit(unsigned int bucket)
{
	unsigned int shift;
	u64 low;

	if (bucket < LATENCY_SUBS)
		return bucket;

	shift = bucket / LATENCY_SUBS - 1;
	low = (u64)(LATENCY_SUBS + bucket % LATENCY_SUBS) << shift;
	return low + (1UL << shift) - 1;
}

void latency_add(struct latency_hist *to, const struct latency_hist *from)
{
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
	if (from->max > to->max)
		to->max = from->max;
}

u64 latency_count(const struct latency_hist *hist)
{
	u64 count = 0;
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		count += hist->buckets[i];

	return count;
}

u64 latency_percentile(const struct latency_hist *hist, unsigned int percent)
{
	/* Rounded up: the median of three is the second. */
	u64 rank = (latency_count(hist) * percent + 99) / 100;
	u64 seen = 0;
	unsigned int i;

	for (i = 0; i < LATENCY_BUCKETS; i++) {
		seen += hist->buckets[i];
		if (seen && seen >= rank)
			return bucket_limit(i) < hist->max ? bucket_limit(i) :
							     hist->max;
	}

	return 0;
}
