// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print what the reaper's rule does to the guests of QEMU's own unit test, and to bursts, in Markdown: the series'
 * sources are compiled as they are, `make -C qemu-migration reaper` takes them out of the patches.
 */
#include <stdio.h>
#include <string.h>

#include "qemu/osdep.h"
#include "kvm-dirty-ring-model.h"

/* "12,345": value is not negative */
static const char *grouped(double value, char *text)
{
	char digits[32], *to = text;
	int length = snprintf(digits, sizeof(digits), "%.0f", value);

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return text;
}

static void row(const RingModelGuest *guest)
{
	RingModelCounts base = ring_model_run(guest, false), paced = ring_model_run(guest, true);
	double seconds = guest->seconds;
	char a[48], b[48];

	printf("| %s | %s | %.1f | %.0f | %s | %.1f | %.2f |", guest->name, grouped(base.entries / seconds, a),
	       base.exits / seconds, seconds * 1000 / (paced.collections + paced.exits),
	       grouped(paced.entries / seconds, b), paced.exits / seconds, (double)paced.entries / base.entries);
	if (base.exits)
		printf(" %.2f |", (double)paced.exits / base.exits);
	else
		printf(" %s |", paced.exits ? "more" : "-");
	if (paced.exits < base.exits)
		printf(" %s |\n", grouped(((double)paced.entries - base.entries) / (base.exits - paced.exits), a));
	else
		printf(" - |\n");
}

/* Of guests in bursts: how many had exits on base, what they log and have then, and how many have more exits. */
struct bursts {
	int guests, more_exits;
	double entries[64], exits[64];
};

static int smaller(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A row for all bursts of one length: pauses and quiet sets differ */
static void bursts(uint32_t on_ms)
{
	struct bursts of = { 0 };

	for (uint32_t off_ms = 50; off_ms <= 1600; off_ms *= 2) {
		for (uint32_t quarters = 1; quarters <= 4; quarters++) {
			/* 1/4, 1/2, 3/4 and 15/16 of a ring */
			uint32_t quiet = quarters < 4 ? 1024 * quarters : 3840;
			RingModelGuest guest = {
				.capacity = 4096 - 64,
				.seconds = 20,
				.vcpu = { { 4 * 4096, 20 * 4096, false, on_ms, off_ms, quiet } },
			};
			RingModelCounts base = ring_model_run(&guest, false), paced = ring_model_run(&guest, true);

			if (!base.exits)
				continue;
			of.entries[of.guests] = (double)paced.entries / base.entries;
			of.exits[of.guests++] = (double)paced.exits / base.exits;
			of.more_exits += paced.exits > base.exits;
		}
	}
	qsort(of.entries, of.guests, sizeof(double), smaller);
	qsort(of.exits, of.guests, sizeof(double), smaller);
	printf("| %u | %d | %.2f | %.2f | %.2f | %.2f | %d |\n", on_ms, of.guests, of.entries[of.guests / 2],
	       of.entries[of.guests - 1], of.exits[of.guests / 2], of.exits[of.guests - 1], of.more_exits);
}

int main(void)
{
	printf("| hot set | base: entries/s | exits/s | series: ms between collections | entries/s | exits/s | "
	       "entries, series/base | exits, series/base | entries more for an exit less |\n"
	       "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (int i = 0; i < ring_model_guests_count; i++)
		row(&ring_model_guests[i]);
	printf("\n| ms of a burst | guests | entries, series/base: median | most | exits, series/base: median | most | "
	       "guests with more exits |\n|--:|--:|--:|--:|--:|--:|--:|\n");
	for (uint32_t on_ms = 50; on_ms <= 1600; on_ms *= 2)
		bursts(on_ms);
	return 0;
}
