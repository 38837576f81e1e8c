// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of a stress test: threads of the host that do things to a VM's memory
 */

#include <linux/compiler.h>

#include "metric.h"
#include "stress_helper.h"
#include "test_util.h"

void helper_pause(struct stress_helper *helper, u64 mean_us)
{
	usleep(helper_random(helper) % (2 * mean_us + 1));
}

void helpers_select(struct stress_helper *helpers, int nr, char *list, bool others)
{
	bool *listed = calloc(nr, sizeof(*listed));
	char *name;
	int i;

	TEST_ASSERT(listed, "Memory allocation failed");
	for (name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		for (i = 0; i < nr; i++)
			if (!strcmp(name, helpers[i].name))
				break;
		if (i == nr) {
			fprintf(stderr, "Unknown helper '%s', see -h\n", name);
			exit(1);
		}
		listed[i] = true;
	}
	for (i = 0; i < nr; i++) {
		helpers[i].asked_for = listed[i] && others;
		if (listed[i] != others)
			helpers[i].off = "not wanted";
	}
	free(listed);
}

void helpers_setup(struct stress_helper *helpers, int nr)
{
	struct stress_helper *helper;

	for (helper = helpers; helper < helpers + nr; helper++) {
		if (!helper->off && helper->setup)
			helper->off = helper->setup();
		if (!helper->off)
			continue;
		pr_info("Helper %s is off: %s\n", helper->name, helper->off);
		TEST_ASSERT(!helper->asked_for, "Helper %s was asked for, and is off: %s",
			    helper->name, helper->off);
	}
}

bool helpers_have(struct stress_helper *helpers, int nr,
		  void (*op)(struct stress_helper *helper))
{
	int i;

	for (i = 0; i < nr; i++)
		if (helpers[i].op == op && !helpers[i].off)
			return true;
	return false;
}

static void *helper_worker(void *data)
{
	struct stress_helper *helper = data;

	while (!READ_ONCE(helper->quit)) {
		if (READ_ONCE(helper->active))
			helper->op(helper);
		helper_pause(helper, helper->pause_us);
	}
	return NULL;
}

void helpers_start(struct stress_helper *helpers, int nr, u64 *random_state)
{
	struct stress_helper *helper;

	for (helper = helpers; helper < helpers + nr; helper++) {
		if (helper->off)
			continue;
		helper->state = next_random(random_state) | 1;
		helper->count = 0;
		helper->last = 0;
		helper->quit = false;
		helper->active = true;
		if (helper->activate)
			helper->activate(true);
		pthread_create(&helper->thread, NULL, helper_worker, helper);
	}
}

void helpers_stop(struct stress_helper *helpers, int nr, bool uses_vm)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!helpers[i].off && helpers[i].uses_vm == uses_vm)
			WRITE_ONCE(helpers[i].quit, true);
	for (i = 0; i < nr; i++)
		if (!helpers[i].off && helpers[i].uses_vm == uses_vm)
			pthread_join(helpers[i].thread, NULL);
}

void helpers_list(struct stress_helper *helpers, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		printf("         %-9s %s\n", helpers[i].name, helpers[i].what);
}

void helpers_print(struct stress_helper *helpers, int nr, const char *prefix)
{
	int i;

	pr_info("Host:");
	for (i = 0; i < nr; i++)
		if (!helpers[i].off)
			pr_info(" %s %lu", helpers[i].name, helpers[i].count);
	pr_info("\n");
	for (i = 0; i < nr; i++)
		if (!helpers[i].off)
			metric_part(prefix, helpers[i].name, 0, helpers[i].count, "count");
}
