/* SPDX-License-Identifier: GPL-2.0 */
/* What QEMU's simulation of auto-converge takes of qemu/osdep.h, so that it compiles without a build of QEMU. */
#include <glib.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ARRAY_SIZE(x) ((int)(sizeof(x) / sizeof((x)[0])))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))

typedef struct CPUState CPUState;
