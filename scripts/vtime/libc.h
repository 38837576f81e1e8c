/* SPDX-License-Identifier: GPL-2.0 */
/* Between libc.c, which stands in for libc's functions, and clock.c. */
#ifndef VTIME_LIBC_H
#define VTIME_LIBC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

bool libc_is_main(void);
void libc_kick_main(void);
int64_t libc_real_ns(void);
bool libc_trap_tsc(void);

bool clocks_idle(pthread_cond_t *condition, pthread_mutex_t *bql);
void clocks_wait(pthread_cond_t *condition, pthread_mutex_t *held);
void clocks_waited(pthread_cond_t *condition, pthread_mutex_t *held);
void clocks_signal(pthread_cond_t *condition, bool all);
void clocks_poll(int64_t ps);
bool clocks_due(bool *sure);
void clocks_polled(bool due);

#endif
