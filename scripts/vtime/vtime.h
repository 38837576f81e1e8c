/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vtime: an emulated machine in which every CPU owns a clock (see README.md).
 *
 * This is a conservative parallel discrete-event simulation.  Of that field's words: global virtual time
 * is clock.c's global_time(), the quantum is the slice, a causality error is an inversion.
 *
 * One shared object used twice in one QEMU: as TCG plugin (plugin.c), and preloaded, for the libc
 * calls through which QEMU sees time, sleeps and wakes (libc.c).  Each file calls only files below it:
 *
 *	plugin.c	the plugin: what generated code calls
 *	phases.c	counters, by phase of the test that runs in the guest
 *	libc.c		the libc calls of QEMU
 *	wfe.c		CPUs that wait for a write to a line, or an event
 *	clock.c		which CPU may run: always the one with the smallest clock
 *	lines.c		cache lines: which CPUs hold them, when they are free
 *	costs.c		the parameters of the model, and the interconnect that TLBI uses
 *	calendar.c	what does one thing at a time
 *	arm64.c x86_64.c	what an instruction is to the model
 *	tables.c	the code that writes page tables
 *	machine.c	the CPUs, the counters, the lock
 *
 * All times are picoseconds of virtual time in 64 bits; 2^63 ps are 106 days.
 */
#ifndef VTIME_H
#define VTIME_H

#include <pthread.h>
#include "qemu_api.h"

#define MAXCPU 128
#define FOREVER INT64_MAX

/* What generated code counts for its CPU without a call. */
struct score {
	uint64_t ps;		/* time since the clock was last looked at */
	uint64_t insns;
	uint64_t pending;	/* a broadcast TLBI since the last DSB */
	uint64_t event;		/* the event register, which SEVL sets and WFE clears */
	uint64_t exceptions, tlbi_local, tlbi_broadcast, dsb, dc;
};

enum state { OFF, IDLE, RUN };

/*
 * The lock protects all but score, which the CPU's own code changes; send_event() alone sets another
 * CPU's event.
 */
struct cpu {
	enum state state;
	bool blocked;		/* waits for its turn */
	bool wfe;		/* waits for an event, at most costs.wfe */
	bool parked;		/* waits for its turn, outside of the code that it runs */
	bool passing;		/* goes on out of turn */
	uint64_t passed_at;	/* instructions that it had executed when it began to */
	bool locking;		/* is awake, and waits for QEMU's big lock */
	int64_t clock;
	struct score *score;
	pthread_cond_t *halt;	/* what it sleeps on while it is IDLE */
	uint32_t futex;
	uint64_t monitor;	/* line of its last load-exclusive */
	uint64_t monitor_version;
	/* Counters that need no generated code. */
	uint64_t atomics, foreign;
};

/* The model; every parameter in ps but where the name says otherwise. */
struct costs {
	int64_t insn, exception, atomic, line, tlbi, dvm_sync, dvm_busy, dsb, dc, pause, wfe;
};

struct stats {
	uint64_t turns, blocks, passes, exclusive, jumps, late, inversions, accesses;
	uint64_t strays;	/* passes of CPUs that have gone on for too long */
	uint64_t polls, reads;	/* of the main loop; of the time */
	uint64_t forced;	/* deadlines that came because no clock went on */
	int64_t inverted;	/* sum of what accesses came too late by */
};

extern struct cpu cpus[MAXCPU];
extern struct costs costs;
extern struct stats stats;
extern int ncpu;
extern int64_t slice;
extern bool active;		/* from plugin_install to exit */
extern _Thread_local int me;	/* index of the vCPU that this thread runs, or -1 */
extern _Thread_local bool idling;

/* machine.c */
void lock(void);
void unlock(void);
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* clock.c */
void tick(int cpu, int64_t rest);
void order(int cpu, int64_t rest);
void start_cpu(int cpu);
int64_t now_ps(void);
void clocks_begin(void);
void clocks_end(void);

/* calendar.c */
#define CALENDAR_SLOTS 24
struct calendar {
	int used;
	struct {
		int64_t from, to;
	} busy[CALENDAR_SLOTS];		/* ascending, with time between them */
};
int64_t calendar_reserve(struct calendar *calendar, int64_t now, int64_t length);

/* lines.c; called with the lock held */
enum access { SHARED, EXCLUSIVE, POSTED, STORED };
struct write {
	uint64_t line, version;	/* line: 0 if nothing was written */
	int64_t at;
};
int64_t line_access(int cpu, uint64_t address, enum access kind, int64_t now, struct write *write);
uint64_t line_version(uint64_t line);

/* wfe.c */
void wait_for_event(int cpu, int64_t rest);
void access_memory(int cpu, uint64_t address, enum access kind);
void send_event(int64_t at);

/* costs.c */
bool costs_option(const char *name, int64_t value);
int64_t dvm_sync(int64_t now);

/* arm64.c, x86_64.c */
enum kind {
	PLAIN, EXCEPTION, LOAD_EXCLUSIVE, ATOMIC, RELEASE,
	STORE,		/* a plain one of 8 bytes, not to the stack */
	TLBI_LOCAL, TLBI_BROADCAST,
	DSB,		/* one that waits for broadcast TLBIs */
	DSB_OTHER, DC, WFE, SEVL, SEV, CLOCK, PAUSE, ENTER_GUEST
};
enum kind arm64_kind(const uint8_t *code, size_t size);
enum kind x86_64_kind(const uint8_t *code, size_t size);

/* tables.c */
bool tables_open(const char *marks);
bool tables_code(uint64_t address);

/* phases.c */
bool phases_open(const char *file, const char *marks, const char *target);
void phases_cpu(int cpu);
void phases_translate(struct qemu_plugin_insn *insn, enum kind kind, uint64_t rest);
void phases_close(void);

#endif
