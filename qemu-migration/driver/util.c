// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "util.h"

void die(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	printf("error ");
	vprintf(format, list);
	printf("\n");
	va_end(list);
	fflush(stdout);
	exit(1);
}

double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

void nap(double length)
{
	struct timespec rest = { .tv_sec = length, .tv_nsec = (length - (long)length) * 1e9 };

	while (nanosleep(&rest, &rest) && errno == EINTR)
		;
}

char *vtext(const char *format, va_list list)
{
	char *made;

	if (vasprintf(&made, format, list) < 0)
		die("no memory");
	return made;
}

char *text(const char *format, ...)
{
	va_list list;
	char *made;

	va_start(list, format);
	made = vtext(format, list);
	va_end(list);
	return made;
}
