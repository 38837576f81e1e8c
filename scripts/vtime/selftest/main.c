/*
 * Runs the test that the words at WORDS name (counts.h), prints its times, powers off.
 *
 *   cpu test=spinlock cpu=0 late=16 ns=508000      each CPU; late: its start after the common one
 *   selftest spinlock cpus=4 iterations=1000 length=500 gap=2 el=1 frequency=62500000 ns=2034000
 *   selftest error ...                             instead of all this
 */
#include "board.h"
#include "counts.h"

#define LINE 64
#define START_NS 20000		/* from the last arrival to the start */
#define TLBI_PAGE 0x100000	/* the page at 4 GiB, where nothing is mapped */

typedef void loop(uint64_t iterations, uint64_t length, uint64_t gap, void *a, void *b,
		  uint64_t extra);

loop loop_independent, loop_spinlock, loop_spinlock_poll, loop_ticket, loop_readers, loop_tlbi,
     loop_tlbi_local, loop_atomic, loop_ring, loop_sleep, loop_ipi, loop_exception, loop_dc,
     loop_wfe, loop_store;
extern char vectors_eret[];

static const struct {
	const char *name;
	loop *run;
} tests[] = {
	[TEST_INDEPENDENT] = { "independent", loop_independent },
	[TEST_SPINLOCK] = { "spinlock", loop_spinlock },
	[TEST_SPINLOCK_POLL] = { "spinlock_poll", loop_spinlock_poll },
	[TEST_TICKET] = { "ticket", loop_ticket },
	[TEST_READERS] = { "readers", loop_readers },
	[TEST_TLBI] = { "tlbi", loop_tlbi },
	[TEST_TLBI_LOCAL] = { "tlbi_local", loop_tlbi_local },
	[TEST_ATOMIC] = { "atomic", loop_atomic },
	[TEST_ATOMIC_SHARED] = { "atomic_shared", loop_atomic },
	[TEST_RING] = { "ring", loop_ring },
	[TEST_SLEEP] = { "sleep", loop_sleep },
	[TEST_IPI] = { "ipi", loop_ipi },
	[TEST_IMBALANCE] = { "imbalance", loop_independent },
	[TEST_EXCEPTION] = { "exception", loop_exception },
	[TEST_DC] = { "dc", loop_dc },
	[TEST_WFE] = { "wfe", loop_wfe },
	[TEST_STORE] = { "store", loop_store },
	[TEST_STORE_SHARED] = { "store_shared", loop_store },
};

/* Plain loads and stores only: meeting must not move a line that a test uses. */
static struct {
	volatile uint64_t here, started, ended, done;
} cpu[MAX_CPUS] __attribute__((aligned(LINE)));
static volatile uint64_t begin;		/* ticks; 0 until all are here */

static union {
	uint32_t word;
	char line[LINE];
} shared[2] __attribute__((aligned(LINE))), own[MAX_CPUS] __attribute__((aligned(LINE)));

static uint64_t word(unsigned int k)
{
	return ((volatile uint64_t *)WORDS)[k];
}

/* Put the loop's arguments together and run it. */
static void run(uint64_t test, unsigned int index)
{
	uint64_t iterations = word(WORD_ITERATIONS), length = word(WORD_LENGTH);
	uint64_t extra = 0;
	unsigned int next = (index + 1) % word(WORD_CPUS);
	void *a = &shared[0], *b = &shared[1];

	switch (test) {
	case TEST_TLBI:
	case TEST_TLBI_LOCAL:
		extra = TLBI_PAGE + index;
		break;
	case TEST_RING:
		b = &own[next];
		extra = next == 0;
		a = &own[index];
		break;
	case TEST_ATOMIC:
	case TEST_DC:
	case TEST_WFE:
	case TEST_STORE:
		a = &own[index];
		break;
	case TEST_SLEEP:		/* rounded up: never less than asked for */
		extra = (length * ticks_per_second() + 999999999) / 1000000000;
		break;
	case TEST_IPI:
		extra = ipi_to(next);
		break;
	case TEST_IMBALANCE:
		iterations *= index ? 1 : IMBALANCE_FACTOR;
		break;
	}

	cpu[index].here = 1;
	while (!begin)
		;
	while ((cpu[index].started = ticks()) < begin)
		;
	if (test == TEST_IPI && !index)
		ipi_send(ipi_to(0));
	tests[test].run(iterations, length, word(WORD_GAP), a, b, extra);
	cpu[index].ended = ticks();
	asm volatile("dmb ish" ::: "memory");
	cpu[index].done = 1;
}

