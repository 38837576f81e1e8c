/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of a stress test: threads of the host that do things to a VM's memory
 */

#ifndef SELFTEST_KVM_STRESS_HELPER_H
#define SELFTEST_KVM_STRESS_HELPER_H

#include <pthread.h>
#include <stdbool.h>
#include <linux/types.h>

#include "stress_random.h"

struct stress_helper {
	const char *name;
	const char *what;

	/* Returns why it cannot be had, or NULL. */
	const char *(*setup)(void);

	/* One operation, at random, called over and over again */
	void (*op)(struct stress_helper *helper);
	u64 count;

	/* Tell a kernel thread to work or to rest, if that is what it is */
	void (*activate)(bool active);
	bool active;

	/* Mean time between operations */
	u64 pause_us;

	/* What it is there to have verified, and how many of these there were */
	const char *verifies;
	u64 (*nr_verified)(void);

	/* It uses the VM's file descriptor */
	bool uses_vm;

	/* Why it is off, unless it was asked for */
	const char *off;
	bool asked_for;
	u64 state;
	u64 last;
	bool quit;
	pthread_t thread;
};

static inline u64 helper_random(struct stress_helper *helper)
{
	return next_random(&helper->state);
}

void helper_pause(struct stress_helper *helper, u64 mean_us);

/* All of these take the test's helpers, and how many there are. */

/* Turn those of a list off, "NAME,...", or with @others all but those */
void helpers_select(struct stress_helper *helpers, int nr, char *list, bool others);

/* Set them up, print which are off. One that was asked for must not be. */
void helpers_setup(struct stress_helper *helpers, int nr);

/* Whether the one with this operation takes part */
bool helpers_have(struct stress_helper *helpers, int nr,
		  void (*op)(struct stress_helper *helper));

void helpers_start(struct stress_helper *helpers, int nr, u64 *random_state);

/* Stop those that use the VM, or the others */
void helpers_stop(struct stress_helper *helpers, int nr, bool uses_vm);

/* For a test's -h, and at its end how often each one did something, also as metrics */
void helpers_list(struct stress_helper *helpers, int nr);
void helpers_print(struct stress_helper *helpers, int nr, const char *prefix);

#endif /* SELFTEST_KVM_STRESS_HELPER_H */
