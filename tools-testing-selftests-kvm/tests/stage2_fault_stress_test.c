// SPDX-License-Identifier: GPL-2.0
/*
 * Stress test of stage-2 faults (of any second-stage MMU: stage 2, NPT, EPT)
 *
 * vCPUs read and write the same few blocks of memory, while the host does
 * everything that write protects, splits, collapses, removes or replaces what
 * the second-stage page tables map. What the guest reads is verified all the
 * time, and so is what the host finds in memory and in the dirty log whenever
 * the vCPUs are stopped. The host's helpers go on meanwhile.
 *
 * What is verified
 *
 * Each 8-byte word has one vCPU as its owner, or none: then it is zero for
 * ever. Its owner writes values that name the owner, the word and a generation
 * which goes up by one each time. For each word there is a record of the last
 * write in memory that nothing happens to: generation, state of the page (see
 * below) and harvest of the dirty log at the time of the write.
 *
 *  - A word is what its owner wrote last, when the owner reads it, before and
 *    after each write, and when the vCPUs are stopped. To others, it is one of
 *    the generations that it can have had while they read it.
 *
 *  - A page's sequence number is odd while the host punches a hole that it is
 *    in. A word may be zero only if its page was punched since the word was
 *    written. It must be zero if a punch came and went after the write.
 *    Otherwise the vCPU still uses a page that is not there any more.
 *
 *  - When the host has taken memory away without changing what is in it, by
 *    PROT_NONE or PROT_READ, nobody writes to it. When it puts a copy of the
 *    memory in place, nobody reads or writes the original, which is poisoned.
 *
 *  - A page that was written to after a harvest of the dirty log is reported by
 *    a later one. Each write remembers how many harvests were over before it.
 *
 *  - The same memory is read by a KVM_MEM_READONLY memslot, too. Every write to
 *    that exits, and the host does it.
 *
 *  - On arm64 one word in eight is code that its owner executes, by the memslot
 *    that is written to and logged, and by one that is logged but not written to:
 *    it returns what a read would find.
 *
 *  - KVM_RUN fails, by EFAULT, only if memory was taken away meanwhile, and
 *    accesses are MMIO only if the memslot was, or if they write to the one that
 *    is read-only.
 *
 *  - All vCPUs make progress: they stop when told to.
 *
 * A VM that gave nothing to verify fails, after it got more time: no word, no
 * write that the log had to report although a helper turns it on, no write to the
 * read-only memslot, no code executed.
 *
 * A VM ends in good order, or with -K by its process being killed, while its
 * memory is looked at by idle page tracking in both cases.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <asm/barrier.h>
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/kernel.h>

#include "compat.h"
#include "host_file.h"
#include "host_mm.h"
#include "metric.h"
#include "stress_helper.h"
#include "stress_util.h"
#include "test_result.h"

#ifndef MADV_COLD
#define MADV_COLD		20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT		21
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP	4
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB		(21 << 26)
#endif

/* The size of a huge page with 4K pages, and the unit of what the host does. */
#define BLOCK_SIZE		(2UL << 20)

#define TEST_SLOT		1
#define SHARED_SLOT		2
#define READONLY_SLOT		3
#define CODE_SLOT		4

/*
 * The same guest virtual as guest physical addresses, far from the test's code
 * and from what ucall() uses.
 */
#define TEST_GPA		(4UL << 30)
#define SHARED_GPA		(8UL << 30)

/* Where the memslot can be, the first is where it begins. */
#define NR_PLACES		3

/* Where memslots are that have the test memory */
enum place {
	HOME,
	NEXT_DOOR,
	MISALIGNED,	/* No blocks there */

	/* They have the same memory, and stay where they are. */
	READONLY_PLACE,
	CODE_PLACE,
	NR_ALL_PLACES,
};

#define MAX_STRESS_VCPUS	64

/* Words that a vCPU owns in each page */
#define SLOTS_PER_PAGE		8

/* A quarter of all accesses are to so few pages that the vCPUs meet there. */
#define NR_HOT_PAGES		8

/* How many pages of a process that is killed are aged */
#define NR_DYING_PAGES		32

/* On arm64 it begins with an undefined instruction. */
#define POISON			0xfeeddead0000deadUL

/* Seconds without progress which are a failure, even in a debug kernel */
#define HANG_SECONDS		100

/* Stages of GUEST_SYNC() */
#define STAGE_STOPPED		1
#define STAGE_FAILED		2
#define STAGE_EXCEPTION		3

/* What an exception is told by */
#ifdef __x86_64__
#define EXCEPTION	"vector and error code: 0x%lx RIP: 0x%lx CR2: 0x%lx"
#else
#define EXCEPTION	"ESR_EL1: 0x%lx ELR_EL1: 0x%lx FAR_EL1: 0x%lx"
#endif

/*
 * The record of a word, written by its owner only. PENDING means that the write
 * of this generation may or may not have been done.
 */
#define REC_GEN(rec)		((rec) & 0xffffff)
#define REC_PENDING		BIT(24)
#define REC_SEQ(rec)		(((rec) >> 25) & 0xfffff)
#define REC_EPOCH(rec)		((rec) >> 45)
#define MAX_SEQ			0xfffff
#define MAX_EPOCH		0x7ffff

#define VALUE_MARK		BIT(63)
#define VALUE_GEN(value)	(((value) >> 32) & 0xffffff)

/* By which memslot a word is accessed: execution is for words that are code. */
enum via {
	BY_HOME,
	BY_READONLY,
	BY_EXECUTION,
	BY_EXECUTION_AT_HOME,
};

enum verdict {
	GOOD,
	LOST,
	STALE,
	WRONG,
};

static const char * const verdicts[] = {
	[GOOD]	= "good",
	[LOST]	= "lost: zero, although nobody punched a hole",
	[STALE]	= "stale: still there after a hole was punched",
	[WRONG]	= "wrong: not what was written",
};

struct failure {
	u64 verdict;
	u64 word;
	u64 value;
	u64 rec;
	u64 rec_after;
	u64 seq;
	u64 seq_after;
	u64 place;
};

/* Host and guest share this, by memory that nothing happens to. */
struct shared {
	/* Constant */
	u64 seed;
	u64 nr_vcpus;
	u64 nr_pages;
	u64 nr_blocks;
	u64 page_shift;
	u64 first_twin_page;
	u64 place_gva[NR_ALL_PLACES];
	u64 seqs_gva;
	u64 recs_gva;

	/* Written by the host */
	u32 stop;
	u32 place;
	u32 hot_page;
	u32 stay;
	u32 epoch;

	/* Which memslots there are to access memory by, apart from its home */
	u32 readonly;
	u32 code;

	/* Constant: whether code can be executed at home, too */
	u32 code_at_home;

	/*
	 * Where all vCPUs are wanted: a page, and above it which time this is; and
	 * what they are to do there
	 */
	u64 rally;
	u32 task;

	/* Those that do nothing but read are to go on. */
	u32 hold;

	/* Written by vCPUs */
	struct {
		u64 accesses;

		/* The number plus 1 of the page that it does nothing but read */
		u64 reads;

		/* The last rally that it was at */
		u64 rallied;

		/* Words written to by the read-only memslot, words executed */
		u64 exiting_writes;
		u64 executed;
		u64 pad[11];
	} vcpu[MAX_STRESS_VCPUS];
	struct failure failure[MAX_STRESS_VCPUS];
};

/* What vCPUs do at a rally: write; read by the memslot for code; execute */
enum task {
	TASK_WRITE,
	TASK_READ_CODE,
	TASK_EXECUTE,
};

static void full_barrier(void)
{
	/*
	 * Host and guest look at words, records and sequence numbers in the
	 * order that is written here, and each needs all of it.
	 */
	smp_mb();
}

#ifdef __aarch64__
#define CAN_EXECUTE		true
#else
#define CAN_EXECUTE		false
#endif

/* movz x0, #number; ret */
#define CODE(number)		(0xd65f03c0d2800000UL | (number) << 5)
#define CODE_NUMBER(value)	((value) >> 5 & 0xffff)

/* The words of the last slot of each page are code. */
static bool is_code(struct shared *sh, u64 word)
{
	u64 words_per_page = 1UL << (sh->page_shift - 3);

	return CAN_EXECUTE &&
	       word % words_per_page / (words_per_page / SLOTS_PER_PAGE) == SLOTS_PER_PAGE - 1;
}

/*
 * Pages of a pair of twins have the same content, for KSM. Everywhere else a
 * value names its word.
 */
static u64 word_in_value(struct shared *sh, u64 word)
{
	u64 words_shift = sh->page_shift - 3;

	if (word >> words_shift >= sh->first_twin_page)
		word &= ~(1UL << words_shift);
	return word;
}

/* The number that code returns is its generation, and where it is. */
static u16 code_number(struct shared *sh, u64 word, u64 owner, u64 gen)
{
	word = word_in_value(sh, word);
	return gen + ((word << 7 | owner) * 0x9e3779b97f4a7c15UL >> 48);
}

/* What the owner writes to a word, never zero */
static u64 value_of(struct shared *sh, u64 word, u64 owner,
			 u64 gen)
{
	if (is_code(sh, word))
		return CODE((u64)code_number(sh, word, owner, gen));

	word = word_in_value(sh, word);
	return VALUE_MARK | owner << 56 | gen << 32 | word;
}

/* The generation, from this one on, that a value can be of: code has its low bits. */
static u64 gen_of(struct shared *sh, u64 word, u64 owner,
		       u64 value, u64 lowest)
{
	if (is_code(sh, word))
		return lowest + (u16)(CODE_NUMBER(value) -
					   code_number(sh, word, owner, lowest));

	return VALUE_GEN(value);
}

/*
 * Verify what was read of a word by somebody who knows its last write: its
 * owner, or the host when all vCPUs are stopped. The page's sequence number was
 * seq before and seq_after after it was read.
 */
static enum verdict verify_word(struct shared *sh, u64 word,
				u64 owner, u64 value, u64 rec,
				u32 seq, u32 seq_after)
{
	if (!value) {
		if (REC_GEN(rec) && !(REC_SEQ(rec) & 1) &&
		    REC_SEQ(rec) == seq_after)
			return LOST;
		return GOOD;
	}

	if (!REC_GEN(rec) || value != value_of(sh, word, owner, REC_GEN(rec)))
		return WRONG;

	if (!(REC_SEQ(rec) & 1) && REC_SEQ(rec) != (seq & ~1))
		return STALE;

	return GOOD;
}

/*
 * Guest code
 */

/*
 * Accesses to the test memory become MMIO when the memslot is away, so they
 * have to be by an instruction that arm64 describes in the syndrome.
 */
static u64 guest_load(u64 gva)
{
	u64 value;

#if defined(__aarch64__)
	asm volatile("ldr %0, %1" : "=r" (value) : "Q" (*(u64 *)gva) : "memory");
#elif defined(__x86_64__)
	asm volatile("movq %1, %0" : "=r" (value) : "m" (*(u64 *)gva) : "memory");
#else
	value = READ_ONCE(*(u64 *)gva);
#endif
	return value;
}

static void guest_store(u64 gva, u64 value)
{
#if defined(__aarch64__)
	asm volatile("str %1, %0" : "=Q" (*(u64 *)gva) : "r" (value) : "memory");
#elif defined(__x86_64__)
	asm volatile("movq %1, %0" : "=m" (*(u64 *)gva) : "r" (value) : "memory");
#else
	WRITE_ONCE(*(u64 *)gva, value);
#endif
}

