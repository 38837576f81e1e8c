// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks.  Of all CPUs that run, the one with the smallest clock goes on, and the others wait
 * at their next visible instruction.  Such are the instructions by which CPUs affect each other: an
 * atomic, an exclusive, a release, a DSB after a broadcast TLBI, a read of the time, for example.  So
 * they happen in the order of virtual time, and what a lock costs follows from the order in which CPUs
 * arrive.  Between two visible instructions a CPU runs freely, for about a slice at most.
 *
 * A CPU that sleeps (WFI) is not waited for.  The thread that wakes it hands it the time.  QEMU's main
 * loop, where timers expire, is one more clock: no CPU goes beyond its next deadline before the main
 * loop has had its turn.
 *
 * QEMU stops all CPUs for some things (start_exclusive(): for a broadcast TLBI, too).  Then a CPU
 * that waits for its turn must go on to the end of its translation block, out of turn, and waits
 * again outside.  Three counters say how often that happens, whether a CPU went further than that,
 * and whether it changed the order of accesses to a line (passes, strays, inversions).
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

/* Seconds of the host in which no clock moves while a CPU waits: something is broken. */
#define STALL 60
/* Looks of the main loop, 50 ms each, after which it must hold the lock that all CPUs wait for. */
#define LOOKS_HELD 20
/* The most instructions that QEMU puts into a block (TCG_MAX_INSNS). */
#define BLOCK_INSNS 512

bool active;
_Thread_local int me = -1;
_Thread_local bool idling, main_loop;

static int running;			/* CPUs in state RUN */
static int64_t latest;			/* the largest clock there has been */
static int64_t read_last;		/* the latest time that has been read */
static uint64_t moves;			/* how often a clock has moved */

/* The main loop: its own time, what it waits for, and what ends its sleep. */
static int64_t main_clock, main_read, deadline = FOREVER;
static bool in_poll;
static void (*kick_main)(void);

/*
 * Threads that wait for something other than an interrupt, on what, and the mutex that they gave up
 * for it.  While there is one, no CPU is held back but parked ones (held_back()).  The last entry is
 * the main loop's.
 */
static struct {
	pthread_cond_t *on;
	pthread_mutex_t *held;
} waits[MAXCPU + 1];
static int waiting;
/*
 * What CPUs wait on until all may go on (end_exclusive()).  Not in waits[]: the exclusive CPU ends
 * this wait.  If it needs other CPUs to stop first, it waits itself, and that wait is in waits[].  So
 * no CPU is let through for this one, however long the host takes to schedule the exclusive CPU.
 */
static pthread_cond_t *resume;
static pthread_mutex_t *big_lock;

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
	return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

void wake(struct cpu *c)
{
	__atomic_fetch_add(&c->futex, 1, __ATOMIC_SEQ_CST);
	futex(&c->futex, FUTEX_WAKE_PRIVATE, 1, NULL);
}

/* The earliest time at which `c`, which runs, can do something on its own. */
int64_t earliest(const struct cpu *c)
{
	return c->wfe ? c->clock + costs.wfe : c->clock;
}

/* Of the CPUs that run, the one whose turn it is; NULL if all sleep. */
static struct cpu *first(void)
{
	struct cpu *found = NULL;
	int i;

	for (i = 0; i < ncpu; i++)
		if (cpus[i].state == RUN && (!found || earliest(&cpus[i]) < earliest(found)))
			found = &cpus[i];
	return found;
}

/*
 * The global virtual time: no CPU that runs will act before it, but for passes.  If all CPUs sleep, it
 * is the main loop's time.
 */
static int64_t global_time(void)
{
	struct cpu *c = first();

	return c ? earliest(c) : main_clock;
}

/*
 * Whether `c` must wait for its turn.  If another thread waits, only a parked CPU must, and not even
 * that one if the main loop waits.
 */
static bool held_back(const struct cpu *c)
{
	return !waiting || (c->parked && !waits[MAXCPU].on);
}

void wake_turn(void)
{
	struct cpu *c;
	int i;

	if (waiting) {
		for (i = 0; i < ncpu; i++)
			if (cpus[i].blocked && !held_back(&cpus[i])) {
				cpus[i].blocked = false;
				wake(&cpus[i]);
			}
		return;
	}
	c = first();
	if (!c)
		return;
	if (earliest(c) >= deadline) {
		if (in_poll)
			kick_main();
	} else if (c->blocked) {
		c->blocked = false;
		wake(c);
	}
}

void set_clock(struct cpu *c, int64_t at)
{
	if (at > c->clock) {
		c->clock = at;
		moves++;
	}
	if (c->clock > latest)
		latest = c->clock;
}

