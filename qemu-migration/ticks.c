// SPDX-License-Identifier: GPL-2.0
/*
 * Prints the frequency, in kHz, of the counter that QEMU's emulated x86-64 has as its
 * TSC: this machine's own. Counter and clock are read at the same time, so it does not
 * matter how busy the machine is.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static uint64_t ticks(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	asm volatile("lfence\n\trdtsc" : "=a" (low), "=d" (high) :: "memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t value;

	asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r" (value) :: "memory");
	return value;
#else
#error "neither arm64 nor x86-64"
#endif
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Both at one moment: of many readings the one that took the least time. */
static void both(double *when, uint64_t *counter)
{
	double least = 1;
	int i;

	for (i = 0; i < 1000; i++) {
		double before = seconds();
		uint64_t value = ticks();
		double length = seconds() - before;

		if (length < least) {
			least = length;
			*when = before + length / 2;
			*counter = value;
		}
	}
}

int main(void)
{
	struct timespec wait = { .tv_nsec = 300000000 };
	double begin = 0, end = 0;
	uint64_t first = 0, last = 0;

	both(&begin, &first);
	nanosleep(&wait, NULL);
	both(&end, &last);
	printf("%.0f\n", (last - first) / (end - begin) / 1000);
	return 0;
}