static void fail(const char *what, uint64_t n)
{
	text("selftest error ");
	text(what);
	number(n);
	text("\n");
	system_off();
}

/* Called by the vectors. */
void unexpected(uint64_t esr, uint64_t elr, uint64_t far)
{
	text("selftest error exception esr=");
	hex(esr);
	text(" elr=");
	hex(elr);
	text(" far=");
	hex(far);
	text("\n");
	system_off();
}

static void field(const char *name, uint64_t n)
{
	text(" ");
	text(name);
	text("=");
	number(n);
}

static void report(uint64_t test)
{
	extern uint64_t boot_el;
	uint64_t first = UINT64_MAX, last = 0;
	unsigned int i, cpus = word(WORD_CPUS);

	for (i = 0; i < cpus; i++) {
		if (cpu[i].started < first)
			first = cpu[i].started;
		if (cpu[i].ended > last)
			last = cpu[i].ended;
	}
	for (i = 0; i < cpus; i++) {
		text("cpu test=");
		text(tests[test].name);
		field("cpu", i);
		field("late", to_ns(cpu[i].started - begin));
		field("ns", to_ns(cpu[i].ended - first));
		text("\n");
	}
	text("selftest ");
	text(tests[test].name);
	field("cpus", cpus);
	field("iterations", word(WORD_ITERATIONS));
	field("length", word(WORD_LENGTH));
	field("gap", word(WORD_GAP));
	field("el", boot_el);
	field("frequency", ticks_per_second());
	field("ns", to_ns(last - first));
	text("\n");
}

static void boot(uint64_t test)
{
	unsigned int i, cpus = word(WORD_CPUS);

	if (!test || test >= sizeof(tests) / sizeof(*tests))
		fail("no such test: ", test);
	if (!word(WORD_CPUS) || word(WORD_CPUS) > MAX_CPUS)
		fail("bad number of CPUs: ", word(WORD_CPUS));
	if (!word(WORD_ITERATIONS))
		fail("bad number of iterations: ", 0);
	if (word(WORD_LENGTH) < 2 || word(WORD_LENGTH) % 2)
		fail("length must be even and at least 2: ", word(WORD_LENGTH));
	if (word(WORD_GAP) % 2)
		fail("gap must be even: ", word(WORD_GAP));
	own[0].word = test == TEST_RING;	/* CPU 0 has the token of round 1 */
	asm volatile("dsb ish" ::: "memory");
	for (i = 1; i < cpus; i++)
		if (cpu_on(i))
			fail("no such CPU: ", i);
}

/* From start.S, on every CPU. */
void cpu_main(unsigned int index)
{
	uint64_t test = word(WORD_TEST);
	unsigned int i, cpus = word(WORD_CPUS);

	if (!index)
		boot(test);
	interrupts_init(index);
	if (test == TEST_SLEEP)
		timer_init();
	if (test == TEST_EXCEPTION)
		asm volatile("msr vbar_el1, %0\n\tisb" :: "r"(vectors_eret));
	if (!index) {
		/* the last to arrive at `begin` is this CPU, which sets it */
		for (i = 1; i < cpus; i++)
			while (!cpu[i].here)
				;
		begin = ticks() + START_NS * (ticks_per_second() / 1000) / 1000000;
	}
	run(test, index);
	if (index)
		cpu_off();
	for (i = 1; i < cpus; i++)
		while (!cpu[i].done)
			;
	asm volatile("dmb ish" ::: "memory");
	report(test);
	system_off();
}
