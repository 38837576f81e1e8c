/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From reset.S to C: a stack, the local APIC, what happens at an interrupt or an
 * exception.
 */
#include "start.h"

	.section .text.start, "ax"
	.global	_start
_start:
	mov	$1, %eax
	cpuid
	/* The number of its APIC, which is that of the vCPU. */
	shr	$24, %ebx
	mov	%ebx, %r12d
	lea	stacks(%rip), %rsp
	lea	1(%r12), %rax
	shl	$12, %rax
	add	%rax, %rsp
	/* x2APIC mode */
	mov	$0x1b, %ecx
	rdmsr
	or	$0xc00, %eax
	wrmsr
	/* No state yet, for fault_taken. */
	mov	$0xc0000101, %ecx
	xor	%eax, %eax
	xor	%edx, %edx
	wrmsr
	/* The first vCPU makes the table before it starts the others. */
	test	%r12d, %r12d
	jnz	2f
	lea	entries(%rip), %rsi
	lea	idt(%rip), %rdi
	mov	$TIMER_VECTOR + 1, %ecx
1:	mov	%esi, %eax
	mov	%ax, (%rdi)
	movw	$CODE64, 2(%rdi)
	/* An interrupt gate that is present. */
	movw	$0x8e00, 4(%rdi)
	shr	$16, %eax
	mov	%ax, 6(%rdi)
	add	$16, %rsi
	add	$16, %rdi
	loop	1b
2:	lidt	idt_pointer(%rip)
	mov	%r12, %rdi
	call	vcpu_main
3:	cli
	hlt
	jmp	3b

	/*
	 * Until the timer's interrupt. If it is taken between sti and hlt, although sti should
	 * hold it off, hlt is left out, as nothing would end it. QEMU 10.0's helper_vmrun()
	 * restores what holds it off; that of an older version, which was read, does not. It
	 * was not seen to happen.
	 */
	.global	wait_for_timer
wait_for_timer:
	sti
the_hlt:
	hlt
	cli
	ret

timer:
	push	%rax
	push	%rcx
	push	%rdx
	lea	the_hlt(%rip), %rax
	cmp	%rax, 24(%rsp)
	jne	1f
	/* A hlt has one byte. */
	incq	24(%rsp)
1:	/* End of interrupt. */
	mov	$0x80b, %ecx
	xor	%eax, %eax
	xor	%edx, %edx
	wrmsr
	pop	%rdx
	pop	%rcx
	pop	%rax
	iretq

	/* No exception is expected: tell what it was, and stay. */
fault_taken:
	mov	$0xc0000101, %ecx
	rdmsr
	shl	$32, %rdx
	lea	(%rax, %rdx), %rdi
	test	%rdi, %rdi
	jz	.
	/* Vector and error code, and a bit so that it never is 0. */
	pop	%rsi
	shl	$32, %rsi
	pop	%rax
	or	%rax, %rsi
	bts	$63, %rsi
	mov	(%rsp), %rdx
	mov	%cr2, %rcx
	and	$-16, %rsp
	call	fault

	/* 16 bytes for each vector. */
	.balign	16
entries:
	.set	vector, 0
	.rept	TIMER_VECTOR
	.balign	16
	/* Those for which the CPU pushes no error code. */
	.if	!((0x60227d00 >> vector) & 1)
	push	$0
	.endif
	push	$vector
	jmp	fault_taken
	.set	vector, vector + 1
	.endr
	.balign	16
	jmp	timer

	.section .data.idt, "aw"
idt_pointer:
	.word	16 * (TIMER_VECTOR + 1) - 1
	.quad	idt

	/*
	 * Pages of 1 GiB, with the accessed and dirty bits set. RAM is at 0, where the
	 * firmware that turns paging on is, too, and at 1 GiB, where the guest is linked. The
	 * firmware goes on at the end of 4 GiB.
	 */
	.section .data.tables, "aw"
	.balign	4096
	.global	tables
tables:
	.quad	directory - 0x40000000 + 0x23
	.balign	4096
directory:
	.quad	0xe3
	.quad	0xe3
	.quad	0x40000000 + 0xe3
	.quad	0xc0000000 + 0xe3
	.balign	4096

	.section .bss.idt, "aw", %nobits
	.balign	4096
idt:
	.skip	16 * (TIMER_VECTOR + 1)

	.section .bss.stacks, "aw", %nobits
	.balign	4096
stacks:
	.skip	4096 * 64

	.section .note.GNU-stack, "", %progbits
