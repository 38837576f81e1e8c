// SPDX-License-Identifier: GPL-2.0
/*
 * WFE: a CPU waits for an event.  It goes on when another CPU writes to the line of its last
 * load-exclusive, or sends an event, and after costs.wfe at the latest; a real CPU may go on for any
 * reason at all.
 */
#include "clock.h"

void wait_for_event(int cpu, int64_t rest)
{
	struct cpu *c = &cpus[cpu];

	if (c->score->event) {
		c->score->event = 0;
		return;
	}
	me = cpu;
	lock();
	tick(cpu, rest);
	if (!c->monitor || line_version(c->monitor) == c->monitor_version) {
		c->wfe = true;
		wake_turn();
		if (wait_turn(c, &c->wfe))
			set_clock(c, earliest(c));
		c->wfe = false;
		wake_turn();
	}
	unlock();
}

static void end_wait(struct cpu *c, int64_t at)
{
	set_clock(c, at);
	c->wfe = false;
	c->blocked = false;
	wake(c);
}

/*
 * `cpu` accesses physical `address`: add what that costs to the CPU's clock, and wake the CPUs that wait
 * for a write to the line.  With the lock.
 */
void access_memory(int cpu, uint64_t address, enum access kind)
{
	struct write write = { 0 };
	int i;

	cpus[cpu].clock += line_access(cpu, address, kind, cpus[cpu].clock, &write);
	for (i = 0; write.line && i < ncpu; i++)
		if (cpus[i].wfe && cpus[i].monitor == write.line &&
		    cpus[i].monitor_version != write.version)
			end_wait(&cpus[i], write.at);
}

/* SEV.  With the lock. */
void send_event(int64_t at)
{
	int i;

	for (i = 0; i < ncpu; i++) {
		if (cpus[i].wfe)
			end_wait(&cpus[i], at);
		else if (cpus[i].score)
			cpus[i].score->event = 1;
	}
}
