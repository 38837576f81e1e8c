// SPDX-License-Identifier: GPL-2.0
/*
 * spread: run a command whose threads the scheduler spreads over the CPUs at once
 *
 *	spread COMMAND [ARG]...
 *
 * Now and then fair scheduling starts two threads on one CPU, and as all spin,
 * it takes until the next ticks to see that others are idle: milliseconds, which
 * is ten times what a benchmark under emulation takes as a whole. Of real-time
 * threads no two share a CPU while another has none.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 1 };

	if (argc < 2) {
		fprintf(stderr, "usage: %s COMMAND [ARG]...\n", argv[0]);
		return 125;
	}
	if (sched_setscheduler(0, SCHED_RR, &param)) {
		fprintf(stderr, "spread: SCHED_RR: %s\n", strerror(errno));
		return 125;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "spread: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
