/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tlb-refills: a TCG plugin that counts the TLB entries of a nested guest that must be filled again
 * because KVM has invalidated them (see README.md).
 *
 *	refills.c	the plugin: what is instrumented and counted
 *	tlb.c		the model of a TLB
 *	arm64.c		what an instruction is to the model
 */
#ifndef TLB_REFILLS_H
#define TLB_REFILLS_H

#include "qemu_api.h"

#define MAXCPU 64

/* arm64.c */
enum kind { OTHER, TLBI, ERET, RET, SET_HCR };
enum kind arm64_kind(uint32_t op);

struct tlbi {
	enum { NOTHING, ONE_PAGE, ALL } what;
	bool broadcast;
	/* It is for the guest only while HCR_EL2.TGE is 0; with TGE it is for the host's own EL2. */
	bool needs_guest;
};
struct tlbi arm64_tlbi(uint32_t op);

/* tlb.c; all with the plugin's lock held */

/* Why an entry was removed: a TLBI while KVM handled a fault, or at another time. */
enum cause { WRITE_FAULT, OTHER_FAULT, NO_FAULT, CAUSES };

/* The number of the page, and what the operand of a TLBI by VA has: VA[55:12]. */
#define PAGE_BITS ((1ULL << 44) - 1)

/*
 * The guest has accessed the page. Returns whether its entry was there before and was removed, and in
 * `cause` why. Then the CPU has to fill it again.
 */
bool tlb_access(unsigned int cpu, uint64_t page, enum cause *cause);
/* The page is in a block of so many of stage 1, a power of two: the entries of all of them. */
void tlb_remove_page(unsigned int cpu, uint64_t page, uint64_t pages, enum cause cause);
void tlb_remove_all(unsigned int cpu, enum cause cause);
/* The largest number of pages of which a CPU has had an entry. */
unsigned int tlb_pages(void);

#endif
