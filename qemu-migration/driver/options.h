/* SPDX-License-Identifier: GPL-2.0 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* What to run: key=value words of the command line. */
struct options {
	/*
	 * Directory of the program on both sides: qemu-system-*, its libraries in
	 * lib/ unless it uses the machine's, the trace events to count in `events`.
	 */
	const char *qemu;
	const char *target;	/* of the destination's, if it is another */
	const char *guest;	/* guest.elf; of x86-64 reset.bin is beside it */
	const char *folder;	/* for sockets, logs and RAM files; made */
	const char *scenario;
	const char *accel;	/* kvm */
	const char *machine;	/* more properties of -M */
	uint64_t ring;		/* entries of the dirty ring, 0: bitmap */
	uint64_t vcpus;
	uint64_t memory;	/* MiB */
	uint64_t working_set;	/* KiB */
	uint64_t static_set;	/* KiB */
	uint64_t rate;		/* pages/s, 0: as fast as it can */
	uint64_t words;
	uint64_t window_us;
	uint64_t bandwidth;	/* bytes/s */
	uint64_t downtime;	/* ms */
	uint64_t auto_converge;
	uint64_t computed;	/* turn the computed throttle on */
	const char *computed_name;	/* of the migration parameter */
	uint64_t increment;	/* cpu-throttle-increment, 0: as it is */
	uint64_t initial;	/* cpu-throttle-initial, 0: as it is */
	uint64_t limit;		/* s for a migration */
	uint64_t warmup;	/* s at most */
	uint64_t measure;	/* ms of undisturbed speed */
	uint64_t after;		/* ms after which a scenario strikes */
	uint64_t hold;		/* ms that a stopped destination stays stopped */
	uint64_t cut;		/* bytes after which the socket is cut */
	uint64_t busy;		/* keep the main loop of the source busy */
	uint64_t dirty_rate;	/* ms of a calc-dirty-rate instead of a migration, 0: none */
	uint64_t corrupt;	/* pages of the destination to spoil before comparing */
};

void options_parse(struct options *options, int count, char **words);

#endif
