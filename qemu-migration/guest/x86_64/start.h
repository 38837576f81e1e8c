/* SPDX-License-Identifier: GPL-2.0 */
/* For the assembler, too. */
#ifndef START_H
#define START_H

/* The firmware: 64 KiB, which QEMU shows at both places. Every vCPU begins at one of them. */
#define RESET_ROM	0xffff0000
#define RESET_SEGMENT	0xf000
#define RESET_SIZE	0x10000

/* Selectors of its GDT. */
#define CODE32		0x08
#define DATA		0x10
#define CODE64		0x18

#define TIMER_VECTOR	32

#endif
