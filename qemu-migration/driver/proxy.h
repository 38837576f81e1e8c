/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PROXY_H
#define PROXY_H

#include <stdint.h>
#include <sys/types.h>

/*
 * A process that passes one connection to the socket `from` on to the socket `to`
 * and closes both after `cut` bytes. Returns its id.
 */
pid_t proxy_start(const char *from, const char *to, uint64_t cut);

#endif
