// SPDX-License-Identifier: GPL-2.0
/*
 * What an A64 instruction is to the model.  Encodings: Arm Architecture Reference Manual for
 * A-profile (DDI 0487), C4.1 "A64 instruction set encoding" and C5 "The A64 System Instruction
 * Class".
 */
#include <string.h>

#include "vtime.h"

/* SYS: bits of op1, CRn, CRm and op2. */
static enum kind system_kind(uint32_t op)
{
	unsigned int op1 = op >> 16 & 7, crn = op >> 12 & 15, crm = op >> 8 & 15, op2 = op >> 5 & 7;

	/* TLBI, with nXS in CRn 9.  CRm 0 to 3 and 5 are IS and OS, 6 and 7 neither; 4 is both. */
	if (crn == 8 || crn == 9) {
		if (crm == 4)
			return op1 == 4 && (op2 & 3) % 3 == 0 ? TLBI_BROADCAST : TLBI_LOCAL;
		return crm == 6 || crm == 7 ? TLBI_LOCAL : TLBI_BROADCAST;
	}
	/* DC and IC, but not AT (CRm 8 and 9), nor ZVA and its like (CRm 4), which are stores. */
	if (crn == 7 && crm != 8 && crm != 9 && !(op1 == 3 && crm == 4))
		return DC;
	return PLAIN;
}

static enum kind barrier_kind(uint32_t op)
{
	unsigned int crm = op >> 8 & 15;

	/* 0 and 4 are speculation barriers.  Types: 3 is loads and stores; domain 1 is one CPU. */
	if (crm == 0 || crm == 4)
		return PLAIN;
	return (crm & 3) == 3 && crm >> 2 != 1 ? DSB : DSB_OTHER;
}

/* Load/store exclusive, ordered, compare and swap: o2 is bit 23, L 22, o1 21. */
static enum kind exclusive_kind(uint32_t op)
{
	bool o2 = op >> 23 & 1, load = op >> 22 & 1, o1 = op >> 21 & 1;

	if (o2)
		return o1 ? ATOMIC : load ? PLAIN : RELEASE;
	if (o1 && !(op >> 31))
		return ATOMIC;			/* CASP */
	return load ? LOAD_EXCLUSIVE : ATOMIC;
}

/* STR and STUR of an X register, not relative to SP. */
static bool is_store(uint32_t op)
{
	if ((op >> 5 & 31) == 31)
		return false;
	if ((op & 0xffc00000) == 0xf9000000 || (op & 0xffe00c00) == 0xf8200800)
		return true;			/* offset: immediate, register */
	/* unscaled, post-indexed, pre-indexed; 2 is STTR, as for user space */
	return (op & 0xffe00000) == 0xf8000000 && (op >> 10 & 3) != 2;
}

enum kind arm64_kind(const uint8_t *code, size_t size)
{
	uint32_t op;

	if (size != sizeof(op))
		return PLAIN;
	memcpy(&op, code, sizeof(op));
	switch (op) {
	case 0xd69f03e0: case 0xd69f0bff: case 0xd69f0fff:
		return EXCEPTION;		/* ERET, ERETAA, ERETAB */
	case 0xd503205f:
		return WFE;
	case 0xd503209f:
		return SEV;
	case 0xd50320bf:
		return SEVL;
	}
	if ((op & 0xfff80000) == 0xd5080000)
		return system_kind(op);
	if ((op & 0xfffff0ff) == 0xd503309f)
		return barrier_kind(op);
	if ((op & 0xfffff3ff) == 0xd503323f)
		return (op >> 10 & 3) != 1 ? DSB : DSB_OTHER;	/* nXS; domain 1 is one CPU */
	if ((op & 0x3f000000) == 0x08000000)
		return exclusive_kind(op);
	if ((op & 0x3fe00c00) == 0x19000000)
		return RELEASE;			/* STLUR */
	/* LDADD, SWP, ...; LDAPR is among them and is a load. */
	if ((op & 0x3f200c00) == 0x38200000 && (op & 0x3ffffc00) != 0x38bfc000)
		return ATOMIC;
	/* MRS of CNTPCT_EL0, CNTVCT_EL0, CNTPCTSS_EL0, CNTVCTSS_EL0 */
	switch (op & 0xffffffe0) {
	case 0xd53be020: case 0xd53be040: case 0xd53be0a0: case 0xd53be0c0:
		return CLOCK;
	/* MSR to ICC_SGI1R_EL1, ICC_ASGI1R_EL1, ICC_SGI0R_EL1: the CPU that is interrupted sees it */
	case 0xd518cba0: case 0xd518cbc0: case 0xd518cbe0:
		return CLOCK;
	}
	return is_store(op) ? STORE : PLAIN;
}