#ifdef __x86_64__
/* None is expected. Without a handler the guest would shut down, and not say why. */
static void guest_exception(struct ex_regs *regs)
{
	u64 cr2;

	asm volatile("mov %%cr2, %0" : "=r" (cr2));
	GUEST_SYNC_ARGS(STAGE_EXCEPTION, regs->vector << 32 | regs->error_code, regs->rip,
			cr2, regs->rflags);
}
#endif

#ifdef __aarch64__
static void __attribute__((used)) guest_exception(u64 esr, u64 elr, u64 far)
{
	GUEST_SYNC_ARGS(STAGE_EXCEPTION, esr, elr, far, 0);
}

/*
 * A hole and poison are undefined instructions: return to the caller, with a number
 * that code does not return. Every other exception is a failure. Only exceptions
 * at EL1 with its own stack pointer are expected, whose vector this is.
 */
asm(".pushsection .text\n\t"
	".balign 2048\n"
"guest_vectors:\n\t"
	".skip 0x200\n\t"
	"mrs x0, esr_el1\n\t"
	"lsr x1, x0, #26\n\t"
	"cbnz x1, 1f\n\t"
	"msr elr_el1, x30\n\t"
	"mov x0, #-1\n\t"
	"eret\n"
"1:	mrs x1, elr_el1\n\t"
	"mrs x2, far_el1\n\t"
	"adr x3, guest_exception\n\t"
	"msr elr_el1, x3\n\t"
	"eret\n\t"
	".popsection");

static void guest_set_vectors(void)
{
	asm volatile("adr x0, guest_vectors\n\t"
		     "msr vbar_el1, x0\n\t"
		     "isb" : : : "x0", "memory");
}

/* What a read would have found, or zero if it is not code */
static u64 guest_execute(u64 gva)
{
	register u64 number asm("x0");

	asm volatile("blr %1" : "=r" (number) : "r" (gva) : "x1", "x30", "memory");
	return number > 0xffff ? 0 : CODE(number);
}

/* Have what was written executed next, not what the instruction cache has. */
static void guest_sync_code(u64 gva)
{
	asm volatile("dc cvau, %0\n\t"
		     "dsb ish\n\t"
		     "ic ivau, %0\n\t"
		     "dsb ish\n\t"
		     "isb" : : "r" (gva) : "memory");
}
#else
static void guest_set_vectors(void)
{
}

static u64 guest_execute(u64 gva)
{
	return 0;
}

static void guest_sync_code(u64 gva)
{
}
#endif

/* The address is worked out anew for each access: the memslot moves. */
static u64 guest_gva(struct shared *sh, u64 word, enum via via)
{
	u64 place = READ_ONCE(sh->place);

	if (via == BY_READONLY)
		place = READONLY_PLACE;
	else if (via == BY_EXECUTION)
		place = CODE_PLACE;
	return sh->place_gva[place] + word * 8;
}

/*
 * By which memslot to access this word, at random. Every other block is executed by
 * the memslot for code at rallies only, which find it mapped execute-never.
 */
static enum via guest_choose_via(struct shared *sh, u64 word, u64 r)
{
	u64 block = word / ((sh->nr_pages / sh->nr_blocks) << (sh->page_shift - 3));

	if (is_code(sh, word) && READ_ONCE(sh->code)) {
		if ((r & 0x30) == 0x10 && sh->code_at_home)
			return BY_EXECUTION_AT_HOME;
		if ((r & 0x30) == 0x20 && !(block & 1))
			return BY_EXECUTION;
	}
	return !(r & 7) && READ_ONCE(sh->readonly) ? BY_READONLY : BY_HOME;
}

static u64 guest_read(struct shared *sh, u64 word, enum via via)
{
	u64 gva = guest_gva(sh, word, via);

	if (via >= BY_EXECUTION)
		return guest_execute(gva);
	return guest_load(gva);
}

static void guest_write(struct shared *sh, u64 id, u64 word, u64 value,
			enum via via)
{
	/* What is executed is written at home. */
	if (via >= BY_EXECUTION)
		via = BY_HOME;
	guest_store(guest_gva(sh, word, via), value);
	if (via == BY_READONLY)
		WRITE_ONCE(sh->vcpu[id].exiting_writes, sh->vcpu[id].exiting_writes + 1);
	if (is_code(sh, word))
		guest_sync_code(sh->place_gva[CODE_PLACE] + word * 8);
}

static void guest_fail(struct shared *sh, u64 id, enum verdict verdict,
		       u64 word, u64 value, u64 rec,
		       u64 rec_after, u32 seq, u32 seq_after)
{
	struct failure *f = &sh->failure[id];

	f->rec_after = rec_after;
	f->seq = seq;
	f->seq_after = seq_after;
	f->place = READ_ONCE(sh->place);
	GUEST_SYNC_ARGS(STAGE_FAILED, verdict, word, value, rec);
}

static void guest_verify_own(struct shared *sh, u64 id, u64 word,
			     enum via via)
{
	u32 *seqp = (u32 *)sh->seqs_gva + (word >> (sh->page_shift - 3));
	u64 rec = READ_ONCE(((u64 *)sh->recs_gva)[word]);
	u32 seq, seq_after;
	enum verdict verdict;
	u64 value;

	seq = READ_ONCE(*seqp);
	full_barrier();
	value = guest_read(sh, word, via);
	full_barrier();
	seq_after = READ_ONCE(*seqp);

	verdict = verify_word(sh, word, id, value, rec, seq, seq_after);
	if (verdict != GOOD)
		guest_fail(sh, id, verdict, word, value, rec, rec, seq, seq_after);
	if (via >= BY_EXECUTION && value)
		WRITE_ONCE(sh->vcpu[id].executed, sh->vcpu[id].executed + 1);
}

static void guest_write_own(struct shared *sh, u64 id, u64 word,
			    enum via via)
{
	u32 *seqp = (u32 *)sh->seqs_gva + (word >> (sh->page_shift - 3));
	u64 *recp = (u64 *)sh->recs_gva + word;
	u64 gen = REC_GEN(*recp) + 1;
	u64 epoch;
	u64 seq, rec;

	guest_verify_own(sh, id, word, via);

	/*
	 * If the sequence number is even, and the same again when the word has
	 * been written, then no hole was punched in between. The harvest of the
	 * dirty log that has to report this write ends after this epoch began.
	 */
	seq = READ_ONCE(*seqp);
	epoch = READ_ONCE(sh->epoch);
	full_barrier();
	rec = gen | seq << 25;
	rec |= epoch << 45;
	WRITE_ONCE(*recp, rec | REC_PENDING);
	full_barrier();
	guest_write(sh, id, word, value_of(sh, word, id, gen), via);
	full_barrier();
	if (READ_ONCE(*seqp) != seq)
		rec |= 1UL << 25;
	WRITE_ONCE(*recp, rec);

	guest_verify_own(sh, id, word, via);
}

/* The word's owner may write to it at the same time. */
static void guest_verify_other(struct shared *sh, u64 id, u64 owner,
			       u64 word, enum via via)
{
	u32 *seqp = (u32 *)sh->seqs_gva + (word >> (sh->page_shift - 3));
	u64 *recp = (u64 *)sh->recs_gva + word;
	enum verdict verdict = GOOD;
	u64 value, gen, lowest;
	u32 seq, seq_after;
	u64 rec, rec_after;

	rec = READ_ONCE(*recp);
	full_barrier();
	seq = READ_ONCE(*seqp);
	full_barrier();
	value = guest_read(sh, word, via);
	full_barrier();
	seq_after = READ_ONCE(*seqp);
	full_barrier();
	rec_after = READ_ONCE(*recp);

	if (!value) {
		/* If it was pending, it may have been zero before. */
		if (!(rec & REC_PENDING))
			verdict = verify_word(sh, word, owner, value, rec, seq,
					      seq_after);
	} else if (rec == rec_after && !(rec & REC_PENDING)) {
		verdict = verify_word(sh, word, owner, value, rec, seq,
				      seq_after);
	} else {
		lowest = REC_GEN(rec) - !!(rec & REC_PENDING);
		gen = gen_of(sh, word, owner, value, lowest);
		if (!gen || gen < lowest || gen > REC_GEN(rec_after) ||
		    value != value_of(sh, word, owner, gen))
			verdict = WRONG;
	}

	if (verdict != GOOD)
		guest_fail(sh, id, verdict, word, value, rec, rec_after, seq,
			   seq_after);
}

/* Each vCPU has a page of its own, behind the one given. */
static void guest_rally(struct shared *sh, u64 id)
{
	u64 words_per_page = 1UL << (sh->page_shift - 3);
	u64 block_pages = sh->nr_pages / sh->nr_blocks;
	u64 rally = READ_ONCE(sh->rally), page = (u32)rally, n = page % block_pages;
	u64 word;
	u64 code = (SLOTS_PER_PAGE - 1) * (words_per_page / SLOTS_PER_PAGE);

	page += (n + 1 + id) % block_pages - n;
	word = page * words_per_page + id;
	switch (READ_ONCE(sh->task)) {
	case TASK_WRITE:
		guest_write_own(sh, id, word, BY_HOME);
		break;
	case TASK_READ_CODE:
		guest_write_own(sh, id, word + code, BY_HOME);
		guest_load(sh->place_gva[CODE_PLACE] + word * 8);
		break;
	case TASK_EXECUTE:
		guest_verify_own(sh, id, word + code, BY_EXECUTION);
		break;
	}
	WRITE_ONCE(sh->vcpu[id].rallied, rally);
}

/* Do nothing but read, so many times, and then as long as it is held */
static void guest_stay_reading(struct shared *sh, u64 id, u64 word, u64 n,
			       enum via via)
{
	WRITE_ONCE(sh->vcpu[id].reads, (word >> (sh->page_shift - 3)) + 1);
	for (; (n || READ_ONCE(sh->hold)) && !READ_ONCE(sh->stop); n -= !!n)
		guest_verify_own(sh, id, word, via);
	WRITE_ONCE(sh->vcpu[id].reads, 0);
}

/*
 * Stay a while, with a translation that is cached until the host invalidates it,
 * and most of the time no exit.
 */
static void guest_stay(struct shared *sh, u64 id, u64 word, u64 n,
		       enum via via)
{
	for (; n && !READ_ONCE(sh->stop); n--) {
		if (n % 16) {
			guest_verify_own(sh, id, word, via);
			continue;
		}
		if (READ_ONCE(sh->rally) != sh->vcpu[id].rallied)
			break;
		guest_write_own(sh, id, word, via);
	}
}

