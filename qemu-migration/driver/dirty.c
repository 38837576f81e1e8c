// SPDX-License-Identifier: GPL-2.0
/*
 * How many pages the guest dirtied from sync to sync, beside QEMU's count of them. The
 * guest writes its pages in a known order. So what it had done at two moments tells which
 * pages it has written between them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "arch.h"
#include "dirty.h"
#include "trace.h"
#include "util.h"

/* A period of QEMU's count ends with the first sync that is later than this, s. */
#define PERIOD 1.0

struct moment {
	double at;
	uint64_t iterations[MAX_VCPUS];
};

/* The end of a sync. */
struct sync {
	double at;
	long long fresh;	/* pages found since the period began */
};

static struct moment *moments;
static size_t notes, room;

void dirty_note(const struct vm *vm, const struct options *options)
{
	struct timeval now;
	uint64_t i;

	if (notes == room) {
		room = room ? 2 * room : 1024;
		moments = realloc(moments, room * sizeof(*moments));
		if (!moments)
			die("no memory");
	}
	gettimeofday(&now, NULL);
	moments[notes].at = now.tv_sec + now.tv_usec / 1e6;
	for (i = 0; i < options->vcpus; i++)
		moments[notes].iterations[i] = vm_state(vm, i)->iterations;
	notes++;
}

/* Different pages of `pages` that a vCPU writes from iteration `from` to before `until`. */
static uint64_t distinct(uint64_t pages, uint64_t from, uint64_t until)
{
	unsigned char *seen;
	unsigned int bits = 0;
	uint64_t count = 0;

	/* There is a whole pass in it. */
	if (until - from >= 2 * pages - 1)
		return pages;
	while ((1UL << bits) < pages)
		bits++;
	seen = calloc(1, pages);
	if (!seen)
		die("no memory");
	for (; from < until; from++) {
		uint64_t page = permute(from % pages, pages, bits, from / pages + 1);

		count += !seen[page];
		seen[page] = 1;
	}
	free(seen);
	return count;
}

/* The iterations of a vCPU at a time, between the notes before and after it. */
static uint64_t iterations_at(uint64_t vcpu, double at)
{
	const struct moment *m = moments;
	double part;

	while (m + 2 < moments + notes && m[1].at <= at)
		m++;
	part = (at - m[0].at) / (m[1].at - m[0].at);
	return m[0].iterations[vcpu] + part * (m[1].iterations[vcpu] - m[0].iterations[vcpu]);
}

static uint64_t written(const struct vm *vm, const struct options *options, double from, double until)
{
	uint64_t count = 0, i;

	for (i = 0; i < options->vcpus; i++) {
		uint64_t first = iterations_at(i, from), last = iterations_at(i, until);

		if (last > first)
			count += distinct(vm_state(vm, i)->pages, first, last) + OWN_PAGES;
	}
	if (SHARED_PAGES && count)
		count += SHARED_PAGES;
	return count;
}

uint64_t dirty_written(const struct vm *vm, const struct options *options)
{
	return notes < 2 ? 0 : written(vm, options, moments[0].at, moments[notes - 1].at);
}

uint64_t dirty_written_measured(const struct vm *vm, const struct options *options, double length)
{
	double at, end = 0;
	char line[512];
	FILE *file = fopen(vm->trace, "r");

	if (!file)
		return 0;
	while (!end && fgets(line, sizeof(line), file)) {
		if (!strncmp(trace_event(line, &at), "dirtyrate_calculate ", 20))
			end = at;
	}
	fclose(file);
	if (!end || notes < 2 || end - length < moments[0].at || end > moments[notes - 1].at)
		return 0;
	return written(vm, options, end - length, end);
}

/* The syncs of a trace, at most `limit`; *begin: when the first of them began. */
static size_t read_syncs(const char *path, long from, struct sync *syncs, size_t limit, double *begin)
{
	char line[512];
	size_t count = 0;
	FILE *file = fopen(path, "r");

	*begin = 0;
	if (!file)
		return 0;
	fseek(file, from, SEEK_SET);
	while (fgets(line, sizeof(line), file)) {
		double at;
		char *event = trace_event(line, &at);

		if (!*begin && !strncmp(event, "migration_bitmap_sync_start", 27))
			*begin = at;
		if (sscanf(event, "migration_bitmap_sync_end dirty_pages %lld",
			   &syncs[count].fresh) == 1) {
			syncs[count].at = at;
			if (++count == limit)
				break;
		}
	}
	fclose(file);
	return count;
}

void dirty_print(const struct vm *vm, const struct options *options, long from)
{
	static struct sync syncs[4096];
	double begin;
	size_t count = read_syncs(vm->trace, from, syncs, sizeof(syncs) / sizeof(syncs[0]), &begin);
	long long counted = 0, before = 0, true_ = 0, periods = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct sync *sync = &syncs[i];
		/* Without a new period the number goes on. */
		long long fresh = sync->fresh < before ? sync->fresh : sync->fresh - before;

		before = sync->fresh;
		if (sync->at > begin + PERIOD) {
			before = 0;
			begin = sync->at;
		}
		/* The first sync finds what was dirtied before it. */
		if (!i || notes < 2 || sync[-1].at < moments[0].at || sync->at > moments[notes - 1].at)
			continue;
		counted += fresh;
		true_ += written(vm, options, sync[-1].at, sync->at);
		periods++;
	}
	if (periods)
		printf("dirty_counted %lld\ndirty_true %lld\n", counted, true_);
}
