// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print what the reaper's rule does to the guests of QEMU's own unit test, and to bursts, in Markdown: the series'
 * sources are compiled as they are, `make -C qemu-migration reaper` takes them out of the patches.  With an argument:
 * only the row of the last table for a reaper that is late by so many ms.
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
	RingModelCounts base = ring_model_run(guest, false, NULL);
	RingModelCounts paced = ring_model_run(guest, true, &ring_model_late);
	double seconds = guest->seconds;
	char a[48], b[48];

	printf("| %s | %s | %.1f | %.0f | %.0f | %s | %.1f | %.2f |", guest->name, grouped(base.entries / seconds, a),
	       base.exits / seconds, paced.looks / seconds, seconds * 1000 / (paced.collections + paced.exits),
	       grouped(paced.entries / seconds, b), paced.exits / seconds, (double)paced.entries / base.entries);
	if (base.exits)
		printf(" %.2f |\n", (double)paced.exits / base.exits);
	else
		printf(" %s |\n", paced.exits ? "more" : "-");
}

/* What the series has of base's entries and exits, of the guests of one row that have exits on base */
struct guests {
	int guests, more_exits, many, missed, harmed;
	double entries[256], exits[256];
};

static void add(struct guests *of, const RingModelGuest *guest, RingModelCounts base, const RingModelLate *late)
{
	RingModelCounts paced = ring_model_run(guest, true, late);
	bool many = base.exits >= 5 * guest->seconds;

	of->harmed += !ring_model_no_harm(guest, base, paced);
	if (!base.exits)
		return;
	of->entries[of->guests] = (double)paced.entries / base.entries;
	of->exits[of->guests++] = (double)paced.exits / base.exits;
	of->more_exits += paced.exits > base.exits;
	of->many += many;
	of->missed += many && paced.exits * 5 > base.exits;
}

static int smaller(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort(struct guests *of)
{
	qsort(of->entries, of->guests, sizeof(double), smaller);
	qsort(of->exits, of->guests, sizeof(double), smaller);
}

/* A row for all bursts of one length: pauses and quiet sets differ.  Returns the first burst of the next row. */
static int bursts(int first)
{
	struct guests of = { 0 };
	uint32_t on_ms = ring_model_burst(first).vcpu[0].on_ms;
	int i;

	for (i = first; i < ring_model_bursts_count; i++) {
		RingModelGuest guest = ring_model_burst(i);

		if (guest.vcpu[0].on_ms != on_ms)
			break;
		add(&of, &guest, ring_model_run(&guest, false, NULL), &ring_model_late);
	}
	sort(&of);
	printf("| %u | %d | %.2f | %.2f | %.2f | %.2f | %d | %d | %d |\n", on_ms, of.guests,
	       of.entries[of.guests / 2], of.entries[of.guests - 1], of.exits[of.guests / 2], of.exits[of.guests - 1],
	       of.more_exits, of.many, of.missed);
	return i;
}

/* A row for all guests of both tables, with a reaper that is late */
static void lateness(const char *text, const RingModelLate *late)
{
	static RingModelCounts base[256]; /* does not depend on the reaper */
	struct guests of = { 0 };
	int over = 0, all = ring_model_guests_count + ring_model_bursts_count;

	for (int i = 0; i < all; i++) {
		RingModelGuest guest = i < ring_model_guests_count ? ring_model_guests[i] :
				       ring_model_burst(i - ring_model_guests_count);

		if (!base[i].writes)
			base[i] = ring_model_run(&guest, false, NULL);
		add(&of, &guest, base[i], late);
	}
	sort(&of);
	for (int i = 0; i < of.guests; i++)
		over += of.entries[i] > 1.3;
	printf("| %s | %d | %d | %d | %d | %.2f | %d |\n", text, of.many, of.missed, of.guests, over,
	       of.entries[of.guests - 1], of.harmed);
}

static uint64_t ms(const char *text)
{
	return atof(text) * 1000000;
}

int main(int argc, char **argv)
{
	static const char *const late[] = {
		"0.25", "0.5", "0.9", "1", "1.25", "1.3", "1.5", "2", "3", "6", "10",
	};
	RingModelLate more = { 0 };

	if (argc > 1) {
		more.wakes = ms(argv[1]);
		lateness(argv[1], &more);
		return 0;
	}
	printf("| hot set | base: entries/s | exits/s | series: looks/s | ms between collections | entries/s | exits/s | "
	       "entries, series/base | exits, series/base |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (int i = 0; i < ring_model_guests_count; i++)
		row(&ring_model_guests[i]);
	printf("\n| ms of a burst | guests | entries, series/base: median | most | exits, series/base: median | most | "
	       "guests with more exits | guests with 5 exits/s on base | of these with more than a fifth |\n"
	       "|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (int i = 0; i < ring_model_bursts_count;)
		i = bursts(i);
	printf("\n| ms late | guests with 5 exits/s on base | of these with more than a fifth | guests with exits on base "
	       "| of these with more than 1.3 times the entries | most entries, series/base | guests with harm |\n"
	       "|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
		more.wakes = ms(late[i]);
		lateness(late[i], &more);
	}
	more = (RingModelLate) { .wakes = ms("0.5"), .seldom = ms("5") };
	lateness("0.5, one time in 20: 5", &more);
	more = (RingModelLate) { .wakes = ms("0.1"), .bql = ms("0.9") };
	lateness("0.1, and 0.9 for the BQL", &more);
	more = (RingModelLate) { .wakes = ms("0.1"), .bql = ms("3") };
	lateness("0.1, and 3 for the BQL", &more);
	more = (RingModelLate) { .wakes = ms("1.5"), .max = UINT64_MAX };
	lateness("1.5, and nothing is too late", &more);
	return 0;
}
