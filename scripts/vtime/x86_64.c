// SPDX-License-Identifier: GPL-2.0
/*
 * What an x86-64 instruction is to the model.  Encodings: AMD64 Architecture Programmer's Manual,
 * volume 3.  A store of an immediate byte counts as a release, as Linux's spinlock ends with one;
 * other plain stores are free.
 */
#include "vtime.h"

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0x66: case 0x67:
	case 0xf2: case 0xf3:
		return true;
	}
	return false;
}

static enum kind two_byte_kind(const uint8_t *code, size_t size)
{
	bool memory = size > 1 && code[1] < 0xc0;

	if (!size)
		return PLAIN;
	switch (code[0]) {
	case 0x01:
		if (size > 1 && code[1] == 0xd8)
			return ENTER_GUEST;	/* VMRUN */
		if (size > 1 && code[1] == 0xf9)
			return CLOCK;		/* RDTSCP */
		if (size > 1 && (code[1] == 0xdf || (memory && (code[1] >> 3 & 7) == 7)))
			return TLBI_LOCAL;	/* INVLPGA, INVLPG */
		return PLAIN;
	case 0x07:
		return EXCEPTION;		/* SYSRET */
	case 0x31:
		return CLOCK;			/* RDTSC */
	case 0x22:				/* MOV to CR3 */
		return size > 1 && (code[1] >> 3 & 7) == 3 ? TLBI_LOCAL : PLAIN;
	case 0xae:				/* MFENCE */
		return size > 1 && code[1] == 0xf0 ? DSB_OTHER : PLAIN;
	}
	return PLAIN;
}

enum kind x86_64_kind(const uint8_t *code, size_t size)
{
	bool repeat = false;
	size_t at = 0;

	while (at < size && is_prefix(code[at]))
		repeat |= code[at++] == 0xf3;
	if (at < size && code[at] == 0xf0)
		return ATOMIC;			/* LOCK */
	if (at < size && (code[at] & 0xf0) == 0x40)
		at++;				/* REX */
	if (at >= size)
		return PLAIN;
	switch (code[at]) {
	case 0x86: case 0x87:			/* XCHG with memory */
		return at + 1 < size && code[at + 1] < 0xc0 ? ATOMIC : PLAIN;
	case 0x90:
		return repeat ? PAUSE : PLAIN;
	case 0xc6:				/* MOV of a byte to memory */
		return at + 1 < size && code[at + 1] < 0xc0 ? RELEASE : PLAIN;
	case 0xcf:
		return EXCEPTION;		/* IRET */
	case 0x0f:
		return two_byte_kind(code + at + 1, size - at - 1);
	}
	return PLAIN;
}