static void set_running(struct cpu *c, int64_t at)
{
	if (c->state != RUN)
		running++;
	c->state = RUN;
	set_clock(c, at);
}

/*
 * Bring the clock of `cpu` up to date.  It still has `rest` ps of its translation block before it:
 * generated code counts a block when it begins.
 */
void tick(int cpu, int64_t rest)
{
	struct cpu *c = &cpus[cpu];
	int64_t passed = (int64_t)c->score->ps - rest;

	c->score->ps = rest;
	c->clock += passed;
	if (passed)
		moves++;
	if (c->clock > latest)
		latest = c->clock;
}

/*
 * Wait, with the lock, until it is this CPU's turn, held_back() is false, or *until is false (if
 * `until` is not NULL).  True if it is the CPU's turn.
 */
bool wait_turn(struct cpu *c, const bool *until)
{
	struct timespec second = { .tv_sec = 1 };
	uint64_t seen = moves;
	int silent = 0;

	for (;;) {
		uint32_t value;
		long result;

		if (!held_back(c) || (until && !*until))
			return false;
		if (first() == c && earliest(c) < deadline)
			return true;
		value = __atomic_load_n(&c->futex, __ATOMIC_SEQ_CST);
		c->blocked = true;
		stats.blocks++;
		wake_turn();
		if (!c->blocked)
			continue;
		unlock();
		result = futex(&c->futex, FUTEX_WAIT_PRIVATE, value, &second);
		result = result < 0 ? errno : 0;
		lock();
		c->blocked = false;
		if (moves != seen || result != ETIMEDOUT) {
			seen = moves;
			silent = 0;
		} else if (++silent == STALL) {
			die("stalled: no clock has moved for %d s; CPU %d waits at %.9f s", STALL,
			    (int)(c - cpus), c->clock / 1e12);
		}
	}
}

/*
 * QEMU wants the CPU outside of its code: let it go on out of turn.  Its ps grows by a slice, so that
 * its next block calls order() again.  If it has executed more than a block since its first pass,
 * without a turn, it has strayed.
 */
static void pass(struct cpu *c)
{
	stats.passes++;
	if (!c->passing)
		c->passed_at = c->score->insns;
	else if (c->score->insns - c->passed_at > BLOCK_INSNS)
		stats.strays++;
	c->passing = true;
	c->clock -= slice;
	c->score->ps += slice;
}

/* Hold `cpu` here until everything that is earlier in virtual time has happened. */
void order(int cpu, int64_t rest)
{
	struct cpu *c = &cpus[cpu];

	me = cpu;
	lock();
	tick(cpu, rest);
	stats.turns++;
	if (c->state != RUN) {
		set_running(c, latest);
		stats.late++;
	}
	wake_turn();
	if (wait_turn(c, NULL))
		c->passing = false;
	else
		pass(c);
	unlock();
}

/* A vCPU's thread begins. */
void start_cpu(int cpu)
{
	me = cpu;
	set_running(&cpus[cpu], latest);
}

/* What time it is for the calling thread. */
static int64_t caller_time(void)
{
	if (me >= 0 && cpus[me].state == RUN)
		return cpus[me].clock + (int64_t)cpus[me].score->ps;
	return main_loop ? main_clock : latest;
}

/*
 * The time as read.  Reads come in order, but for passes; a guest's kernel must not see time run
 * backwards even then.
 */
int64_t now_ps(void)
{
	int64_t now;

	lock();
	now = caller_time();
	if (now < read_last)
		now = read_last;
	read_last = now;
	if (main_loop)
		main_read = now;
	stats.reads++;
	unlock();
	return now;
}

/* `kick` ends the main loop's sleep.  To be called before clocks_begin(). */
void clocks_kick(void (*kick)(void))
{
	kick_main = kick;
}

bool clocks_idle(pthread_cond_t *condition, pthread_mutex_t *bql)
{
	struct cpu *c;
	uint32_t value;

	if (me < 0 || !idling)
		return false;
	c = &cpus[me];
	lock();
	tick(me, 0);
	if (c->state == RUN)
		running--;
	c->state = IDLE;
	c->halt = condition;
	big_lock = bql;
	value = c->futex;
	wake_turn();
	if (!running && in_poll)
		kick_main();
	unlock();
	/*
	 * Not on the condition: a kick may come without the big lock, between QEMU's look at what
	 * there is to do and its sleep.  clocks_signal() changes the futex whenever it comes.
	 */
	pthread_mutex_unlock(bql);
	futex(&c->futex, FUTEX_WAIT_PRIVATE, value, NULL);
	lock();
	set_running(c, c->state == RUN ? c->clock : latest);
	c->halt = NULL;
	c->locking = true;
	unlock();
	pthread_mutex_lock(bql);
	lock();
	c->locking = false;
	unlock();
	return true;
}

