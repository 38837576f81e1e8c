// SPDX-License-Identifier: GPL-2.0
/*
 * What an A64 instruction is to the trace.  Encodings: Arm Architecture Reference Manual for
 * A-profile (DDI 0487), C4.1 "A64 instruction set encoding" and C5 "The A64 System Instruction
 * Class".
 */
#include "trace.h"

static const struct {
	uint32_t op;		/* without Rt */
	const char *name;
	bool has_address, stage1;
} tlbis[] = {
	{ 0xd50c8020, "ipas2e1is", true, false },	{ 0xd50c80a0, "ipas2le1is", true, false },
	{ 0xd50c8420, "ipas2e1", true, false },		{ 0xd50c84a0, "ipas2le1", true, false },
	{ 0xd50c8400, "ipas2e1os", true, false },	{ 0xd50c8480, "ipas2le1os", true, false },
	{ 0xd50c8040, "ripas2e1is", true, false },	{ 0xd50c80c0, "ripas2le1is", true, false },
	{ 0xd50c8440, "ripas2e1", true, false },	{ 0xd50c84c0, "ripas2le1", true, false },
	{ 0xd50c8460, "ripas2e1os", true, false },	{ 0xd50c84e0, "ripas2le1os", true, false },
	{ 0xd50c83c0, "vmalls12e1is", false, false },	{ 0xd50c87c0, "vmalls12e1", false, false },
	{ 0xd50c81c0, "vmalls12e1os", false, false },
	{ 0xd50c8380, "alle1is", false, false },	{ 0xd50c8780, "alle1", false, false },
	{ 0xd50c8180, "alle1os", false, false },
	{ 0xd5088300, "vmalle1is", false, true },	{ 0xd5088700, "vmalle1", false, true },
	{ 0xd5088100, "vmalle1os", false, true },
	{ 0xd50887e0, "vaale1", true, true },
};

const char *arm64_tlbi(uint32_t op, bool *has_address, bool *stage1)
{
	size_t i;

	for (i = 0; i < sizeof(tlbis) / sizeof(tlbis[0]); i++) {
		/* CRn 9 is the same with nXS, which needs a DSB with nXS only. */
		if ((op & 0xffffffe0) == tlbis[i].op || (op & 0xffffffe0) == (tlbis[i].op | 0x1000)) {
			*has_address = tlbis[i].has_address;
			*stage1 = tlbis[i].stage1;
			return tlbis[i].name;
		}
	}
	return NULL;
}

const char *arm64_dsb(uint32_t op)
{
	static const char * const names[16] = {
		NULL, "oshld", "oshst", "osh", NULL, "nshld", "nshst", "nsh",
		NULL, "ishld", "ishst", "ish", NULL, "ld", "st", "sy",
	};

	return names[op >> 8 & 15];
}

/* STR and STUR of an X register, not relative to SP. */
static bool is_plain_store(uint32_t op)
{
	if ((op >> 5 & 31) == 31)
		return false;
	if ((op & 0xffc00000) == 0xf9000000 || (op & 0xffe00c00) == 0xf8200800)
		return true;			/* offset: immediate, register */
	/* unscaled, post-indexed, pre-indexed; 2 is STTR, as for user space */
	return (op & 0xffe00000) == 0xf8000000 && (op >> 10 & 3) != 2;
}

/* Of 8 bytes: STLR, STLLR, CAS, STLUR, and LDADD, SWP and others, but for LDAPR. */
static bool is_ordered_store(uint32_t op)
{
	if ((op & 0xffe00000) == 0xc8800000 || (op & 0xffa00000) == 0xc8a00000)
		return true;
	if ((op & 0xffe00c00) == 0xd9000000)
		return true;
	return (op & 0xff200c00) == 0xf8200000 && (op & 0xfffffc00) != 0xf8bfc000;
}

enum kind arm64_kind(uint32_t op)
{
	bool has_address, stage1;

	if (op == 0xd65f03c0 || op == 0xd65f0bff || op == 0xd65f0fff)
		return RET;			/* RET, RETAA, RETAB */
	switch (op & 0xffffffe0) {
	case 0xd51c1100:
		return SET_HCR;
	case 0xd51c2140:
		return SET_VTCR;
	case 0xd51c2100:
		return SET_VTTBR;
	}
	if ((op & 0xfffff0ff) == 0xd503309f)
		return arm64_dsb(op) ? DSB : OTHER;
	if (arm64_tlbi(op, &has_address, &stage1))
		return TLBI;
	if ((op & 0xffe00000) == 0xc8000000)
		return STORE_EXCLUSIVE;		/* STXR, STLXR */
	return is_plain_store(op) || is_ordered_store(op) ? STORE : OTHER;
}
