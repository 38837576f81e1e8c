/*
 * Entry of the boot CPU (_start, from QEMU) and of the others (secondary, from PSCI), at EL1 or
 * EL2: go to EL1, turn the MMU on (flat: 1 GiB of devices, 1 GiB of memory), take a stack, call
 * cpu_main(index). The vectors.
 */
#include "counts.h"

#define STACK_SHIFT 13

	.section .text.start, "ax"
	.global _start, secondary
_start:
	mov	x0, #0
	mrs	x1, CurrentEL
	lsr	x1, x1, #2
	adr	x2, boot_el
	str	x1, [x2]
secondary:				/* x0: index, PSCI's context id */
	mrs	x1, CurrentEL
	cmp	x1, #(2 << 2)
	b.ne	1f
	mov	x1, #(1 << 31)		/* EL1 is AArch64; nothing traps */
	msr	hcr_el2, x1
	mov	x1, #3			/* EL1 may use counters and timers */
	msr	cnthctl_el2, x1
	msr	cntvoff_el2, xzr
	mov	x1, #0x33ff
	msr	cptr_el2, x1
	mrs	x1, midr_el1
	msr	vpidr_el2, x1
	mrs	x1, mpidr_el1
	msr	vmpidr_el2, x1
	mov	x1, #0xf		/* ICC_SRE_EL2: system registers, EL1 too */
	msr	s3_4_c12_c9_5, x1
	mov	x1, #0x3c5		/* EL1h, all masked */
	msr	spsr_el2, x1
	adr	x1, 1f
	msr	elr_el2, x1
	eret
1:	ldr	x1, =0xff00		/* 0: device nGnRnE, 1: normal write-back */
	msr	mair_el1, x1
	ldr	x1, =0x200803519	/* 39 bits from level 1, 4K, write-back, inner; no TTBR1 */
	msr	tcr_el1, x1
	adrp	x1, translation
	msr	ttbr0_el1, x1
	ldr	x1, =vectors
	msr	vbar_el1, x1
	tlbi	vmalle1
	dsb	nsh
	isb
	ldr	x1, =0x30d01805		/* RES1, I, C, M */
	msr	sctlr_el1, x1
	isb
	ldr	x1, =stacks
	add	x2, x0, #1
	add	x1, x1, x2, lsl #STACK_SHIFT
	mov	sp, x1
	bl	cpu_main
	b	.

	.balign 8
	.global boot_el
boot_el: .quad 0

	.text
	.balign 2048
vectors:
	.rept 16
	.balign 128
	mrs	x0, esr_el1
	mrs	x1, elr_el1
	mrs	x2, far_el1
	b	unexpected
	.endr

	.balign 2048
	.global vectors_eret
vectors_eret:
	.rept 16
	.balign 128
	eret
	.endr

	.section .rodata
	.balign 4096
translation:
	.quad 0x0060000000000401	/* device, no execute, accessed */
	.quad 0x0000000040000705	/* memory, inner shareable, accessed */
	.fill 510, 8, 0

	.bss
	.balign 16
stacks:	.skip MAX_CPUS << STACK_SHIFT
