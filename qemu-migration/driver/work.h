/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WORK_H
#define WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "vm.h"

/* What the guest had done at one moment, all vCPUs together. */
struct work {
	uint64_t iterations;
	double now;		/* s of the guest's clock */
};

struct pace {
	double rate;		/* pages/s */
	double slow_share;	/* of windows with less than half the undisturbed speed */
	double slow_seconds;
	double stall;		/* s, the longest */
	uint64_t windows;
};

/* Wait until all vCPUs work. */
void work_wait(struct vm *vm, const struct options *options);

struct work work_now(const struct vm *vm, const struct options *options);

/* Undisturbed pages/s: measured until two stretches agree within a tenth. */
double work_speed(struct vm *vm, const struct options *options, bool *steady);

/* The windows from `from` to `until` (s of the guest's clock). */
struct pace work_pace(const struct vm *vm, const struct options *options, double from, double until,
		      double speed);

/*
 * Wait until every vCPU has written each of its pages since now, and so checked
 * it; false if that takes more than `limit` seconds.
 */
bool work_goes_on(struct vm *vm, const struct options *options, double limit);

/* Pages that the guest found stale, its own counters among them. */
uint64_t work_stale(const struct vm *vm, const struct options *options);

/* Die if a vCPU took an exception. */
void work_check(const struct vm *vm, const struct options *options);

#endif