static void guest_code(u64 id)
{
	struct shared *sh = (struct shared *)SHARED_GPA;
	u64 words_per_page = 1UL << (sh->page_shift - 3);
	u64 stride = words_per_page / SLOTS_PER_PAGE;
	u64 state = random_seeded(sh->seed + id);
	u64 r, n, page, word, owner;
	u64 twin;
	enum via via;
	bool hot;

	guest_set_vectors();

	for (;;) {
		if (READ_ONCE(sh->stop))
			GUEST_SYNC(STAGE_STOPPED);
		WRITE_ONCE(sh->vcpu[id].accesses, sh->vcpu[id].accesses + 1);
		if (READ_ONCE(sh->rally) != sh->vcpu[id].rallied)
			guest_rally(sh, id);

		/*
		 * Half of the accesses go to a block that is the same for all
		 * vCPUs, half of those to few pages of it.
		 */
		r = next_random(&state);
		page = (r >> 8) % sh->nr_pages;
		hot = (r & 3) == 3;
		if (r & 1) {
			page %= sh->nr_pages / sh->nr_blocks;
			if (hot)
				page %= NR_HOT_PAGES;
			page += READ_ONCE(sh->hot_page);
			page %= sh->nr_pages;
		}

		/* Let twins be for a while, KSM wants to see them unchanged. */
		twin = 0;
		if (page >= sh->first_twin_page) {
			if (r & 0x7c)
				continue;
			twin = words_per_page;
			page &= ~1UL;
		}

		r = next_random(&state);
		word = page * words_per_page + (r >> 8) % SLOTS_PER_PAGE * stride;
		via = guest_choose_via(sh, word, r >> 47);

		if (twin) {
			guest_write_own(sh, id, word + id, via);
			guest_write_own(sh, id, word + twin + id, via);
			continue;
		}

		if (!(r & 3)) {
			owner = (r >> 16) % sh->nr_vcpus;
			/* Only its owner knows when code is as it was written. */
			if (via >= BY_EXECUTION)
				via = BY_HOME;
			guest_verify_other(sh, id, owner, word + owner, via);
			continue;
		}

		guest_write_own(sh, id, word + id, via);

		/*
		 * With emulation and in nested VMs an exit may well invalidate
		 * what is cached, so stay long, but don't all do so.
		 */
		n = (r >> 24) % (hot && (id & 1) ? READ_ONCE(sh->stay) : 16);
		if (hot && (id & 1) && (r & 4)) {
			guest_stay_reading(sh, id, word + id, n, via);
			continue;
		}
		guest_stay(sh, id, word + id, n, via);
	}
}

/*
 * Host code
 */

enum backing {
	ANON,
	ANON_THP,
	SHMEM,
	SHMEM_THP,
	HUGETLB_2M,
	NR_BACKINGS,
};

static const char * const backing_names[] = {
	[ANON]		= "anonymous",
	[ANON_THP]	= "anonymous_thp",
	[SHMEM]		= "shmem",
	[SHMEM_THP]	= "shmem_thp",
	[HUGETLB_2M]	= "hugetlb_2mb",
};

enum log_mode {
	LOG_GET,
	LOG_CLEAR,
	LOG_CLEAR_ALL_SET,
	NR_LOG_MODES,
};

static const char * const log_mode_names[] = {
	[LOG_GET]		= "get",
	[LOG_CLEAR]		= "clear",
	[LOG_CLEAR_ALL_SET]	= "clear-all-set",
};

/* Times that something was taken away, and given back again */
struct window {
	u64 opened;
	u64 closed;
};

struct block {
	pthread_mutex_t lock;
};

/* Options */
static enum backing backing = ANON_THP;
static u64 mem_size = 8UL << 20;
static int nr_vcpus = 4;
static u64 wanted = 100;
static u64 time_limit = 9;
static u64 nr_vms = 1;
static u64 verify_ms = 300;
static u64 seed;
static bool kill_vms;
static bool none_wanted;

/* The test memory */
static void *mem;
static int mem_fd = -1;
static void *mem_view;		/* Of mem_fd, not known to KVM */
static void *stage;		/* Address space to move memory to */
static u64 page_size, page_shift, nr_pages, nr_blocks, block_pages;
static struct block *blocks;
static bool thp;
static bool twins;

static struct kvm_vm *vm;
static struct kvm_vcpu *vcpus[MAX_STRESS_VCPUS];
static enum log_mode log_mode;
static struct shared *sh;
static u32 *seqs;
static u64 *recs;
static gpa_t place_gpa[NR_ALL_PLACES];

/* slot_lock is for the memslot and for all that has to do with its log. */
static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER;
static u64 slot_place;
static bool logging;
static u32 log_since;	/* Epoch in which logging was turned on */
static u32 *reported;	/* Epoch that the harvest which reported it began */
static u32 *emulated;	/* The same for writes of the vCPU's thread */
static unsigned long *bmap, *bmap_part;

/* Memory that KVM cannot get at, memory without a memslot */
static struct window mem_window, slot_window;

static sem_t vcpu_stopped;
static sem_t vcpu_continue[MAX_STRESS_VCPUS];
static int nr_running;
static bool host_quit;
static u64 nr_stops, nr_words;
static u64 nr_harvests, nr_dirty;
static u64 nr_efault, nr_mmio;
static u64 nr_exiting_writes[MAX_STRESS_VCPUS];
static u64 random_state;
static struct timespec started;
static bool running;

static void window_open(struct window *window)
{
	__atomic_add_fetch(&window->opened, 1, __ATOMIC_SEQ_CST);
}

static void window_close(struct window *window)
{
	__atomic_add_fetch(&window->closed, 1, __ATOMIC_SEQ_CST);
}

static u64 window_nr_closed(struct window *window)
{
	return __atomic_load_n(&window->closed, __ATOMIC_SEQ_CST);
}

/* Was the window open at any time since nr_closed was read? */
static bool window_was_open(struct window *window, u64 nr_closed)
{
	return __atomic_load_n(&window->opened, __ATOMIC_SEQ_CST) != nr_closed;
}

static void lock(pthread_mutex_t *mutex)
{
	int ret = pthread_mutex_lock(mutex);

	TEST_ASSERT(!ret, "pthread_mutex_lock() failed: %s", strerror(ret));
}

static void unlock(pthread_mutex_t *mutex)
{
	int ret = pthread_mutex_unlock(mutex);

	TEST_ASSERT(!ret, "pthread_mutex_unlock() failed: %s", strerror(ret));
}

static double seconds_since(struct timespec start)
{
	return timespec_to_ns(timespec_elapsed(start)) / 1e9;
}

/* The memslot and the dirty log */

/* With slot_lock held */
static void set_test_slot(u64 size)
{
	u32 flags = logging ? KVM_MEM_LOG_DIRTY_PAGES : 0;

	vm_set_user_memory_region(vm, TEST_SLOT, flags, place_gpa[slot_place], size, mem);
}

static void next_epoch(void)
{
	TEST_ASSERT(sh->epoch < MAX_EPOCH, "Too many harvests");
	full_barrier();
	WRITE_ONCE(sh->epoch, sh->epoch + 1);
	full_barrier();
}

/* With slot_lock held and logging turned on */
static void harvest(u64 r)
{
	u64 page, first = 0, nr = nr_pages;

	kvm_vm_get_dirty_log(vm, TEST_SLOT, bmap);
	for (page = 0; page < nr_pages; page++)
		if (test_bit(page, bmap))
			reported[page] = sh->epoch + 1;

	if (log_mode != LOG_GET) {
		/* Now and then clear part of it, the rest is reported again. */
		if (!(r & 3)) {
			first = (r >> 8) % nr_pages & ~63UL;
			nr = nr_pages - first;
			if (r & 4 && nr > 64)
				nr = 64;
		}
		memcpy(bmap_part, (void *)bmap + first / 8, (nr + 7) / 8);
		kvm_vm_clear_dirty_log(vm, TEST_SLOT, bmap_part, first, nr);
	}
	next_epoch();
	nr_harvests++;
}

/* What was verified, apart from words of memory */

static u64 logged_writes(void)
{
	return nr_dirty;
}

static u64 exiting_writes(void)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < nr_vcpus; i++)
		sum += READ_ONCE(sh->vcpu[i].exiting_writes);
	return sum;
}

static u64 executed(void)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < nr_vcpus; i++)
		sum += READ_ONCE(sh->vcpu[i].executed);
	return sum;
}

/* Helpers: threads of the host that do things to the memory */

struct range {
	u64 block;
	u64 first;
	u64 nr;
	void *hva;
	size_t size;
};

/*
 * Choose pages of a block: half of the time those that the vCPUs meet at, else
 * any few, many, or the whole block. Every other block is left alone mostly, so
 * that it stays in one piece and can be mapped as a whole.
 */
static struct range choose_range(struct stress_helper *helper)
{
	u64 r = helper_random(helper);
	u64 block, page = 0, nr = 1;
	struct range range;

	if (r & 1) {
		page = (READ_ONCE(sh->hot_page) + (r >> 8) % NR_HOT_PAGES) % nr_pages;
		block = page / block_pages;
		page %= block_pages;
		if (r & 2)
			nr = NR_HOT_PAGES;
	} else {
		block = (r >> 8) % nr_blocks;
		if ((block & 1) && (r & 0xe))
			block--;

		if (!(r & 0x70)) {
			nr = block_pages;
		} else {
			page = (r >> 24) % block_pages;
			nr = 1 + (r >> 40) % (r & 0x80 ? NR_HOT_PAGES : block_pages);
		}
	}

	if (backing == HUGETLB_2M) {
		page = 0;
		nr = block_pages;
	}

	/* Both twins, or none */
	if (block * block_pages >= sh->first_twin_page) {
		nr = roundup(nr + (page & 1), 2);
		page &= ~1UL;
	}

	range.block = block;
	range.first = block * block_pages + page;
	range.nr = min(nr, block_pages - page);
	range.hva = mem + range.first * page_size;
	range.size = range.nr * page_size;
	return range;
}

/* Where a helper has just locked a block, to do something to this page of it */
static u64 busy_page;

static struct range lock_range(struct stress_helper *helper)
{
	struct range range = choose_range(helper);

	lock(&blocks[range.block].lock);
	WRITE_ONCE(busy_page, range.first);
	return range;
}

static void unlock_range(struct range *range)
{
	unlock(&blocks[range->block].lock);
}

/* Whether nobody writes to it */
static u64 checksum(void *start, size_t size)
{
	u64 *word = start, sum = 0;

	for (; size; size -= 8)
		sum = sum * 31 + READ_ONCE(*word++);
	return sum;
}

static void must_not_change(struct stress_helper *helper, struct range *range, void *view)
{
	u64 before = checksum(view, range->size);

	helper_pause(helper, 100);
	TEST_ASSERT(checksum(view, range->size) == before,
		    "%s: pages %lu to %lu were written to while they were not there for the guest to write to",
		    helper->name, range->first, range->first + range->nr - 1);
}

static void protect(void *start, size_t size, int prot)
{
	TEST_ASSERT(!mprotect(start, size, prot),
		    "mprotect() failed, size: 0x%lx prot: %i errno: %i (%s)",
		    size, prot, errno, strerror(errno));
}

/* Advice that the memory began with, for new mappings of it */
static void advise(void *start, size_t size)
{
	switch (backing) {
	case ANON_THP:
	case SHMEM_THP:
		madvise(start, size, MADV_HUGEPAGE);
		break;
	case ANON:
	case SHMEM:
		madvise(start, size, MADV_NOHUGEPAGE);
		break;
	default:
		break;
	}
	if (twins && start + size > mem + sh->first_twin_page * page_size)
		madvise(start, size, MADV_MERGEABLE);
}

/* With slot_lock held */
static void start_logging(void)
{
	logging = true;
	set_test_slot(mem_size);
	next_epoch();
	log_since = sh->epoch;
}

