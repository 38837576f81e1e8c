/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stage2-trace: a TCG plugin that records what a KVM host on arm64 does to its stage-2 page
 * tables and TLBs (see README.md, which has the format of the trace).
 *
 *	trace.c		the plugin: what is instrumented, and what becomes a line
 *	tables.c	the stage-2 page tables, as far as the recorded stores show them
 *	arm64.c		what an instruction is to the trace
 */
#ifndef STAGE2_TRACE_H
#define STAGE2_TRACE_H

#include "qemu_api.h"

#define MAXCPU 64

/* arm64.c */
enum kind {
	OTHER,
	STORE,			/* of 8 bytes, plain or atomic, not to the stack */
	STORE_EXCLUSIVE,	/* the same; it may fail */
	TLBI, DSB, RET,
	SET_HCR, SET_VTCR, SET_VTTBR,	/* MSR to these registers of EL2 */
};
enum kind arm64_kind(uint32_t op);
/* The name of a TLBI that concerns stage 2, or all of stage 1; NULL for others. */
const char *arm64_tlbi(uint32_t op, bool *has_address, bool *stage1);
/* The name of a DSB's option. */
const char *arm64_dsb(uint32_t op);

/* tables.c; all with the lock held */
struct table {
	uint64_t address;	/* physical */
	uint64_t root;		/* physical address of the first table of its tree */
	uint64_t ipa;		/* that its first entry translates */
	uint64_t vmid;		/* of a root: with which it was last loaded */
	int level;
	bool top;		/* a root, or behind one */
	bool seen;		/* its content was read from memory */
	struct table *next;	/* of the same hash */
	uint64_t entry[];	/* as last seen */
};
struct geometry {
	int page_shift, ipa_bits, level;
};
/* From VTCR_EL2; false if it makes no sense. */
bool tables_geometry(uint64_t vtcr, struct geometry *geometry);
struct table *tables_find(uint64_t physical);
/* Know the concatenated tables at `root`, taken to be empty; tables_remove() is its reverse. */
/* All roots, one after the other: from NULL to NULL. */
struct table *tables_next_root(const struct table *after);
void tables_add_root(uint64_t root, const struct geometry *geometry);
struct table *tables_add(const struct table *parent, uint64_t address, uint64_t ipa);
void tables_remove(uint64_t address);
int tables_shift(const struct table *table);	/* log2 of what one entry translates */
int tables_entries(void);
uint64_t tables_page(uint64_t physical);	/* the start of its page */
bool tables_is_table(int level, uint64_t entry);
uint64_t tables_output(uint64_t entry);

#endif
