/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where the guest's memory holds what, and in which form: for the guest itself,
 * and for the driver that reads it from outside.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stdint.h>

#define GUEST_RAM	0x40000000UL	/* of QEMU's virt machine; on x86-64 the guest maps its RAM here */
#define GUEST_ENTRY	0x40200000UL	/* below it QEMU puts the device tree */
#define GUEST_PARAMS	0x40300000UL
#define GUEST_STATE	0x40310000UL	/* one page for each vCPU */
#define GUEST_WINDOWS	0x40400000UL	/* WINDOWS windows for each vCPU */
#define GUEST_DATA	0x40800000UL	/* the working set, behind it the static pages */

#define PAGE		4096UL
#define MAX_VCPUS	64
#define WINDOWS		8192
#define MAX_WORDS	64

#define PARAMS_MAGIC	0x736d617261706d71UL
#define STATE_MAGIC	0x65746174736d716eUL

struct params {
	uint64_t magic;
	uint64_t vcpus;
	uint64_t pages;		/* of the working set of all vCPUs together */
	uint64_t rate;		/* pages/s of all vCPUs together; 0: no pause */
	uint64_t static_pages;	/* filled once, then only read */
	uint64_t window_us;	/* length of a window */
	uint64_t words;		/* that are written in a page */
};

/* Of one vCPU, in a page of its own. Times are in ticks of the virtual counter. */
struct state {
	uint64_t magic;		/* set when its part of the pages is filled */
	uint64_t freq;		/* ticks/s */
	uint64_t window_ticks;
	uint64_t pages;		/* in its part of the working set */
	uint64_t pass;		/* every page is written once in each pass */
	uint64_t iterations;	/* pages written */
	uint64_t now;		/* when the last of them was */
	uint64_t stale;		/* pages found with another value than was written */
	uint64_t static_stale;	/* static ones among what it read */
	uint64_t stale_page;	/* the first of both: which, what a word of it should hold and what it did */
	uint64_t stale_wanted;
	uint64_t stale_found;
	uint64_t state_stale;	/* times that this page itself was not as the vCPU left it */
	/* Of an exception, which no vCPU should take; x86-64: vector << 32, error code and bit 63, RIP, CR2 */
	uint64_t fault_esr;
	uint64_t fault_elr;
	uint64_t fault_far;
};

/* Number WINDOWS * n + i is entry i. */
struct window {
	uint32_t count;		/* pages written in it */
	uint32_t stall_us;	/* the longest stall that ended in it */
};

/* Self-describing: tells a stale page from one that is in the wrong place. */
static inline uint64_t page_value(uint64_t page, uint64_t word, uint64_t pass)
{
	return page << 40 | word << 32 | (uint32_t)pass;
}

/* The order of a pass, a permutation of 0..n-1; bits: 1 << bits >= n. */
static inline uint64_t permute(uint64_t i, uint64_t n, unsigned int bits, uint64_t pass)
{
	uint64_t mask = (1UL << bits) - 1;
	uint64_t salt = pass * 0x9e3779b97f4a7c15UL >> 20;

	/* Each step is invertible within the mask; what falls beyond n goes round again. */
	do {
		i = (i + salt) & mask;
		i = (i * 0x2545f4914f6cdd1dUL) & mask;
		i ^= i >> (bits / 2 + 1);
		i = (i * 0xd1342543de82ef95UL) & mask;
	} while (i >= n);
	return i;
}

/* Static pages are told apart by a pass that is never reached. */
#define STATIC_PASS	0xffffffffUL

#endif
