// SPDX-License-Identifier: GPL-2.0
/*
 * A guest that dirties memory, for live migrations: no operating system, no
 * device. Each vCPU has a part of the working set and writes every page of it
 * once in a pass, in an order that differs from pass to pass. Before it writes a
 * page it checks that the page holds what the pass before wrote: so a page that
 * came stale through a migration is found within one pass, by the guest itself,
 * also where the memory of two machines cannot be compared because the guest
 * runs.
 *
 * What it did and when it was held up is in memory that the driver reads; see
 * layout.h. Time is the virtual counter, which QEMU stops with the machine: a
 * stall does not include the downtime of a migration.
 */
#include "layout.h"

/* Of this architecture: arm64/arch.h, x86_64/arch.h. */
#include "arch.h"

void fault(struct state *state, uint64_t esr, uint64_t elr, uint64_t far);
void vcpu_main(uint64_t index);

void fault(struct state *state, uint64_t esr, uint64_t elr, uint64_t far)
{
	volatile struct state *s = state;

	s->fault_elr = elr;
	s->fault_far = far;
	s->fault_esr = esr;
	for (;;)
		halt();
}

static volatile uint64_t *page_at(uint64_t page)
{
	return (volatile uint64_t *)(GUEST_DATA + page * PAGE);
}

static void fill(uint64_t page, uint64_t words, uint64_t pass)
{
	volatile uint64_t *at = page_at(page);
	uint64_t word;

	for (word = 0; word < words; word++)
		at[word * (PAGE / 8 / words)] = page_value(page, word, pass);
}

/* Whether the page holds what `pass` wrote; *found and *wanted are a word that differs. */
static int holds(uint64_t page, uint64_t words, uint64_t pass, uint64_t *found, uint64_t *wanted)
{
	volatile uint64_t *at = page_at(page);
	uint64_t word;

	for (word = 0; word < words; word++) {
		*found = at[word * (PAGE / 8 / words)];
		*wanted = page_value(page, word, pass);
		if (*found != *wanted)
			return 0;
	}
	return 1;
}

/* Keep which page was stale, unless one was before. */
static void note_first(volatile struct state *s, uint64_t page, uint64_t wanted, uint64_t found)
{
	if (s->stale || s->static_stale)
		return;
	s->stale_page = page;
	s->stale_wanted = wanted;
	s->stale_found = found;
}

static void count_window(volatile struct window *windows, uint64_t *last, uint64_t now,
			 uint64_t ticks, uint64_t stall_us)
{
	uint64_t index = now / ticks;
	volatile struct window *window = &windows[index % WINDOWS];

	if (index != *last) {
		uint64_t skipped = index - *last > WINDOWS ? index - WINDOWS : *last;

		while (++skipped <= index) {
			windows[skipped % WINDOWS].count = 0;
			windows[skipped % WINDOWS].stall_us = 0;
		}
		*last = index;
	}
	window->count++;
	if (stall_us > window->stall_us)
		window->stall_us = stall_us;
}

void vcpu_main(uint64_t index)
{
	const volatile struct params *p = (void *)GUEST_PARAMS;
	volatile struct state *s = (void *)(GUEST_STATE + index * PAGE);
	volatile struct window *windows = (struct window *)GUEST_WINDOWS + index * WINDOWS;
	uint64_t first = p->pages * index / p->vcpus;
	uint64_t pages = p->pages * (index + 1) / p->vcpus - first;
	uint64_t freq = frequency(), window_ticks = freq * p->window_us / 1000000;
	uint64_t words = p->words, burst = 1, period = 0, in_burst = 0;
	uint64_t pass, i, now, due, last, iterations = 0, next_static = 0;
	unsigned int bits = 0;

	set_state(s);
	if (p->magic != PARAMS_MAGIC || !pages || index >= p->vcpus)
		return;
	init_timer(index);
	while ((1UL << bits) < pages)
		bits++;
	if (index == 0) {
		for (i = 1; i < p->vcpus; i++)
			start_vcpu(i);
		for (i = 0; i < p->static_pages; i++)
			fill(p->pages + i, words, STATIC_PASS);
	}
	for (i = 0; i < pages; i++)
		fill(first + i, words, 0);
	if (p->rate) {
		/* Several pages at a time, so that waits are not shorter than 2 ms. */
		burst = p->rate / p->vcpus / 500 + 1;
		period = freq * burst * p->vcpus / p->rate;
	}
	now = counter();
	due = now;
	last = now / window_ticks;
	s->freq = freq;
	s->window_ticks = window_ticks;
	s->pages = pages;
	s->now = now;
	write_barrier();
	s->magic = STATE_MAGIC;
	for (pass = 1;; pass++) {
		s->pass = pass;
		for (i = 0; i < pages; i++) {
			uint64_t page = first + permute(i, pages, bits, pass);
			uint64_t found, wanted, begin, stall;

			if (period && in_burst++ == burst) {
				in_burst = 1;
				/* What was missed is not made up for: lost work stays lost. */
				due = due + period > now ? due + period : now;
				wait_until(due);
			}
			if (!holds(page, words, pass - 1, &found, &wanted)) {
				note_first(s, page, wanted, found);
				s->stale++;
			}
			fill(page, words, pass);
			if (index == 0 && p->static_pages && iterations % 8 == 0) {
				page = p->pages + next_static++ % p->static_pages;
				if (!holds(page, words, STATIC_PASS, &found, &wanted)) {
					note_first(s, page, wanted, found);
					s->static_stale++;
				}
			}
			if (s->iterations != iterations || s->pass != pass)
				s->state_stale++;
			s->iterations = ++iterations;
			/* From when it could have begun. */
			begin = period && due > now ? due : now;
			now = counter();
			stall = now > begin ? now - begin : 0;
			count_window(windows, &last, now, window_ticks, stall * 1000000 / freq);
			s->now = now;
		}
	}
}
