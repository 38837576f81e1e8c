/* SPDX-License-Identifier: GPL-2.0 */
/* What clock.c offers to libc.c, and to wfe.c. */
#ifndef VTIME_CLOCK_H
#define VTIME_CLOCK_H

#include "vtime.h"

/* For libc.c: the sleeps and wake-ups of QEMU's threads, and the main loop. */
extern _Thread_local bool main_loop;	/* this thread runs QEMU's main loop */
void clocks_kick(void (*kick)(void));
bool clocks_idle(pthread_cond_t *condition, pthread_mutex_t *bql);
void clocks_wait(pthread_cond_t *condition, pthread_mutex_t *held);
void clocks_waited(pthread_cond_t *condition, pthread_mutex_t *held);
void clocks_signal(pthread_cond_t *condition, bool all);
void clocks_poll(int64_t ps);
bool clocks_due(bool *sure);
void clocks_polled(bool due);

/* For wfe.c; called with the lock held. */
int64_t earliest(const struct cpu *c);
void set_clock(struct cpu *c, int64_t at);
void wake(struct cpu *c);
void wake_turn(void);
bool wait_turn(struct cpu *c, const bool *until);

#endif
