/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In the place of a firmware: from reset, or from the IPI that starts another vCPU,
 * to 64-bit mode and into the guest.
 */
#include "start.h"

	.section .text, "ax"
	.code16
	/* Another vCPU starts at RESET_SEGMENT:0. */
rom:
	cli
	lgdtl	%cs:(gdt_pointer - rom)
	mov	%cr0, %eax
	/* Without CD and NW, with PE. */
	and	$0x9fffffff, %eax
	or	$1, %eax
	mov	%eax, %cr0
	ljmpl	$CODE32, $protected

	.code32
protected:
	mov	$DATA, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	mov	$physical_tables, %eax
	mov	%eax, %cr3
	mov	%cr4, %eax
	/* PAE */
	or	$0x20, %eax
	mov	%eax, %cr4
	/* EFER.LME */
	mov	$0xc0000080, %ecx
	rdmsr
	or	$0x100, %eax
	wrmsr
	mov	%cr0, %eax
	or	$0x80000000, %eax
	mov	%eax, %cr0
	ljmp	$CODE64, $long_mode

	.code64
long_mode:
	mov	$_start, %eax
	jmp	*%rax

	/* Flat; the accessed bits are set, so that nothing is written here. */
	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9b000000ffff
	.quad	0x00cf93000000ffff
	.quad	0x00af9b000000ffff
gdt_pointer:
	.word	. - gdt - 1
	.long	gdt

	/* The first vCPU begins here. */
	.org	RESET_SIZE - 16
	/* jmp rom; a jump of 16 bits goes round at 64 KiB. */
	.byte	0xe9
	.word	-(RESET_SIZE - 16 + 3)
	.org	RESET_SIZE

	.section .note.GNU-stack, "", %progbits
