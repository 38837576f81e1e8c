// SPDX-License-Identifier: GPL-2.0
/*
 * The model of a TLB: each CPU holds an entry for each page of 4K that the guest has accessed, until a
 * TLBI removes it.  No entry is ever evicted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "refills.h"

/* Slots of a CPU's hash table; the test accesses some 600 pages. */
#define SLOTS (1u << 14)

struct slot {
	uint64_t page;
	bool used, present;
	enum cause cause;		/* why it is not present */
};
static struct slot slots[MAXCPU][SLOTS];
static unsigned int used[MAXCPU];

/* The slot of the page, or the free one that is for it. */
static struct slot *find(unsigned int cpu, uint64_t page)
{
	unsigned int i = (page * 0x9e3779b97f4a7c15ULL) >> 50;

	while (slots[cpu][i].used && slots[cpu][i].page != page)
		i = (i + 1) % SLOTS;
	return &slots[cpu][i];
}

bool tlb_access(unsigned int cpu, uint64_t page, enum cause *cause)
{
	struct slot *slot = find(cpu, page & PAGE_BITS);
	bool refilled = slot->used && !slot->present;

	if (!slot->used) {
		slot->used = true;
		slot->page = page & PAGE_BITS;
		if (++used[cpu] > SLOTS / 2) {
			fprintf(stderr, "tlb-refills: the guest accesses more than %u pages\n", SLOTS / 2);
			exit(1);
		}
	}
	slot->present = true;
	if (refilled)
		*cause = slot->cause;
	return refilled;
}

/* What is gone already stays as it is: the first TLBI is why it must be filled again. */
static void remove_slot(struct slot *slot, enum cause cause)
{
	if (slot->used && slot->present) {
		slot->present = false;
		slot->cause = cause;
	}
}

void tlb_remove_page(unsigned int cpu, uint64_t page, uint64_t pages, enum cause cause)
{
	uint64_t one = page & PAGE_BITS & ~(pages - 1), end = one + pages;

	for (; one < end; one++)
		remove_slot(find(cpu, one), cause);
}

void tlb_remove_all(unsigned int cpu, enum cause cause)
{
	unsigned int i;

	for (i = 0; used[cpu] && i < SLOTS; i++)
		remove_slot(&slots[cpu][i], cause);
}

unsigned int tlb_pages(void)
{
	unsigned int cpu, most = 0;

	for (cpu = 0; cpu < MAXCPU; cpu++)
		if (used[cpu] > most)
			most = used[cpu];
	return most;
}
