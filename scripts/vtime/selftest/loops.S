/*
 * The hot loops, one function a test:
 *   void loop_X(iterations x0, length x1, gap x2, line a x3, line b x4, extra x5)
 * They use x9 to x15 besides, and neither stack nor calls, so that every executed instruction can
 * be seen here. How many there are is in counts.h, and checked by `executes` when assembling.
 */
#include "counts.h"

/* The end of function \name's loop: from label 0, but for \works times the body of `work`. */
.macro executes count, from, to, works
	.if (\to - \from) != 4 * (\count + 2 * \works)
	.error "counts.h does not say what this code executes"
	.endif
.endm

.macro function name
	.text
	.balign 64
	.global \name
\name:
.endm

/* Executes 1 + max(2, \n) instructions; \n is even. */
.macro work n
	mov	x9, \n
77:	subs	x9, x9, #2
	b.gt	77b
.endm

.macro next
	subs	x0, x0, #1
	b.ne	0b
.endm

function loop_independent
0:	work	x1
	next
1:	ret
	executes INDEPENDENT_LOOP, 0b, 1b, 1

/* Test and test-and-set. a: the lock, 0 or 1. */
function loop_spinlock
	mov	w10, #1
0:	work	x2
1:	ldaxr	w11, [x3]
	cbnz	w11, 4f
	swpa	w10, w11, [x3]
	cbnz	w11, 1b
	work	x1
	stlr	wzr, [x3]
2:	next
3:	ret
4:	wfe
5:	b	1b
6:
	executes SPINLOCK_LOOP, 0b, 3b, 2
	executes SPINLOCK_HELD, 1b, 2b, 1
	executes SPINLOCK_WAKE, 5b, 6b, 0

/* The same, and who waits polls. */
function loop_spinlock_poll
	mov	w10, #1
0:	work	x2
1:	ldaxr	w11, [x3]
	cbnz	w11, 1b
	swpa	w10, w11, [x3]
	cbnz	w11, 1b
	work	x1
	stlr	wzr, [x3]
2:	next
3:	ret
	executes SPINLOCK_POLL_LOOP, 0b, 3b, 2
	executes SPINLOCK_POLL_HELD, 1b, 2b, 1

/* a: the next ticket, b: the ticket that is served, on a line of its own. */
function loop_ticket
	mov	w10, #1
0:	work	x2
	ldadda	w10, w11, [x3]
1:	ldaxr	w12, [x4]
	cmp	w12, w11
	b.ne	4f
	work	x1
	add	w12, w12, #1
	stlr	w12, [x4]
2:	next
3:	ret
4:	wfe
5:	b	1b
6:
	executes TICKET_LOOP, 0b, 3b, 2
	executes TICKET_HELD, 1b, 2b, 1
	executes TICKET_WAKE, 5b, 6b, 0

/* a: how many readers there are. */
function loop_readers
	mov	w10, #1
	mov	w11, #-1
0:	work	x2
	ldadda	w10, w12, [x3]
1:	work	x1
	ldaddl	w11, w12, [x3]
2:	next
3:	ret
	executes READERS_LOOP, 0b, 3b, 2
	executes READERS_HELD, 1b, 2b, 1

/* extra: what TLBI takes, an address >> 12. */
function loop_tlbi
0:	work	x1
	tlbi	vae1is, x5
	dsb	ish
	isb
	next
1:	ret
	executes TLBI_LOOP, 0b, 1b, 1

function loop_tlbi_local
0:	work	x1
	tlbi	vae1, x5
	dsb	nsh
	isb
	next
1:	ret
	executes TLBI_LOCAL_LOOP, 0b, 1b, 1

/* a: a counter; private or shared is the caller's choice. */
function loop_atomic
	mov	w10, #1
0:	work	x1
	ldadd	w10, w12, [x3]
	next
1:	ret
	executes ATOMIC_LOOP, 0b, 1b, 1

/* a: a word; private or shared is the caller's choice. Ends before loop_store_end. */
function loop_store
0:	work	x1
	str	x10, [x3]
	next
1:	ret
	.global loop_store_end
loop_store_end:
	executes STORE_LOOP, 0b, 1b, 1

/*
 * a: this CPU's mailbox, b: the next CPU's. In round k (1, 2, ...) the token is there when the
 * mailbox holds k; the next one gets k + extra (1 on the last CPU: its next begins another round).
 */
function loop_ring
	mov	w10, #1
0:
1:	ldaxr	w11, [x3]
	cmp	w11, w10
	b.ne	4f
	work	x1
	add	w12, w10, w5
	stlr	w12, [x4]
2:	add	w10, w10, #1
	next
3:	ret
4:	wfe
5:	b	1b
6:
	executes RING_LOOP, 0b, 3b, 1
	executes RING_HELD, 1b, 2b, 1
	executes RING_WAKE, 5b, 6b, 0

/* extra: ticks of the counter to sleep. The timer is enabled and its interrupt masked in PSTATE. */
function loop_sleep
0:	isb
	mrs	x9, cntvct_el0
	add	x9, x9, x5
	msr	cntv_cval_el0, x9
	isb
1:	wfi
	mrs	x10, cntv_ctl_el0
	tbz	x10, #2, 1b
	next
2:	ret
	executes SLEEP_LOOP, 0b, 2b, 0

/* extra: what ICC_SGI1R_EL1 takes to interrupt the next CPU. */
function loop_ipi
0:	wfi
1:	mrs	x10, s3_0_c12_c12_0		/* ICC_IAR1_EL1 */
	cmp	x10, #1023
	b.eq	0b
	msr	s3_0_c12_c12_1, x10		/* ICC_EOIR1_EL1 */
	work	x1
	msr	s3_0_c12_c11_5, x5		/* ICC_SGI1R_EL1 */
2:	isb
	next
3:	ret
	executes IPI_LOOP, 0b, 3b, 1
	executes IPI_HELD, 1b, 2b, 1

/* With vectors_eret, whose one instruction counts too. */
function loop_exception
0:	work	x1
	svc	#0
	next
1:	ret
	executes EXCEPTION_LOOP - 1, 0b, 1b, 1

/* a: a line of this CPU's own. */
function loop_dc
0:	work	x1
	dc	civac, x3
	next
1:	ret
	executes DC_LOOP, 0b, 1b, 1

/* a: a line that nobody writes. */
function loop_wfe
0:	ldaxr	w11, [x3]
	wfe
	next
1:	ret
	executes WFE_LOOP, 0b, 1b, 0