/* With slot_lock held */
static void stop_logging(void)
{
	logging = false;
	set_test_slot(mem_size);
}

static void op_log(struct stress_helper *helper)
{
	u64 r = helper_random(helper);
	int i, n = 1 + (r >> 8) % 5;

	lock(&slot_lock);
	if (!logging) {
		start_logging();
		helper->count++;
	}
	unlock(&slot_lock);

	for (i = 0; i < n; i++) {
		helper_pause(helper, helper->pause_us);
		lock(&slot_lock);
		harvest(helper_random(helper));
		unlock(&slot_lock);

		/* Few pages, or the whole block, and maybe across its end */
		WRITE_ONCE(sh->hot_page, (r >> 16) % nr_pages &
					 (r & 8 ? ~(block_pages - 1) : ~0UL));
	}

	/* Or it stays on, also across what verifies it. */
	if (r & (1UL << 40)) {
		lock(&slot_lock);
		stop_logging();
		unlock(&slot_lock);
	}
}

static void op_slots(struct stress_helper *helper)
{
	u64 r = helper_random(helper);

	lock(&slot_lock);
	window_open(&slot_window);
	if (r & 3) {
		/* Away from home, to one of the others, or back */
		slot_place = slot_place ? 0 : 1 + (r >> 8) % (NR_PLACES - 1);
		if (r & 4)
			WRITE_ONCE(sh->place, slot_place);
		set_test_slot(mem_size);
		WRITE_ONCE(sh->place, slot_place);
	} else {
		set_test_slot(0);
		helper_pause(helper, 100);
		set_test_slot(mem_size);

		/* The new memslot has a new log. */
		next_epoch();
		log_since = sh->epoch;
	}
	window_close(&slot_window);
	unlock(&slot_lock);
	helper->count++;

	/* Not away for as long as at home: a misaligned memslot has no blocks. */
	if (slot_place)
		helper_pause(helper, helper->pause_us / 4);
	else
		helper_pause(helper, helper->pause_us);
}

/* With the block's lock held */
static void punch(struct range *range)
{
	int advice = MADV_DONTNEED;
	u64 i;
	int ret;

	if (mem_fd >= 0)
		advice = MADV_REMOVE;
	for (i = range->first; i < range->first + range->nr; i++) {
		TEST_ASSERT(seqs[i] < MAX_SEQ - 1, "Too many holes punched");
		WRITE_ONCE(seqs[i], seqs[i] + 1);
	}
	full_barrier();
	ret = madvise(range->hva, range->size, advice);
	TEST_ASSERT(!ret, "madvise(%i) failed, errno: %i (%s)", advice, errno, strerror(errno));
	full_barrier();
	for (i = range->first; i < range->first + range->nr; i++)
		WRITE_ONCE(seqs[i], seqs[i] + 1);
}

static void op_punch(struct stress_helper *helper)
{
	struct range range = lock_range(helper);

	punch(&range);
	unlock_range(&range);
	helper->count++;
}

static const char *setup_age(void)
{
	return page_idle_open() ? NULL : "no idle page tracking in this kernel";
}

/*
 * The block is not locked: it is while something is done to the memory that
 * aging has to come. Most of the time it looks at the pages that another helper
 * has chosen, or at those that the vCPUs meet at. A huge page is aged by its
 * first page.
 */
static void op_age(struct stress_helper *helper)
{
	u64 r = helper_random(helper), nr = NR_HOT_PAGES;
	struct range range;
	u64 page;

	if (r & 6) {
		page = (r & 1 ? READ_ONCE(busy_page) : READ_ONCE(sh->hot_page)) % nr_pages;
	} else {
		range = choose_range(helper);
		page = range.first;
		nr = range.nr;
	}

	if (page % block_pages)
		helper->count += page_idle_mark_range(mem + page / block_pages * BLOCK_SIZE, 1);
	helper->count += page_idle_mark_range(mem + page * page_size, min(nr, nr_pages - page));
}

static bool rally_ages;

static const char *setup_rally(void)
{
	/* If there is no idle page tracking, it does without. */
	rally_ages = page_idle_open();
	return NULL;
}

/* Have all vCPUs do something in a block. It has a number. */
static u64 call_rally(enum task task, u64 page)
{
	u64 rally = ((sh->rally >> 32) + 1) << 32 | page;

	WRITE_ONCE(sh->task, task);
	full_barrier();
	WRITE_ONCE(sh->rally, rally);
	return rally;
}

static int nr_rallied(u64 rally)
{
	int i, nr = 0;

	for (i = 0; i < nr_vcpus; i++)
		nr += READ_ONCE(sh->vcpu[i].rallied) == rally;
	return nr;
}

/*
 * Have all vCPUs write to a block, but for those that do nothing but read and
 * those that are stopped. Wait for so many of them, but not for long.
 */
static int rally(u64 page, int wanted)
{
	u64 rally = call_rally(TASK_WRITE, page);
	struct timespec start;
	int nr;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		nr = nr_rallied(rally);
	} while (nr < wanted && seconds_since(start) < 0.02);
	return nr;
}

/*
 * When the log has been turned off, a write makes a block of pages, if what they
 * map is in one piece, and when it has been turned on, a write splits it. All
 * vCPUs do so at once. Those that only read may remember the block: so punch a
 * hole where one of them reads, as soon as another one has split it.
 */
static void op_rally(struct stress_helper *helper)
{
	struct range range = { .nr = 1, .size = page_size };
	u64 r = helper_random(helper), page = 0, reads;
	int i, readers = 0;

	WRITE_ONCE(sh->hold, backing != HUGETLB_2M);
	for (i = 0; i < nr_vcpus; i++) {
		reads = READ_ONCE(sh->vcpu[i].reads);
		if (reads && sh->hold && reads <= sh->first_twin_page) {
			readers++;
			page = reads - 1;
		}
	}
	if (!readers) {
		page = (r >> 8) % sh->first_twin_page;
		/* Now and then one of them writes to the first page. */
		if (r & 1)
			page |= block_pages - 1;
	}

	range.block = page / block_pages;
	range.first = page;
	range.hva = mem + page * page_size;

	lock(&slot_lock);
	lock(&blocks[range.block].lock);
	WRITE_ONCE(busy_page, page);
	if (logging)
		stop_logging();
	if ((r & 2) && rally_ages)
		page_idle_mark_range(mem + range.block * BLOCK_SIZE, 1);
	rally(page, nr_vcpus - readers);
	start_logging();
	if (readers)
		helper_pause(helper, 100);
	if (rally(page, readers ? 1 : nr_vcpus) && readers) {
		punch(&range);
		helper_pause(helper, 500);

		/* What is populated next can be in one piece again. */
		range.first = range.block * block_pages;
		range.nr = block_pages;
		range.hva = mem + range.block * BLOCK_SIZE;
		range.size = BLOCK_SIZE;
		punch(&range);
	}
	WRITE_ONCE(sh->hold, 0);
	unlock_range(&range);
	unlock(&slot_lock);
	helper->count++;
}

static const char *setup_readonly(void)
{
	return kvm_check_cap(KVM_CAP_READONLY_MEM) ? NULL : "KVM has no read-only memslots";
}

static void activate_readonly(bool active)
{
	WRITE_ONCE(sh->readonly, active);
}

static void set_readonly_slot(void)
{
	vm_set_user_memory_region(vm, READONLY_SLOT, KVM_MEM_READONLY,
				  place_gpa[READONLY_PLACE], mem_size, mem);
}

/* The vCPUs use the memslot all the time. Delete it, and add it again. */
static void op_readonly(struct stress_helper *helper)
{
	lock(&slot_lock);
	window_open(&slot_window);
	vm_set_user_memory_region(vm, READONLY_SLOT, 0, place_gpa[READONLY_PLACE], 0, mem);
	helper_pause(helper, 100);
	set_readonly_slot();
	window_close(&slot_window);
	unlock(&slot_lock);
	helper->count++;
}

static const char *setup_exec(void)
{
	return CAN_EXECUTE ? NULL : "for arm64 only";
}

static void activate_exec(bool active)
{
	WRITE_ONCE(sh->code, active);
}

static void set_code_slot(bool logging)
{
	vm_set_user_memory_region(vm, CODE_SLOT, logging ? KVM_MEM_LOG_DIRTY_PAGES : 0,
				  place_gpa[CODE_PLACE], mem_size, mem);
}

/*
 * Wait for those vCPUs that are not stopped, nor do nothing but read; nothing races
 * here, so leave the CPU to them.
 */
static int code_rally(enum task task, u64 page)
{
	u64 rally = call_rally(task, page);
	int i, n, missing;

	for (n = 0; n < 100; n++) {
		missing = READ_ONCE(nr_running) - nr_rallied(rally);
		for (i = 0; i < nr_vcpus; i++)
			missing -= !!READ_ONCE(sh->vcpu[i].reads);
		if (missing <= 0)
			break;
		usleep(1000);
	}
	return nr_rallied(rally);
}

/*
 * All vCPUs read a block by the memslot for code, and execute from it when the log
 * has been turned on, and once more when it has been turned off again. There are
 * no writes by that memslot: it is exec faults that split the block and make it
 * one again, where memory is mapped execute-never until it is executed (no DIC).
 * The operations are executions in blocks that are logged.
 */
static void op_exec(struct stress_helper *helper)
{
	u64 page = helper_random(helper) % sh->first_twin_page;
	void *start;

	/* See guest_choose_via(). */
	if (page + block_pages < sh->first_twin_page)
		page |= block_pages;
	start = mem + page / block_pages * BLOCK_SIZE;

	lock(&slot_lock);
	lock(&blocks[page / block_pages].lock);
	WRITE_ONCE(busy_page, page);

	/* What is mapped may be executable. Have it unmapped. */
	window_open(&mem_window);
	protect(start, BLOCK_SIZE, PROT_READ);
	protect(start, BLOCK_SIZE, PROT_READ | PROT_WRITE);
	window_close(&mem_window);

	code_rally(TASK_READ_CODE, page);
	set_code_slot(true);
	helper->count += code_rally(TASK_EXECUTE, page);
	set_code_slot(false);
	code_rally(TASK_EXECUTE, page);
	unlock(&blocks[page / block_pages].lock);
	unlock(&slot_lock);
}

static int proc_self_mem = -1;

/* Whether a forced write to memory that is PROT_NONE is allowed, see proc_mem.force_override */
static bool can_copy;

