// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print what the reaper's rule does to the guests of QEMU's own unit test, as a table in Markdown: the series' sources
 * are compiled as they are, `make -C qemu-migration reaper` takes them out of the patches.
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
		printf(" %.2f |\n", (double)paced.exits / base.exits);
	else
		printf(" %s |\n", paced.exits ? "more" : "-");
}

int main(void)
{
	printf("| hot set | base: entries/s | exits/s | series: ms between collections | entries/s | exits/s | "
	       "entries, series/base | exits, series/base |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
	for (int i = 0; i < ring_model_guests_count; i++)
		row(&ring_model_guests[i]);
	return 0;
}