void clocks_wait(pthread_cond_t *condition, pthread_mutex_t *held)
{
	int k = me >= 0 ? me : MAXCPU;

	lock();
	if (condition != resume) {
		waits[k].on = condition;
		waits[k].held = held;
		waiting++;
		stats.exclusive++;
		wake_turn();
	}
	unlock();
}

/*
 * The wait on `condition`, with `held`, is over.  If QEMU stops all CPUs again while this one waits
 * for its turn, it is better here than in the middle of its code: from here it need not go on.
 */
void clocks_waited(pthread_cond_t *condition, pthread_mutex_t *held)
{
	struct cpu *c = &cpus[me >= 0 ? me : 0];
	int k = me >= 0 ? me : MAXCPU;
	bool park;

	lock();
	if (waits[k].on) {
		waits[k].on = NULL;
		waiting--;
		wake_turn();
	}
	park = me >= 0 && condition == resume && c->state == RUN && first() != c;
	unlock();
	if (!park)
		return;
	pthread_mutex_unlock(held);
	lock();
	tick(me, 0);
	c->parked = true;
	c->passing = !wait_turn(c, NULL);
	c->parked = false;
	unlock();
	pthread_mutex_lock(held);
}

/* A condition is signalled: the CPU that sleeps on it gets the time of the thread that signals. */
void clocks_signal(pthread_cond_t *condition, bool all)
{
	int64_t now;
	int i;

	lock();
	now = caller_time();
	for (i = 0; i < ncpu; i++)
		if (cpus[i].state == IDLE && cpus[i].halt == condition) {
			set_running(&cpus[i], now);
			wake(&cpus[i]);
		}
	/* Over as soon as it is signalled, not when the host comes to run the waiter. */
	for (i = 0; waiting && i <= MAXCPU; i++)
		if (waits[i].on == condition) {
			waits[i].on = NULL;
			waiting--;
			if (!all)
				break;
			/* The other condition that QEMU broadcasts is waited on with the big lock (run_on_cpu()). */
			if (i < MAXCPU && big_lock && waits[i].held != big_lock)
				resume = condition;
		}
	if (!waiting)
		wake_turn();
	unlock();
}

/* The main loop is about to sleep for `ps`, FOREVER if only an event can end it. */
void clocks_poll(int64_t ps)
{
	lock();
	if (global_time() > main_clock)
		main_clock = global_time();
	if (main_clock < read_last)
		main_clock = read_last;
	/* It counts from when the main loop looked at the clock, not from when it came here. */
	deadline = ps == FOREVER ? FOREVER : main_read + ps;
	if (deadline < main_clock)
		deadline = main_clock;
	stats.polls++;
	in_poll = true;
	wake_turn();
	unlock();
}

/* Every CPU that is awake waits for the big lock. */
static bool all_locking(void)
{
	int i;

	for (i = 0; i < ncpu; i++)
		if (cpus[i].state == RUN && !cpus[i].locking)
			return false;
	return running;
}

/*
 * Whether the deadline has come.  Where all CPUs sleep there is nothing before it: time jumps, if
 * the caller is `sure` that no event of the host's is there first.
 */
bool clocks_due(bool *sure)
{
	static uint64_t seen;
	static int held, still;
	bool asleep, due = false;

	lock();
	asleep = !running && ncpu;
	/* When QEMU ends, the main loop polls with the big lock held, and no clock goes on. */
	held = all_locking() ? held + 1 : 0;
	still = moves == seen ? still + 1 : 0;
	seen = moves;
	if (deadline != FOREVER) {
		due = !asleep && global_time() >= deadline;
		/* Or the main loop does not even want to wait, and a CPU wants the lock in mid-code. */
		if (!asleep && !due &&
		    (held > LOOKS_HELD || (still > LOOKS_HELD && deadline <= main_clock))) {
			stats.forced++;
			due = true;
		}
		if (asleep && *sure) {
			stats.jumps++;
			due = true;
		}
	}
	*sure = asleep && deadline != FOREVER;
	unlock();
	return due;
}

void clocks_polled(bool due)
{
	lock();
	in_poll = false;
	if (due)
		main_clock = deadline;
	else if (running && global_time() > main_clock)
		main_clock = global_time();
	if (main_clock > latest)
		latest = main_clock;
	/* The deadline stands until the main loop says what comes next. */
	wake_turn();
	unlock();
}

void clocks_begin(void)
{
	__atomic_store_n(&active, true, __ATOMIC_SEQ_CST);
}

/* QEMU ends: no CPU is held back any more, but parked ones. */
void clocks_end(void)
{
	lock();
	active = false;
	waiting++;
	wake_turn();
	unlock();
}