static const char *setup_remap(void)
{
	u64 number = 0;
	void *p, *q;

	if (mem_fd >= 0)
		return NULL;
	proc_self_mem = open("/proc/self/mem", O_RDWR);
	if (proc_self_mem < 0)
		return "/proc/self/mem cannot be opened";

	p = mmap(NULL, page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(p != MAP_FAILED, "mmap() failed");
	can_copy = pwrite(proc_self_mem, &number, 8, (off_t)p) == 8;
	if (!can_copy)
		pr_info("remap: no copies, forced writes to /proc/self/mem are not allowed\n");
	q = mremap(p, page_size, page_size,
		   MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, stage);
	munmap(p, page_size);
	return q == MAP_FAILED ? "no MREMAP_DONTUNMAP in this kernel" : NULL;
}

/* It cannot be moved at once if the kernel has it in more than one VMA. */
static bool move(void *from, void *to, size_t size)
{
	void *p = mremap(from, size, size,
			 MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);

	if (p == MAP_FAILED && errno == EFAULT)
		return false;

	TEST_ASSERT(p == to, "mremap() failed, size: 0x%lx errno: %i (%s)",
		    size, errno, strerror(errno));
	return true;
}

/* Map the file anew, and before that, take it away for a while. */
static bool remap_file(struct stress_helper *helper, struct range *range)
{
	off_t offset = range->first * page_size;

	if (helper_random(helper) & 1) {
		protect(range->hva, range->size, PROT_NONE);
		must_not_change(helper, range, mem_view + offset);
	}
	map_fixed(range->hva, range->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		  mem_fd, offset);
	advise(range->hva, range->size);
	return true;
}

/*
 * Move memory elsewhere, and it or a copy of it back. What is at the address
 * meanwhile nobody can access: there is no hole, as KVM would report each fault
 * there in the kernel's log.
 */
static bool remap_anon(struct stress_helper *helper, struct range *range)
{
	void *away = stage + (range->first % block_pages) * page_size;
	bool copy = (helper_random(helper) & 1) && can_copy;
	u64 *word;
	ssize_t ret;

	protect(range->hva, range->size, PROT_NONE);
	if (!move(range->hva, away, range->size)) {
		protect(range->hva, range->size, PROT_READ | PROT_WRITE);
		return false;
	}
	protect(away, range->size, PROT_READ);
	must_not_change(helper, range, away);

	if (copy) {
		/* The kernel lets a process write to its own PROT_NONE. */
		ret = pwrite(proc_self_mem, away, range->size, (off_t)range->hva);
		TEST_ASSERT(ret == range->size,
			    "Writing to /proc/self/mem failed, rc: %zi errno: %i (%s)",
			    ret, errno, strerror(errno));
		protect(away, range->size, PROT_READ | PROT_WRITE);
		for (word = away; word < (u64 *)(away + range->size); word++)
			WRITE_ONCE(*word, POISON);
	} else {
		protect(away, range->size, PROT_NONE);
		TEST_ASSERT(move(away, range->hva, range->size),
			    "mremap() does not move back what it has moved");
	}
	protect(range->hva, range->size, PROT_READ | PROT_WRITE);

	if (copy) {
		helper_pause(helper, 50);
		for (word = away; word < (u64 *)(away + range->size); word++)
			TEST_ASSERT(READ_ONCE(*word) == POISON,
				    "%s: page %lu was written to after it was replaced by a copy: 0x%lx",
				    helper->name,
				    range->first + ((void *)word - away) / page_size,
				    *word);
	}
	map_fixed(away, range->size, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return true;
}

static void op_remap(struct stress_helper *helper)
{
	struct range range = lock_range(helper);
	bool done;

	window_open(&mem_window);
	if (mem_fd < 0)
		done = remap_anon(helper, &range);
	else
		done = remap_file(helper, &range);
	window_close(&mem_window);
	unlock_range(&range);
	helper->count += done;
}

static void op_split(struct stress_helper *helper)
{
	struct range range = lock_range(helper);
	void *start = mem + range.block * BLOCK_SIZE;
	u64 choice = helper_random(helper) & 3;

	if (backing == HUGETLB_2M)
		choice = 0;
	switch (choice) {
	case 0:
	case 1:
		/* Splits the mapping of the huge page */
		window_open(&mem_window);
		protect(range.hva, range.size, PROT_READ);
		must_not_change(helper, &range, range.hva);
		protect(range.hva, range.size, PROT_READ | PROT_WRITE);
		window_close(&mem_window);
		break;
	case 2:
		/* Splits the huge page, if it is asked for a part of it */
		madvise(range.hva, range.size, MADV_COLD);
		break;
	case 3:
		if (!thp)
			break;
		/* What is populated meanwhile are small pages. */
		madvise(start, BLOCK_SIZE, MADV_NOHUGEPAGE);
		helper_pause(helper, 500);
		madvise(start, BLOCK_SIZE, MADV_HUGEPAGE);
		break;
	}
	unlock_range(&range);
	helper->count++;
}

static const char *setup_collapse(void)
{
	u64 number;
	char text[32];

	if (!thp)
		return "no transparent huge pages of 2M here";
	if (!host_read_number(KHUGEPAGED_DIR "/pages_collapsed", &number))
		return "no khugepaged in this kernel";

	snprintf(text, sizeof(text), "%lu", nr_pages);
	if (!set_until_exit(KHUGEPAGED_DIR "/scan_sleep_millisecs", "0") ||
	    !set_until_exit(KHUGEPAGED_DIR "/alloc_sleep_millisecs", "0") ||
	    !set_until_exit(KHUGEPAGED_DIR "/pages_to_scan", text))
		return "khugepaged cannot be configured";

	return NULL;
}

static void activate_collapse(bool active)
{
	host_write_text(KHUGEPAGED_DIR "/scan_sleep_millisecs", active ? "0" : "10000");
}

/* The operations are those of khugepaged. */
static void op_collapse(struct stress_helper *helper)
{
	u64 number = 0;

	host_read_number(KHUGEPAGED_DIR "/pages_collapsed", &number);
	if (helper->last)
		helper->count += number + 1 - helper->last;
	helper->last = number + 1;
}

static const char *setup_ksm(void)
{
	u64 number;

	if (mem_fd >= 0)
		return "for anonymous memory only";
	if (!host_read_number(KSM_DIR "/run", &number))
		return "no KSM in this kernel";
	if (!set_until_exit(KSM_DIR "/sleep_millisecs", "20") ||
	    !set_until_exit(KSM_DIR "/pages_to_scan", "16") ||
	    !set_until_exit(KSM_DIR "/run", "1"))
		return "KSM cannot be configured";

	return NULL;
}

static void activate_ksm(bool active)
{
	host_write_text(KSM_DIR "/run", active ? "1" : "0");
}

/* The operations are those of ksmd: pages that were merged, at least. */
static void op_ksm(struct stress_helper *helper)
{
	u64 first = sh->first_twin_page, number = 0;
	u64 block;

	host_read_number(KSM_DIR "/pages_sharing", &number);
	if (number > helper->last)
		helper->count += number - helper->last;
	helper->last = number;

	if (helper_random(helper) & 63)
		return;

	/* Give each user of a merged page a copy. */
	for (block = first / block_pages; block < nr_blocks; block++) {
		lock(&blocks[block].lock);
		madvise(mem + block * BLOCK_SIZE, BLOCK_SIZE, MADV_UNMERGEABLE);
		madvise(mem + block * BLOCK_SIZE, BLOCK_SIZE, MADV_MERGEABLE);
		unlock(&blocks[block].lock);
	}
}

static void op_migrate(struct stress_helper *helper)
{
	struct range range;

	if (migrate_by_node()) {
		range = lock_range(helper);
		move_to_node(range.hva, range.nr, helper->count & 1);
		unlock_range(&range);
	} else {
		compact_memory();
	}
	helper->count++;
}

static const char *setup_pageout(void)
{
	char line[128] = "";
	FILE *f = fopen("/proc/swaps", "r");

	if (mem_fd >= 0)
		return "for anonymous memory only";

	/* The first line is the heading. */
	if (!f || !fgets(line, sizeof(line), f) || !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	return line[0] ? NULL : "no swap";
}

static void op_pageout(struct stress_helper *helper)
{
	struct range range = lock_range(helper);

	madvise(range.hva, range.size, MADV_PAGEOUT);
	unlock_range(&range);
	helper->count++;
}

static struct stress_helper helpers[] = {
	{
		.name = "log", .op = op_log,
		.what = "turns dirty logging on and off, harvests it",
		.pause_us = 1500, .uses_vm = true,
		.verifies = "write in the dirty log", .nr_verified = logged_writes,
	},
	{
		.name = "slots", .op = op_slots,
		.what = "moves the memslot, deletes it and adds it again",
		.pause_us = 25000, .uses_vm = true,
	},
	{
		.name = "punch", .op = op_punch,
		.what = "punches holes",
		.pause_us = 5000,
	},
	{
		.name = "rally", .setup = setup_rally, .op = op_rally,
		.what = "has all vCPUs collapse and split a block at once",
		.pause_us = 2000, .uses_vm = true,
		.verifies = "write in the dirty log", .nr_verified = logged_writes,
	},
	{
		.name = "readonly", .setup = setup_readonly, .op = op_readonly,
		.what = "has vCPUs use a read-only memslot, deletes it and adds it again",
		.pause_us = 25000, .uses_vm = true, .activate = activate_readonly,
		.verifies = "write to the read-only memslot", .nr_verified = exiting_writes,
	},
	{
		.name = "exec", .setup = setup_exec, .op = op_exec,
		.what = "has vCPUs execute what they write, from blocks that are logged",
		.pause_us = 10000, .uses_vm = true, .activate = activate_exec,
		.verifies = "word that was executed", .nr_verified = executed,
	},
	{
		.name = "remap", .setup = setup_remap, .op = op_remap,
		.what = "moves memory elsewhere, and it or a copy of it back",
		.pause_us = 4000,
	},
	{
		.name = "split", .op = op_split,
		.what = "splits huge pages, write protects them",
		.pause_us = 4000,
	},
	{
		.name = "collapse", .setup = setup_collapse, .op = op_collapse,
		.what = "khugepaged, counts the huge pages it made",
		.pause_us = 20000, .activate = activate_collapse,
	},
	{
		.name = "ksm", .setup = setup_ksm, .op = op_ksm,
		.what = "merges pages, counts them",
		.pause_us = 5000, .activate = activate_ksm,
	},
	{
		.name = "migrate", .setup = migrate_setup, .op = op_migrate,
		.what = "moves pages between nodes, or compacts memory",
		.pause_us = 20000,
	},
	{
		.name = "pageout", .setup = setup_pageout, .op = op_pageout,
		.what = "swaps pages out",
		.pause_us = 10000,
	},
	{
		.name = "age", .setup = setup_age, .op = op_age,
		.what = "clears accessed flags by idle page tracking",
		.pause_us = 1000,
	},
};

#define NR_HELPERS	ARRAY_SIZE(helpers)

/* One that takes part, and has had nothing verified, or NULL */
static struct stress_helper *unverified_helper(void)
{
	int i;

	for (i = 0; i < NR_HELPERS; i++)
		if (!helpers[i].off && helpers[i].verifies && !helpers[i].nr_verified())
			return &helpers[i];
	return NULL;
}

/*
 * Give some of them a rest until the next time: vCPUs get on faster, and there
 * are all kinds of combinations. Choose how long vCPUs stay at a word, too.
 * If there is one that the others have kept from its work, give them all a rest.
 */
static void choose_helpers(struct stress_helper *only)
{
	u64 r = next_random(&random_state);
	bool all = !(r & (7UL << 32));
	struct stress_helper *helper;
	int i;

	for (i = 0; i < NR_HELPERS; i++) {
		helper = &helpers[i];
		if (helper->off)
			continue;
		WRITE_ONCE(helper->active, only ? helper == only : all || (r >> i & 1));
		if (helper->activate)
			helper->activate(helper->active);
	}
	WRITE_ONCE(sh->stay, only ? 1 : 1U << (r >> 40) % 20);
}

/* What KVM counts, if it does */

static const char * const counter_names[] = {
	"stage2_blocks_split",
	"stage2_tables_collapsed",
	"stage2_races_lost",
	"stage2_entries_locked",
	"stage2_faults_parallel",
	"stage2_ages_done",
	"stage2_ages_lost",
	"stage2_ages_unmapped",
	"stage2_ages_replaced",
	"stage2_ages_late",
	"pf_taken",
	"pf_fixed",
	"pf_spurious",
};

/* By the first four it is decided when to stop. A kernel may lack any of them. */
#define NR_COUNTERS		ARRAY_SIZE(counter_names)
#define NR_WANTED_COUNTERS	4
#define NO_COUNTER		(~0UL)

/* Returns whether KVM counts any. */
static bool read_counters(u64 *values)
{
	bool any = false;
	int i;

	for (i = 0; i < NR_COUNTERS; i++) {
		values[i] = NO_COUNTER;
		any |= vm_read_counter(vm, counter_names[i], &values[i]);
	}
	return any;
}

/* Is there enough of everything? */
static bool enough(u64 *counters)
{
	int i;

	if (counters[NR_WANTED_COUNTERS - 1] != NO_COUNTER) {
		for (i = 0; i < NR_WANTED_COUNTERS; i++)
			if (counters[i] < wanted)
				return false;
		return true;
	}

	for (i = 0; i < NR_HELPERS; i++)
		if (!helpers[i].off && READ_ONCE(helpers[i].count) < wanted)
			return false;
	return true;
}

/* vCPUs */

static void fail_word(const char *who, struct failure *f)
{
	u64 words_per_page = page_size / 8;
	u64 page = f->word / words_per_page;

	TEST_FAIL("%s: %s\n"
		  "  word: 0x%lx (block %lu, page %lu, owner %lu) at place %lu\n"
		  "  value: 0x%lx (owner %lu, word 0x%lx, generation %lu)\n"
		  "  record: generation %lu%s, page state %lu, log %lu\n"
		  "  record afterwards: generation %lu%s, page state %lu, log %lu\n"
		  "  page state: %lu before, %lu after it was read",
		  who, verdicts[f->verdict],
		  f->word, page / block_pages, page,
		  f->word % (words_per_page / SLOTS_PER_PAGE),
		  f->place,
		  f->value, f->value >> 56 & 0x7f, f->value & 0xffffffff,
		  VALUE_GEN(f->value),
		  REC_GEN(f->rec), f->rec & REC_PENDING ? " (pending)" : "",
		  REC_SEQ(f->rec),
		  REC_EPOCH(f->rec),
		  REC_GEN(f->rec_after),
		  f->rec_after & REC_PENDING ? " (pending)" : "",
		  REC_SEQ(f->rec_after),
		  REC_EPOCH(f->rec_after),
		  f->seq, f->seq_after);
}

/* The place that this guest physical address is in, or NR_ALL_PLACES */
static int place_of(u64 gpa)
{
	int i;

	for (i = 0; i < NR_ALL_PLACES; i++)
		if (gpa >= place_gpa[i] && gpa < place_gpa[i] + mem_size)
			break;
	return i;
}

/*
 * There is no memslot at the moment, or one that is read-only: do what the guest
 * would have done.
 */
static void emulate(struct kvm_run *run, int id, int place, u64 nr_closed)
{
	u64 offset = run->mmio.phys_addr - place_gpa[place];
	bool readonly_write = place == READONLY_PLACE && run->mmio.is_write;
	u64 *word = mem + offset;
	u64 value, page = offset >> page_shift;

	TEST_ASSERT(run->mmio.len == 8 && !(offset & 7), "Unexpected MMIO, gpa: 0x%llx len: %u",
		    run->mmio.phys_addr, run->mmio.len);
	TEST_ASSERT(readonly_write || window_was_open(&slot_window, nr_closed),
		    "MMIO at gpa 0x%llx, although there is a memslot", run->mmio.phys_addr);

	lock(&blocks[page / block_pages].lock);
	if (run->mmio.is_write) {
		memcpy(&value, run->mmio.data, 8);
		WRITE_ONCE(*word, value);

		/* KVM did not see it, so the log need not have it. */
		WRITE_ONCE(emulated[page], READ_ONCE(sh->epoch) + 1);
	} else {
		value = READ_ONCE(*word);
		memcpy(run->mmio.data, &value, 8);
	}
	unlock(&blocks[page / block_pages].lock);
	nr_exiting_writes[id] += readonly_write;
	__atomic_add_fetch(&nr_mmio, 1, __ATOMIC_RELAXED);
}

#ifdef __x86_64__
/* Of vCPU 0, before it runs */
static struct kvm_sregs first_sregs;

/* The entries of the guest's page tables by which it reaches @gva, as the host sees them */
static void print_walk(const char *what, u64 gva)
{
	u64 entry, table = first_sregs.cr3;
	int shift;

	pr_info("%s 0x%lx, its page tables' entries:", what, gva);
	for (shift = 39; shift >= 12; shift -= 9) {
		entry = ((u64 *)addr_gpa2hva(vm, table))[gva >> shift & 0x1ff];
		pr_info(" 0x%lx", entry);
		if (!(entry & 1))
			break;
		table = entry & 0xffffffffff000UL;
		if (table >= TEST_GPA)
			break;
	}
	pr_info("\n");
}

/*
 * A triple fault: the exception could not even be delivered. KVM has put RIP and
 * the system registers back to those of a reset, but not CR2 and the others.
 */
static void print_shutdown(int id)
{
	static const char * const names[] = {
		"pf_fixed", "tlb_flush", "invlpg", "io_exits", "mmio_exits", "halt_exits",
		"irq_exits", "nmi_injections", "irq_injections", "insn_emulation",
		"insn_emulation_fail", "hypercalls",
	};
	struct kvm_sregs sregs;
	struct kvm_regs regs;
	u64 value;
	int i;

	vcpu_regs_get(vcpus[id], &regs);
	vcpu_sregs_get(vcpus[id], &sregs);
	pr_info("vCPU %d shut down: rax %llx rbx %llx rcx %llx rdx %llx rsi %llx rdi %llx rsp %llx rbp %llx r8 %llx r9 %llx r10 %llx r11 %llx r12 %llx r13 %llx r14 %llx r15 %llx cr2 %llx\n",
		id, regs.rax, regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi, regs.rsp,
		regs.rbp, regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13,
		regs.r14, regs.r15, sregs.cr2);
	print_walk("rsp", regs.rsp);
	print_walk("cr2", sregs.cr2);
	print_walk("guest_code()", (u64)guest_code);
	print_walk("IDT", first_sregs.idt.base);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (vm_read_counter(vm, names[i], &value))
			pr_info("%s %lu ", names[i], value);
	pr_info("\n");
}
#else
static void print_shutdown(int id)
{
}
#endif

static void *vcpu_worker(void *data)
{
	u64 mem_nr_closed, slot_nr_closed;
	struct kvm_run *run;
	int id = (long)data;
	bool resumed = true;
	struct failure f;
	struct ucall uc;
	char who[16];
	int ret, place;

	run = vcpus[id]->run;
	snprintf(who, sizeof(who), "vCPU %d", id);

	while (!READ_ONCE(host_quit)) {
		/* What the guest knows now is not older than this. */
		if (resumed) {
			mem_nr_closed = window_nr_closed(&mem_window);
			slot_nr_closed = window_nr_closed(&slot_window);
		}

		ret = _vcpu_run(vcpus[id]);
		resumed = !ret;
		if (ret) {
			TEST_ASSERT(errno == EFAULT, "%s: KVM_RUN failed, errno: %i (%s)",
				    who, errno, strerror(errno));
			TEST_ASSERT(window_was_open(&mem_window, mem_nr_closed) ||
				    window_was_open(&slot_window, slot_nr_closed),
				    "%s: KVM_RUN failed by EFAULT, although all memory is there",
				    who);
			__atomic_add_fetch(&nr_efault, 1, __ATOMIC_RELAXED);

			/* The guest tries again. */
			usleep(50);
			continue;
		}

		if (run->exit_reason == KVM_EXIT_MMIO) {
			place = place_of(run->mmio.phys_addr);
			if (place < NR_ALL_PLACES) {
				emulate(run, id, place, slot_nr_closed);
				continue;
			}
		}

		if (run->exit_reason == KVM_EXIT_SHUTDOWN)
			print_shutdown(id);
		TEST_ASSERT(get_ucall(vcpus[id], &uc) == UCALL_SYNC,
			    "%s: unexpected exit, exit_reason=%s", who,
			    exit_reason_str(run->exit_reason));
		TEST_ASSERT(uc.args[1] != STAGE_EXCEPTION, "%s: unexpected exception, " EXCEPTION,
			    who, uc.args[2], uc.args[3], uc.args[4]);
		if (uc.args[1] == STAGE_FAILED) {
			f = sh->failure[id];
			f.verdict = uc.args[2];
			f.word = uc.args[3];
			f.value = uc.args[4];
			f.rec = uc.args[5];
			fail_word(who, &f);
		}

		sem_post(&vcpu_stopped);
		sem_wait(&vcpu_continue[id]);
	}

	return NULL;
}

static void stop_vcpus(void)
{
	struct timespec ts;
	int ret;

	/* A vCPU whose access never gets done does not stop either. */
	WRITE_ONCE(sh->stop, 1);
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += HANG_SECONDS;
	for (; nr_running; nr_running--) {
		do {
			ret = sem_timedwait(&vcpu_stopped, &ts);
		} while (ret && errno == EINTR);
		TEST_ASSERT(!ret, "%d vCPUs do not stop within %d seconds",
			    nr_running, HANG_SECONDS);
	}
}

/* Let some vCPUs go on, with the first one at random */
static void continue_vcpus(int nr)
{
	u64 first = next_random(&random_state);

	WRITE_ONCE(sh->stop, 0);
	for (nr_running = 0; nr_running < nr; nr_running++)
		sem_post(&vcpu_continue[(first + nr_running) % nr_vcpus]);
}

/* The word's last write must have been reported, unless it was not logged. */
static void verify_log(u64 page, u64 word, u64 rec)
{
	u32 epoch = REC_EPOCH(rec);

	if (!logging || !REC_GEN(rec) || epoch < log_since)
		return;

	nr_dirty += reported[page] > epoch;
	TEST_ASSERT(reported[page] > epoch || emulated[page] > epoch,
		    "Page %lu is not in the dirty log: word 0x%lx was written to after harvest %u, the page was last reported in %u (logging since %u, now %u)",
		    page, word, epoch, reported[page], log_since, sh->epoch);
}

/* All vCPUs are stopped, but the helpers are not. */
static void verify_memory(void)
{
	u64 words_per_page = page_size / 8;
	u64 stride = words_per_page / SLOTS_PER_PAGE;
	u64 block, page, i, word, value, rec, seq;
	struct failure f = {};

	for (i = 0; i < nr_vcpus; i++)
		TEST_ASSERT(nr_exiting_writes[i] == sh->vcpu[i].exiting_writes,
			    "vCPU %lu wrote to the read-only memslot %lu times, %lu of them exited",
			    i, sh->vcpu[i].exiting_writes, nr_exiting_writes[i]);

	lock(&slot_lock);
	if (logging)
		harvest(1);

	for (block = 0; block < nr_blocks; block++) {
		lock(&blocks[block].lock);
		for (page = block * block_pages; page < (block + 1) * block_pages; page++) {
			seq = seqs[page];
			for (i = 0; i < words_per_page; i++) {
				word = page * words_per_page + i;
				value = READ_ONCE(((u64 *)mem)[word]);
				rec = recs[word];
				if (!(rec | value))
					continue;

				f.verdict = verify_word(sh, word, i % stride, value,
							rec, seq, seq);
				if (f.verdict != GOOD) {
					f.word = word;
					f.value = value;
					f.rec = rec;
					f.rec_after = rec;
					f.seq = seq;
					f.seq_after = seqs[page];
					f.place = slot_place;
					fail_word("Host, with the vCPUs stopped", &f);
				}
				verify_log(page, word, rec);
				nr_words++;
			}
		}
		unlock(&blocks[block].lock);
	}
	unlock(&slot_lock);
	nr_stops++;
}

/* Setting up */

static void map_memory(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = -1;

	stage = reserve_aligned(BLOCK_SIZE, BLOCK_SIZE);
	mem = reserve_aligned(mem_size, BLOCK_SIZE);

	if (backing == SHMEM || backing == SHMEM_THP || backing == HUGETLB_2M) {
		flags = MAP_SHARED;
		fd = memfd_create("stage2_fault_stress_test",
				  backing == HUGETLB_2M ? MFD_HUGETLB | MFD_HUGE_2MB : 0);
		if (fd < 0 || ftruncate(fd, mem_size)) {
			print_skip("%s: %s", backing_names[backing], strerror(errno));
			exit(KSFT_SKIP);
		}
		mem_fd = fd;
		mem_view = mmap(NULL, mem_size, PROT_READ, flags, mem_fd, 0);
		if (mem_view == MAP_FAILED) {
			print_skip("%s: %lu bytes not available (%s)",
				   backing_names[backing], mem_size, strerror(errno));
			exit(KSFT_SKIP);
		}
	}
	map_fixed(mem, mem_size, PROT_READ | PROT_WRITE, flags, fd, 0);
}

static void unmap_memory(void)
{
	munmap(mem, mem_size);
	if (mem_fd >= 0) {
		munmap(mem_view, mem_size);
		close(mem_fd);
		mem_fd = -1;
	}
}

static void setup_thp(void)
{
	bool wanted = backing == ANON_THP;
	u64 size;

	wanted |= backing == SHMEM_THP;
	thp = wanted && host_read_number(THP_DIR "/hpage_pmd_size", &size) && size == BLOCK_SIZE;
	if (backing == SHMEM_THP && !set_until_exit(THP_DIR "/shmem_enabled", "advise"))
		thp = false;
	if (wanted && !thp)
		pr_info("%s: no transparent huge pages of 2M here, going on with small ones\n",
			backing_names[backing]);
}

static void handle_exceptions(void)
{
#ifdef __x86_64__
	int i;

	for (i = 0; i < 32; i++)
		vm_install_exception_handler(vm, i, guest_exception);
	vcpu_sregs_get(vcpus[0], &first_sregs);
#endif
}

static void create_vm(void)
{
	u64 caps = KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE;
	u64 pages, shared_size, seqs_offset, recs_offset;
	size_t guest_page_size;
	void *shared;
	long i;

	/* The library adds what is for code, stacks, ucall() and page tables. */
	shared_size = mem_size + BLOCK_SIZE;
	pages = (NR_ALL_PLACES * mem_size + shared_size) / MIN_PAGE_SIZE;
	vm = __vm_create_with_vcpus(VM_SHAPE_DEFAULT, nr_vcpus, pages, guest_code, vcpus);
	if (log_mode != LOG_GET) {
		if (log_mode == LOG_CLEAR_ALL_SET)
			caps |= KVM_DIRTY_LOG_INITIALLY_SET;
		vm_enable_cap(vm, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, caps);
	}
	guest_page_size = vm->page_size;

	/* Of huge pages if possible: faults there are not what this is about. */
	shared = reserve_aligned(shared_size, BLOCK_SIZE);
	map_fixed(shared, shared_size, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(shared, shared_size, MADV_HUGEPAGE);
	memset(shared, 0, shared_size);
	seqs_offset = roundup(sizeof(*sh), page_size);
	recs_offset = seqs_offset + roundup(nr_pages * sizeof(*seqs), page_size);
	TEST_ASSERT(recs_offset + mem_size <= shared_size, "Too much memory");
	sh = shared;
	seqs = shared + seqs_offset;
	recs = shared + recs_offset;

	place_gpa[HOME] = TEST_GPA;
	place_gpa[NEXT_DOOR] = TEST_GPA + mem_size;
	place_gpa[MISALIGNED] = TEST_GPA + 2 * mem_size + BLOCK_SIZE / 2;
	place_gpa[READONLY_PLACE] = TEST_GPA + 4 * mem_size;
	place_gpa[CODE_PLACE] = TEST_GPA + 5 * mem_size;

	sh->seed = next_random(&random_state);
	sh->stay = 1;
	sh->nr_vcpus = nr_vcpus;
	sh->nr_pages = nr_pages;
	sh->nr_blocks = nr_blocks;
	sh->page_shift = page_shift;
	sh->first_twin_page = twins ? nr_pages - block_pages : nr_pages;
	sh->seqs_gva = SHARED_GPA + seqs_offset;
	sh->recs_gva = SHARED_GPA + recs_offset;
	/* Code cannot be executed where there is no memslot. */
	sh->code_at_home = !helpers_have(helpers, NR_HELPERS, op_slots);
	for (i = 0; i < NR_ALL_PLACES; i++) {
		sh->place_gva[i] = place_gpa[i];
		virt_map(vm, place_gpa[i], place_gpa[i], mem_size / guest_page_size);
	}
	virt_map(vm, SHARED_GPA, SHARED_GPA, shared_size / guest_page_size);
	vm_set_user_memory_region(vm, SHARED_SLOT, 0, SHARED_GPA, shared_size, shared);

	slot_place = HOME;
	logging = false;
	log_since = 0;
	memset(reported, 0, nr_pages * sizeof(*reported));
	memset(emulated, 0, nr_pages * sizeof(*emulated));
	advise(mem, twins ? sh->first_twin_page * page_size : mem_size);
	if (twins)
		advise(mem + sh->first_twin_page * page_size, block_pages * page_size);
	set_test_slot(mem_size);
	if (helpers_have(helpers, NR_HELPERS, op_readonly))
		set_readonly_slot();
	if (CAN_EXECUTE)
		set_code_slot(false);

	/*
	 * The kernel joins VMAs again after part of them was moved there and
	 * back, but not if it was moved before there was anything in them.
	 */
	for (i = 0; i < nr_blocks; i++)
		WRITE_ONCE(*(u64 *)(mem + i * BLOCK_SIZE), 0);

	for (i = 0; i < nr_vcpus; i++)
		vcpu_args_set(vcpus[i], 1, i);
	handle_exceptions();
}

static u64 accesses(void)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < nr_vcpus; i++)
		sum += READ_ONCE(sh->vcpu[i].accesses);
	return sum;
}

static void print_results(double seconds, u64 exits, bool have_counters,
			  u64 *counters)
{
	int i;

	pr_info("%.1f s, %lu accesses by vCPUs, %lu exits", seconds, accesses(), exits);
	pr_info(", %lu by EFAULT, %lu by MMIO", nr_efault, nr_mmio);
	pr_info("\nVerified with the vCPUs stopped: %lu times, %lu words", nr_stops, nr_words);
	pr_info(", %lu writes in the dirty log of %lu harvests", nr_dirty, nr_harvests);
	pr_info("\n");
	pr_info("Verified by vCPUs: ");
	pr_info("%lu words executed, ", executed());
	pr_info("%lu writes to the read-only memslot\n", exiting_writes());
	helpers_print(helpers, NR_HELPERS, "host.");
	pr_info("KVM:");
	for (i = 0; have_counters && i < NR_COUNTERS; i++)
		if (counters[i] != NO_COUNTER)
			pr_info(" %s %lu", counter_names[i], counters[i]);
	pr_info("%s\n", have_counters ? "" : " no counters");
	for (i = 0; i < NR_COUNTERS; i++)
		if (counters[i] != NO_COUNTER)
			metric_part("kvm.", counter_names[i], 0, counters[i], "count");
	metric("vms", 1, "count");
	metric("accesses", accesses(), "count");
	metric("exits", exits, "count");
	metric("stops", nr_stops, "count");
	metric("words_verified", nr_words, "count");
	metric("writes_verified_in_log", nr_dirty, "count");
	metric("harvests", nr_harvests, "count");
	metric("words_executed", executed(), "count");
	metric("writes_to_readonly", exiting_writes(), "count");
}

/* A test that fails exits: say how far it got. */
static void print_results_of_failure(void)
{
	u64 exits = 0;
	u64 counters[NR_COUNTERS];
	bool have_counters;

	if (!running)
		return;
	have_counters = read_counters(counters);
	vm_read_counter(vm, "exits", &exits);
	pr_info("It failed after:\n");
	print_results(seconds_since(started), exits, have_counters, counters);
}

/* What a process that is to be killed tells its parent */
static struct victim {
	sem_t ready;
	void *mem;
	int vm_fd;
	bool done;
} *victim;

/* In the process that is to be killed: the vCPUs and all helpers go on. */
static void wait_to_be_killed(bool done)
{
	running = false;
	victim->mem = mem;
	victim->vm_fd = vm->fd;
	victim->done = done;
	sem_post(&victim->ready);
	for (;;)
		pause();
}

/* Whether it got as much as was wanted */
static bool run_test(double limit)
{
	u64 r, exits = 0;
	bool over;
	u64 counters[NR_COUNTERS];
	bool have_counters, done;
	pthread_t threads[MAX_STRESS_VCPUS];
	struct stress_helper *only;
	long i;

	map_memory();
	create_vm();
	pr_info("Dirty log: %s\n", log_mode_names[log_mode]);

	nr_stops = 0;
	nr_words = 0;
	nr_harvests = 0;
	nr_dirty = 0;
	nr_efault = 0;
	nr_mmio = 0;
	memset(nr_exiting_writes, 0, sizeof(nr_exiting_writes));
	host_quit = false;
	sem_init(&vcpu_stopped, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &started);
	running = true;
	nr_running = nr_vcpus;
	for (i = 0; i < nr_vcpus; i++) {
		sem_init(&vcpu_continue[i], 0, 0);
		pthread_create(&threads[i], NULL, vcpu_worker, (void *)i);
	}
	helpers_start(helpers, NR_HELPERS, &random_state);

	do {
		usleep(min(verify_ms * 1000, (u64)(limit * 1e6)));
		stop_vcpus();
		verify_memory();
		over = seconds_since(started) >= limit;
		have_counters = read_counters(counters);
		done = enough(counters);
		over |= done;

		/* It goes on for a while where there was nothing to verify. */
		only = over ? unverified_helper() : NULL;
		choose_helpers(only);

		/* With fewer of them, each stays in the guest for longer. */
		r = next_random(&random_state);
		continue_vcpus(r & 1 ? nr_vcpus : 1 + (r >> 8) % nr_vcpus);
	} while (!over || (only && seconds_since(started) < limit + HANG_SECONDS));

	TEST_ASSERT(nr_words, "No word of memory was there to verify");
	if (only)
		TEST_FAIL("Helper %s: no %s was there to verify", only->name, only->verifies);

	if (victim) {
		have_counters = read_counters(counters);
		vm_read_counter(vm, "exits", &exits);
		print_results(seconds_since(started), exits, have_counters, counters);
		wait_to_be_killed(done);
	}

	/* To the end with the VM: what remains there is none of its business. */
	helpers_stop(helpers, NR_HELPERS, true);
	stop_vcpus();
	verify_memory();
	have_counters = read_counters(counters);
	vm_read_counter(vm, "exits", &exits);
	WRITE_ONCE(host_quit, true);
	continue_vcpus(nr_vcpus);
	for (i = 0; i < nr_vcpus; i++)
		pthread_join(threads[i], NULL);

	/* MMU notifiers keep on coming while the VM is destroyed. */
	running = false;
	kvm_vm_free(vm);
	helpers_stop(helpers, NR_HELPERS, false);

	print_results(seconds_since(started), exits, have_counters, counters);
	unmap_memory();
	munmap(sh, mem_size + BLOCK_SIZE);
	return done;
}

/*
 * Run a VM in a process of its own, and kill that, while its pages are being
 * aged: reclaim does so as well, until the last of them is gone. Half of the
 * times the VM stays longer than its process's memory, since a file of debugfs
 * is open that refers to it.
 */
static bool run_and_kill_test(double limit, bool keep)
{
	u64 *entries = calloc(nr_pages, sizeof(*entries));
	u64 late = NO_COUNTER, n, nr, i, aged = 0;
	int pagemap, counter = -1, status, ret;
	struct timespec killed;
	char path[128], text[32] = {};
	double gone;
	bool done;
	pid_t pid;

	victim = mmap(NULL, sizeof(*victim), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT(victim != MAP_FAILED && entries, "Memory allocation failed");
	sem_init(&victim->ready, 1, 0);

	/* The VM's seed is to be another one the next time. */
	next_random(&random_state);
	pid = fork();
	TEST_ASSERT(pid >= 0, "fork() failed, errno: %i (%s)", errno, strerror(errno));
	if (!pid) {
		/* It has none of its parent's memory. */
		page_idle_open();
		run_test(limit);
		exit(1);
	}

	/* It may fail before. */
	while (sem_trywait(&victim->ready)) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		usleep(10000);
	}

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	pagemap = open(path, O_RDONLY);
	n = pagemap_read(pagemap, victim->mem, nr_pages, entries);
	/* Not all, but all the time: what they come too late for is soon over. */
	for (i = 0, nr = 0; i < n && nr < NR_DYING_PAGES; i++)
		if (entries[i] & PAGEMAP_PRESENT)
			entries[nr++] = entries[i];
	if (keep) {
		vm_counter_path(path, sizeof(path), "stage2_ages_late", pid, victim->vm_fd);
		counter = open(path, O_RDONLY);
	}

	clock_gettime(CLOCK_MONOTONIC, &killed);
	TEST_ASSERT(!kill(pid, SIGKILL), "kill() failed, errno: %i (%s)", errno,
		    strerror(errno));
	do {
		for (i = 0; i < nr; i++)
			aged += page_idle_mark(entries[i]);
		ret = waitpid(pid, &status, WNOHANG);
		TEST_ASSERT(ret >= 0 && seconds_since(killed) < HANG_SECONDS,
			    "The VM's process does not go away within %d seconds", HANG_SECONDS);
	} while (!ret);
	TEST_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		    "The VM's process was not killed, status: 0x%x", status);

	if (counter >= 0 && read(counter, text, sizeof(text) - 1) > 0)
		late = strtoull(text, NULL, 10);
	gone = seconds_since(killed);
	pr_info("Killed: gone after %.3f s, %lu pages aged meanwhile", gone, aged);
	pr_info(late != NO_COUNTER ? ", stage2_ages_late %lu\n" : "\n", late);
	metric("exit_time", gone, "s");
	metric("aged_while_killed", aged, "pages");

	done = victim->done;
	if (counter >= 0)
		close(counter);
	close(pagemap);
	sem_destroy(&victim->ready);
	munmap(victim, sizeof(*victim));
	free(entries);
	return done;
}

static void help(char *name, int status)
{
	int i;

	puts("");
	printf("usage: %s [-h] [-v vcpus] [-b bytes] [-s backing]", name);
	printf(" [-m mode]");
	printf("\n         ");
	printf(" [-n count] [-c]");
	printf(" [-t seconds] [-i milliseconds]\n"
	       "          [-d helper,...] [-o helper,...|none] [-r seed]");
	printf(" [-k vms] [-K]");
	puts("\n");
	printf(" -v: specify the number of vCPUs (default: 4)\n");
	printf(" -b: specify the size of the memory, e.g. 8M (default)\n");
	printf(" -s: specify what backs the memory (default: %s)\n",
	       backing_names[ANON_THP]);
	for (i = 0; i < NR_BACKINGS; i++)
		printf("         %s\n", backing_names[i]);
	printf(" -m: specify how the dirty log is harvested, by KVM_GET_DIRTY_LOG,\n"
	       "     or by KVM_CLEAR_DIRTY_LOG, or so with all pages set at first\n"
	       "     (default: a VM for each, one after the other)\n");
	for (i = 0; i < NR_LOG_MODES; i++)
		printf("         %s\n", log_mode_names[i]);
	printf(" -n: for each VM, go on until there were as many blocks split,\n"
	       "     tables collapsed, races lost and entries found locked by KVM's\n"
	       "     counters, or if it has none, as many operations of each helper\n"
	       "     (default: 100)\n");
	printf(" -t: stop after so many seconds all the same (default: %lu)\n", time_limit);
	printf(" -c: then fail\n");
	printf(" -i: specify the interval at which the vCPUs are stopped, and memory\n"
	       "     and dirty log verified (default: %lu)\n", verify_ms);
	printf(" -d: do without these helpers\n");
	printf(" -o: have these helpers only, and fail without one of them; or none at\n"
	       "     all, which is a failure otherwise\n");
	helpers_list(helpers, NR_HELPERS);
	printf(" -k: so many VMs one after the other, where there is one by default\n");
	printf(" -K: kill the process of each VM at its end, while its memory is aged\n");
	printf(" -r: specify the seed for random numbers, not 0 (default: by the time)\n");
	puts("");
	exit(status);
}

int main(int argc, char *argv[])
{
	bool mode_selected = false;
	bool must_be_enough = false;
	bool done = true;
	bool any = false;
	int opt, i;
	int mode = 0, modes = 0;
	u64 manual_caps;
	u64 n;
	double limit;

	seed = time(NULL);

	while ((opt = getopt(argc, argv, "hv:b:s:m:n:t:ci:d:o:r:k:K")) != -1) {
		switch (opt) {
		case 'v':
			nr_vcpus = parse_number(optarg, 1, MAX_STRESS_VCPUS);
			break;
		case 'b':
			mem_size = parse_size(optarg);
			break;
		case 's':
			backing = parse_name(optarg, backing_names, NR_BACKINGS);
			break;
		case 'm':
			mode = parse_name(optarg, log_mode_names, NR_LOG_MODES);
			mode_selected = true;
			break;
		case 'n':
			wanted = parse_number(optarg, 1, 1UL << 40);
			break;
		case 't':
			time_limit = parse_number(optarg, 1, 1UL << 32);
			break;
		case 'c':
			must_be_enough = true;
			break;
		case 'i':
			verify_ms = parse_number(optarg, 1, 100000);
			break;
		case 'd':
			helpers_select(helpers, NR_HELPERS, optarg, false);
			break;
		case 'o':
			none_wanted = !strcmp(optarg, "none");
			if (none_wanted)
				optarg[0] = '\0';
			helpers_select(helpers, NR_HELPERS, optarg, true);
			break;
		case 'k':
			nr_vms = parse_number(optarg, 1, 100000);
			break;
		case 'K':
			kill_vms = true;
			break;
		case 'r':
			seed = parse_number(optarg, 1, -1);
			break;
		case 'h':
		default:
			help(argv[0], opt == 'h' ? 0 : 1);
			break;
		}
	}

	page_size = getpagesize();
	page_shift = __builtin_ctzl(page_size);
	block_pages = BLOCK_SIZE / page_size;
	nr_pages = mem_size / page_size;
	nr_blocks = mem_size / BLOCK_SIZE;
	TEST_ASSERT(mem_size && mem_size <= (1UL << 30) / 3 && !(mem_size % (2 * BLOCK_SIZE)),
		    "The memory must be a multiple of 4M, and not more than 340M");

	kvm_keep_vm();
	manual_caps = kvm_check_cap(KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2);

	setbuf(stdout, NULL);
	random_state = random_seeded(seed);
	pr_info("%d vCPUs, %lu MiB of %s", nr_vcpus, mem_size >> 20, backing_names[backing]);
	pr_info(", %lu of everything", wanted);
	pr_info(" within %lu s, seed %lu\n", time_limit, seed);

	blocks = calloc(nr_blocks, sizeof(*blocks));
	TEST_ASSERT(blocks, "Memory allocation failed");
	reported = calloc(nr_pages, sizeof(*reported));
	bmap = bitmap_zalloc(nr_pages);
	bmap_part = bitmap_zalloc(nr_pages);
	TEST_ASSERT(reported && bmap && bmap_part, "Memory allocation failed");
	emulated = calloc(nr_pages, sizeof(*emulated));
	TEST_ASSERT(emulated, "Memory allocation failed");
	for (i = 0; i < nr_blocks; i++)
		pthread_mutex_init(&blocks[i].lock, NULL);

	/* Helpers are set up with memory at hand, and for all VMs. */
	atexit(print_results_of_failure);
	map_memory();
	setup_thp();
	helpers_setup(helpers, NR_HELPERS);
	if (kill_vms && !page_idle_open()) {
		print_skip("No idle page tracking in this kernel");
		return KSFT_SKIP;
	}
	for (i = 0; i < NR_HELPERS; i++)
		any |= !helpers[i].off;
	TEST_ASSERT(any || none_wanted, "No helper can be had: nothing would race (see -o none)");
	twins = helpers_have(helpers, NR_HELPERS, op_ksm);
	unmap_memory();

	for (i = 0; i < NR_LOG_MODES; i++)
		modes += !mode_selected || i == mode;
	test_result_plan(modes);
	for (i = 0; i < NR_LOG_MODES; i++) {
		if (mode_selected && i != mode)
			continue;
		test_result_begin(log_mode_names[i]);
		if ((i >= LOG_CLEAR && !(manual_caps & KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE)) ||
		    (i == LOG_CLEAR_ALL_SET && !(manual_caps & KVM_DIRTY_LOG_INITIALLY_SET))) {
			test_result_skip("not supported");
			continue;
		}
		log_mode = i;
		limit = (double)time_limit / modes;
		limit /= nr_vms;
		for (n = 0, done = true; n < nr_vms; n++)
			done &= kill_vms ? run_and_kill_test(limit, n & 1) : run_test(limit);
		if (!done)
			pr_info("The time was up before there was enough of everything\n");
		if (!done && must_be_enough) {
			test_result_fail();
			continue;
		}
		test_result_pass();
	}

	return ksft_get_fail_cnt() ? KSFT_FAIL : 0;
}
