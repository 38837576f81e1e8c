// SPDX-License-Identifier: GPL-2.0
/* What the guest counted, read from its memory. */
#include <stdio.h>

#include "util.h"
#include "work.h"

/* Die if a vCPU took an exception. */
static void check(const struct vm *vm, const struct options *options)
{
	uint64_t i;

	for (i = 0; i < options->vcpus; i++) {
		const volatile struct state *s = vm_state(vm, i);

		if (s->fault_esr)
			die("%s: vCPU %lu took an exception: esr %#lx elr %#lx far %#lx", vm->name, i,
			    s->fault_esr, s->fault_elr, s->fault_far);
	}
}

void work_wait(struct vm *vm, const struct options *options)
{
	double end = seconds() + 60;
	uint64_t i;

	for (i = 0; i < options->vcpus; i++) {
		while (vm_state(vm, i)->magic != STATE_MAGIC) {
			check(vm, options);
			if (seconds() > end)
				die("%s: vCPU %lu of the guest does not start", vm->name, i);
			nap(0.02);
		}
	}
}

struct work work_now(const struct vm *vm, const struct options *options)
{
	struct work work = { 0 };
	uint64_t i;

	for (i = 0; i < options->vcpus; i++) {
		const volatile struct state *s = vm_state(vm, i);
		double now = s->freq ? (double)s->now / s->freq : 0;

		work.iterations += s->iterations;
		if (now > work.now)
			work.now = now;
	}
	return work;
}

double work_speed(struct vm *vm, const struct options *options, bool *steady)
{
	double end = seconds() + options->warmup, last = 0, rate = 0;

	*steady = false;
	do {
		struct work before = work_now(vm, options), after;

		last = rate;
		nap(options->measure / 1000.0);
		after = work_now(vm, options);
		rate = (after.iterations - before.iterations) / (after.now - before.now);
		if (last > 0 && rate > last * 0.9 && rate < last * 1.1) {
			*steady = true;
			return (rate + last) / 2;
		}
	} while (seconds() < end);
	check(vm, options);
	if (!(rate > 0))
		die("%s: the guest does not work", vm->name);
	return rate;
}

/* Whether window `number` is still in the ring of a vCPU, the current one left out. */
static bool kept(const volatile struct state *s, uint64_t number)
{
	uint64_t last = s->now / s->window_ticks;

	return number < last && number + WINDOWS > last;
}

struct pace work_pace(const struct vm *vm, const struct options *options, double from, double until,
		      double speed)
{
	const volatile struct state *first = vm_state(vm, 0);
	double length = (double)first->window_ticks / first->freq;
	uint64_t number = from / length + 1, end = until / length, i, slow = 0;
	struct pace pace = { 0 };

	for (; number < end; number++) {
		uint64_t count = 0;

		for (i = 0; i < options->vcpus; i++) {
			const volatile struct window *w = &vm_windows(vm, i)[number % WINDOWS];

			/* A vCPU that is behind has done nothing in this window. */
			if (!kept(vm_state(vm, i), number))
				continue;
			count += w->count;
			if (w->stall_us / 1e6 > pace.stall)
				pace.stall = w->stall_us / 1e6;
		}
		if (count < speed * length / 2)
			slow++;
		pace.windows++;
	}
	if (pace.windows) {
		pace.slow_share = (double)slow / pace.windows;
		pace.slow_seconds = slow * length;
	}
	return pace;
}

bool work_goes_on(struct vm *vm, const struct options *options, double limit)
{
	uint64_t wanted[MAX_VCPUS], i;
	double end = seconds() + limit;

	/* From the middle of this pass to the same place of the next: all pages, once. */
	for (i = 0; i < options->vcpus; i++)
		wanted[i] = vm_state(vm, i)->iterations + vm_state(vm, i)->pages;
	for (i = 0; i < options->vcpus; i++) {
		while (vm_state(vm, i)->iterations < wanted[i]) {
			check(vm, options);
			if (seconds() > end)
				return false;
			nap(0.02);
		}
	}
	return true;
}

void work_print_stale(const struct vm *vm, const struct options *options, const char *name)
{
	bool said = false;
	uint64_t stale = 0, i;

	for (i = 0; i < options->vcpus; i++) {
		const volatile struct state *s = vm_state(vm, i);

		stale += s->stale + s->static_stale + s->state_stale;
		if (!said && s->stale + s->static_stale) {
			said = true;
			printf("%s_at %#lx %#lx %#lx\n", name, GUEST_DATA + s->stale_page * PAGE,
			       s->stale_wanted, s->stale_found);
		}
	}
	printf("%s %lu\n", name, stale);
}
