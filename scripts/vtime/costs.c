// SPDX-License-Identifier: GPL-2.0
/* The parameters of the model (values and sources: model.yaml), and the interconnect. */
#include <string.h>

#include "vtime.h"

struct costs costs = { .insn = 1000, .wfe = 1000000 };
int64_t slice = 500000;

static const struct {
	const char *name;
	int64_t *value;
} parameters[] = {
	{ "insn", &costs.insn }, { "exception", &costs.exception }, { "atomic", &costs.atomic },
	{ "line", &costs.line }, { "tlbi", &costs.tlbi }, { "dvm_sync", &costs.dvm_sync },
	{ "dvm_busy", &costs.dvm_busy }, { "dsb", &costs.dsb }, { "dc", &costs.dc },
	{ "pause", &costs.pause }, { "wfe", &costs.wfe }, { "slice", &slice },
};

/* Set a parameter, in ps; false if there is none of that name. */
bool costs_option(const char *name, int64_t value)
{
	size_t i;

	for (i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		if (!strcmp(name, parameters[i].name)) {
			*parameters[i].value = value;
			return true;
		}
	return false;
}

/*
 * A DSB after broadcast TLBIs: all CPUs must have answered.  The interconnect carries one such
 * synchronisation at a time for dvm_busy; the CPU has its answer after dvm_sync.  Returns when.
 * With the lock.
 */
int64_t dvm_sync(int64_t now)
{
	static struct calendar interconnect;

	return calendar_reserve(&interconnect, now, costs.dvm_busy) + costs.dvm_sync;
}
