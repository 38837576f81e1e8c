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

/*
 * Print a line "NAME COUNT" with the pages that the guest found stale, its own counters
 * among them. Before it, if there are any, a line "NAME_at ADDRESS WANTED FOUND": a word
 * of the first page that one vCPU found.
 */
void work_print_stale(const struct vm *vm, const struct options *options, const char *name);

#endif
