/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sources of the rule need of QEMU's header of this name, so that they compile without a configured tree. */
#ifndef QEMU_OSDEP_H
#define QEMU_OSDEP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))

#endif
