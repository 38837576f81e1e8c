/* SPDX-License-Identifier: GPL-2.0 */
/* What libc.c, which stands in for libc's functions, offers to the plugin. */
#ifndef VTIME_LIBC_H
#define VTIME_LIBC_H

#include <stdbool.h>
#include <stdint.h>

int64_t libc_real_ns(void);
bool libc_trap_tsc(void);

#endif
