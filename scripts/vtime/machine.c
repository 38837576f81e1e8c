// SPDX-License-Identifier: GPL-2.0
/* What the files share: the CPUs, the counters, the lock, and die(), which ends a run that cannot go on. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "vtime.h"

struct cpu cpus[MAXCPU];
struct stats stats;
int ncpu;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;	/* a leaf */

void lock(void)
{
	pthread_mutex_lock(&mutex);
}

void unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

void die(const char *format, ...)
{
	va_list args;

	fputs("vtime: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(stderr);
	_exit(3);
}
