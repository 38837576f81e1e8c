// SPDX-License-Identifier: GPL-2.0
/*
 * What an A64 instruction is to the model.  Encodings: Arm Architecture Reference Manual for A-profile
 * (DDI 0487), C5.5 "A64 System instructions for TLB maintenance".
 */
#include "refills.h"

/* SYS #op1, C8 or C9, Cm, #op2, Rt; C9 is the same with nXS, which concerns the DSB. */
#define IS_TLBI(op) (((op) & 0xfff8e000) == 0xd5088000)
#define OP1(op) ((op) >> 16 & 7)
#define CRM(op) ((op) >> 8 & 15)
#define OP2(op) ((op) >> 5 & 7)

/* CRm of TLBIs that are no range: outer shareable, inner shareable, this CPU only. */
static bool is_single(uint32_t op)
{
	return CRM(op) == 1 || CRM(op) == 3 || CRM(op) == 7;
}

/* op1 is 0: stage 1 of EL1 and EL0, any ASID or one. */
static struct tlbi stage1(uint32_t op)
{
	struct tlbi tlbi = { .what = ALL, .needs_guest = true };

	if (is_single(op)) {
		/* VAE1, VAAE1, VALE1, VAALE1; the model has one ASID, and entries of last level only. */
		if (OP2(op) & 1)
			tlbi.what = ONE_PAGE;
		tlbi.broadcast = CRM(op) != 7;
	} else {
		/*
		 * A range of VAs.  KVM uses none for a guest.  Of one that a guest uses the model
		 * removes too much.
		 */
		tlbi.broadcast = CRM(op) != 6;
	}
	return tlbi;
}

/*
 * op1 is 4: stage 2, or the host's own EL2.
 *
 * IPAS2E1 and its variants (CRm 0 and 4) remove nothing: the architecture does not require them to
 * apply to entries that combine stage 1 and stage 2, which are those of the model.  KVM relies on the
 * TLBI of stage 1 that follows.
 */
static struct tlbi stage2(uint32_t op)
{
	struct tlbi tlbi = { .what = NOTHING };

	/* ALLE1 and VMALLS12E1. */
	if (is_single(op) && (OP2(op) == 4 || OP2(op) == 6)) {
		tlbi.what = ALL;
		tlbi.broadcast = CRM(op) != 7;
	}
	return tlbi;
}

struct tlbi arm64_tlbi(uint32_t op)
{
	return OP1(op) ? stage2(op) : stage1(op);
}

enum kind arm64_kind(uint32_t op)
{
	if (op == 0xd69f03e0 || op == 0xd69f0bff || op == 0xd69f0fff)
		return ERET;			/* ERET, ERETAA, ERETAB */
	if (op == 0xd65f03c0 || op == 0xd65f0bff || op == 0xd65f0fff)
		return RET;			/* RET, RETAA, RETAB */
	if ((op & 0xffffffe0) == 0xd51c1100)
		return SET_HCR;
	/* op1: 0 or 4 */
	return IS_TLBI(op) && !(OP1(op) & 3) ? TLBI : OTHER;
}
