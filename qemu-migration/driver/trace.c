// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "util.h"

#define EVENTS 64

char *trace_event(char *line, double *at)
{
	int length = 0;

	*at = 0;
	return sscanf(line, "%*d@%lf:%n", at, &length) == 1 && length ? line + length : line;
}

void trace_print(const char *path, long from)
{
	struct { char name[64]; long count; } events[EVENTS] = { { "", 0 } };
	int used = 0, last = 0, i, steps = 0;
	char line[512], values[4096] = "";
	long reaped = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		return;
	fseek(file, from, SEEK_SET);
	while (fgets(line, sizeof(line), file)) {
		double at;
		const char *event = trace_event(line, &at);
		size_t length = strcspn(event, " \n");
		const char *digits;

		if (!length || length >= sizeof(events[0].name))
			continue;
		for (i = 0; i < used; i++)
			if (strlen(events[i].name) == length && !strncmp(events[i].name, event, length))
				break;
		if (i == EVENTS)
			continue;
		if (i == used)
			memcpy(events[used++].name, event, length);
		events[i].count++;
		digits = strpbrk(event + length, "0123456789");
		if (!strcmp(events[i].name, "kvm_dirty_ring_reap") && digits)
			reaped += atol(digits);
		if (!strcmp(events[i].name, "cpu_throttle_set") && digits && atoi(digits) != last) {
			last = atoi(digits);
			steps++;
			if (strlen(values) < sizeof(values) - 16)
				sprintf(values + strlen(values), "%s%d", *values ? "," : "", last);
		}
	}
	fclose(file);
	for (i = 0; i < used; i++)
		printf("trace %s %ld\n", events[i].name, events[i].count);
	printf("reaped_pages %ld\nthrottle_steps %d\nthrottle_last %d\n", reaped, steps, last);
	if (*values)
		printf("throttle_values %s\n", values);
}
