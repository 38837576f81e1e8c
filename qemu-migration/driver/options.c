// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "options.h"
#include "util.h"

static const struct {
	const char *key;
	bool number;
	size_t offset;
} keys[] = {
#define WORD(name) { #name, false, offsetof(struct options, name) }
#define NUMBER(name) { #name, true, offsetof(struct options, name) }
	WORD(qemu), WORD(target), WORD(guest), WORD(folder), WORD(scenario), WORD(accel),
	WORD(machine), WORD(computed_name),
	NUMBER(ring), NUMBER(vcpus), NUMBER(memory), NUMBER(working_set), NUMBER(static_set),
	NUMBER(rate), NUMBER(words), NUMBER(window_us), NUMBER(bandwidth), NUMBER(downtime),
	NUMBER(auto_converge), NUMBER(computed), NUMBER(increment), NUMBER(initial),
	NUMBER(limit), NUMBER(warmup), NUMBER(measure), NUMBER(after), NUMBER(hold),
	NUMBER(cut), NUMBER(corrupt), NUMBER(dirty_rate), NUMBER(busy),
};

static void set(struct options *options, const char *word)
{
	const char *value = strchr(word, '=');
	size_t i;

	for (i = 0; value && i < sizeof(keys) / sizeof(keys[0]); i++) {
		void *at = (char *)options + keys[i].offset;
		char *end;

		if (strlen(keys[i].key) != (size_t)(value - word) ||
		    strncmp(word, keys[i].key, value - word))
			continue;
		if (!keys[i].number) {
			*(const char **)at = value + 1;
			return;
		}
		errno = 0;
		*(uint64_t *)at = strtoull(value + 1, &end, 10);
		if (errno || *end || !value[1] || value[1] == '-')
			die("%s: not a number", word);
		return;
	}
	die("%s: unknown option", word);
}

void options_parse(struct options *options, int count, char **words)
{
	int i;

	*options = (struct options){
		.scenario = "plain", .accel = "kvm", .machine = "", .folder = "/tmp/migration",
		.guest = "/migration/guest.elf", .computed_name = "cpu-throttle-computed",
		.vcpus = 1, .memory = 64, .working_set = 2048, .words = 4, .window_us = 50000,
		.bandwidth = 4 << 20, .downtime = 300, .limit = 120, .warmup = 10,
		.measure = 2000, .after = 1000, .hold = 2000, .cut = 1 << 20,
	};
	for (i = 0; i < count; i++)
		set(options, words[i]);
	if (!options->qemu)
		die("qemu=DIR is missing");
	if (!options->target)
		options->target = options->qemu;
	if (options->vcpus < 1 || options->vcpus > MAX_VCPUS)
		die("vcpus=%lu: 1 to %d", options->vcpus, MAX_VCPUS);
	if (options->words < 1 || options->words > MAX_WORDS ||
	    (options->words & (options->words - 1)))
		die("words=%lu: a power of two up to %d", options->words, MAX_WORDS);
	if (options->working_set * 1024 / PAGE < options->vcpus)
		die("working_set=%lu: less than a page for each vCPU", options->working_set);
	if (GUEST_DATA - GUEST_RAM + (options->working_set + options->static_set) * 1024 >
	    options->memory << 20)
		die("memory=%lu: too little for the working set and the static pages", options->memory);
}
