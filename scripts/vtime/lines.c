// SPDX-License-Identifier: GPL-2.0
/*
 * Cache lines, as far as atomics, exclusives, releases and stores to page tables see them: which CPUs hold
 * each, and until when it is busy.  A line that moves does one move at a time, so CPUs that want the
 * same line queue.  Caches are of unlimited size, other plain accesses do not count, and the distance
 * between two CPUs is always the same.  All of it runs with the lock held.
 */
#include <stdlib.h>

#include "vtime.h"

#define LINE_SHIFT 6

struct line {
	uint64_t number;		/* address / 64, plus 1; 0 is a free slot */
	uint64_t holders[MAXCPU / 64];
	uint64_t version;		/* writes so far */
	struct calendar *moves;		/* when it is on its way; NULL if it has never moved */
	int64_t last;			/* when it was last asked for, by `asker` */
	int asker, owner;		/* owner: the CPU that wrote last, or came first; or -1 */
};

static struct line *table;
static size_t slots, used;

static struct line *slot(uint64_t number)
{
	size_t at = (number * 0x9e3779b97f4a7c15ull) >> 20;

	while (table[at & (slots - 1)].number && table[at & (slots - 1)].number != number)
		at++;
	return &table[at & (slots - 1)];
}

static void grow(void)
{
	struct line *old = table;
	size_t before = slots, i;

	slots = before ? before * 2 : 1 << 16;
	table = calloc(slots, sizeof(*table));
	if (!table)
		die("no memory for %zu cache lines", slots);
	for (i = 0; i < before; i++)
		if (old[i].number)
			*slot(old[i].number) = old[i];
	free(old);
}

static struct line *find(uint64_t number)
{
	struct line *line;

	if (used * 2 >= slots)
		grow();
	line = slot(number);
	if (!line->number) {
		used++;
		line->number = number;
		line->owner = -1;
		line->asker = -1;
	}
	return line;
}

static bool holds(const struct line *line, int cpu)
{
	return line->holders[cpu / 64] >> (cpu % 64) & 1;
}

static bool alone(const struct line *line, int cpu)
{
	size_t i;

	for (i = 0; i < MAXCPU / 64; i++)
		if (line->holders[i] != ((size_t)cpu / 64 == i ? 1ull << (cpu % 64) : 0))
			return false;
	return true;
}

static void hold(struct line *line, int cpu, bool only)
{
	size_t i;

	for (i = 0; only && i < MAXCPU / 64; i++)
		line->holders[i] = 0;
	line->holders[cpu / 64] |= 1ull << (cpu % 64);
}

/* Count an access that comes after a later one of another CPU: the order was lost (see pass()). */
static void check_order(struct line *line, int cpu, int64_t now)
{
	stats.accesses++;
	if (line->asker != cpu && line->last > now) {
		stats.inversions++;
		stats.inverted += line->last - now;
	}
	if (now >= line->last) {
		line->last = now;
		line->asker = cpu;
	}
}

/*
 * `cpu` accesses physical `address` at `now`: returns what it takes beyond the instruction, in ps.
 * SHARED is a load-exclusive, EXCLUSIVE a read-modify-write or store-exclusive, POSTED a store that
 * the CPU does not wait for.  STORED is a store to a page table: the CPU has read the entry before, and
 * has waited for the line then; on a line that it has, it takes no time.  *write is set if the
 * access writes, and else left alone: its `line` must be 0 before.
 */
int64_t line_access(int cpu, uint64_t address, enum access kind, int64_t now, struct write *write)
{
	uint64_t number = (address >> LINE_SHIFT) + 1;
	struct line *line = find(number);
	bool fresh = line->owner < 0;
	int64_t cost = kind == STORED ? 0 : costs.atomic;
	int64_t end = now;

	check_order(line, cpu, now);
	if (!fresh && !(kind == SHARED ? holds(line, cpu) : alone(line, cpu))) {
		if (!line->moves)
			line->moves = calloc(1, sizeof(*line->moves));
		if (!line->moves)
			die("no memory for a cache line");
		end = calendar_reserve(line->moves, now, costs.line) + costs.line;
		cost = end - now;
		cpus[cpu].foreign += kind == EXCLUSIVE;
	}
	if (fresh || kind != SHARED)
		line->owner = cpu;
	hold(line, cpu, kind != SHARED);
	if (kind == SHARED) {
		cpus[cpu].monitor = number;
		cpus[cpu].monitor_version = line->version;
		return end - now;
	}
	cpus[cpu].atomics += kind == EXCLUSIVE;
	line->version++;
	*write = (struct write){ number, line->version, end };
	return kind == POSTED ? 0 : cost;
}

uint64_t line_version(uint64_t number)
{
	return find(number)->version;
}
