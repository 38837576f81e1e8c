/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sources of the rule need of QEMU's header of this name. */
#ifndef QEMU_BITOPS_H
#define QEMU_BITOPS_H

#define BITS_PER_LONG (8 * sizeof(unsigned long))
#define BITS_TO_LONGS(n) (((n) + BITS_PER_LONG - 1) / BITS_PER_LONG)

static inline void set_bit(long nr, unsigned long *addr)
{
	addr[nr / BITS_PER_LONG] |= 1ul << (nr % BITS_PER_LONG);
}

static inline void clear_bit(long nr, unsigned long *addr)
{
	addr[nr / BITS_PER_LONG] &= ~(1ul << (nr % BITS_PER_LONG));
}

static inline int test_and_set_bit(long nr, unsigned long *addr)
{
	unsigned long mask = 1ul << (nr % BITS_PER_LONG), old = addr[nr / BITS_PER_LONG];

	addr[nr / BITS_PER_LONG] = old | mask;
	return (old & mask) != 0;
}

#endif
