/* SPDX-License-Identifier: GPL-2.0 */
/* What QEMU's simulation of auto-converge takes of qemu/timer.h. */
#define SCALE_MS 1000000
#define NANOSECONDS_PER_SECOND 1000000000LL
