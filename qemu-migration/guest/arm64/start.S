/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From reset to C: a stack and an identity map. Cacheable memory, because QEMU
 * reads the pages through a cacheable mapping: where stage 2 does not force
 * write-back, what the guest writes with its MMU off may not be seen there.
 */
	.section .text.start, "ax"
	.global	_start
_start:
	mov	x0, #0
	/* PSCI starts the other vCPUs here, the index in x0. */
	.global	secondary
secondary:
	mov	x19, x0
	ldr	x1, =vectors
	msr	vbar_el1, x1
	/* Attribute 0: device nGnRE, 1: normal write-back. */
	mov	x1, #0xff04
	msr	mair_el1, x1
	/* 4 KiB granule, 512 GiB of addresses (T0SZ 25), 40 bits of them physical. */
	ldr	x1, =((2 << 32) | (1 << 23) | (3 << 12) | (1 << 10) | (1 << 8) | 25)
	msr	tcr_el1, x1
	ldr	x1, =table
	msr	ttbr0_el1, x1
	isb
	tlbi	vmalle1
	dsb	nsh
	ic	iallu
	dsb	nsh
	isb
	mrs	x1, sctlr_el1
	/* MMU, data cache, instruction cache. */
	mov	x2, #((1 << 0) | (1 << 2) | (1 << 12))
	orr	x1, x1, x2
	msr	sctlr_el1, x1
	isb
	ldr	x1, =stacks
	add	x2, x19, #1
	add	x1, x1, x2, lsl #12
	mov	sp, x1
	mov	x0, x19
	bl	vcpu_main
1:	wfi
	b	1b

	/* No exception is expected: tell what it was, and stay. */
	.macro	vector
	.balign	128
	mrs	x0, tpidr_el1
	cbz	x0, .
	mrs	x1, esr_el1
	mrs	x2, elr_el1
	mrs	x3, far_el1
	b	fault
	.endm

	.section .text.vectors, "ax"
	.balign	2048
vectors:
	.rept	16
	vector
	.endr

	/*
	 * The map is data that QEMU loads, not code that runs: nothing has to be
	 * cleaned from a cache. 1 GiB of devices, then RAM.
	 */
	.section .data.table, "aw"
	.balign	4096
table:
	.quad	0x0060000000000401
	.set	gib, 1
	.rept	511
	.quad	(gib << 30) | 0x705
	.set	gib, gib + 1
	.endr

	.section .bss.stacks, "aw", %nobits
	.balign	4096
stacks:
	.skip	4096 * 64
