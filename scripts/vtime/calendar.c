// SPDX-License-Identifier: GPL-2.0
/*
 * What can do one thing at a time: the times at which it is busy.  A CPU may come out of turn (see
 * clock.c).  Another CPU that comes after it with a smaller clock still finds its earlier time free.
 */
#include <string.h>

#include "vtime.h"

/*
 * Have `length` ps of it at or after `now`, in as many pieces as it is free in: no time of it may
 * be lost between two CPUs that came out of turn.  Returns when they would begin were they one piece
 * that ends with the last of them.  With the lock held.
 */
int64_t calendar_reserve(struct calendar *c, int64_t now, int64_t length)
{
	int64_t end = now, rest = length;
	int first = 0, last;

	if (!length)
		return now;
	while (first < c->used && c->busy[first].to < now)
		first++;
	for (last = first; last < c->used && c->busy[last].from - end < rest; last++) {
		if (c->busy[last].from > end)
			rest -= c->busy[last].from - end;
		end = c->busy[last].to;
	}
	end += rest;
	if (last > first) {
		/* These, and what was free between them, are one now. */
		if (c->busy[first].from < now)
			now = c->busy[first].from;
		memmove(&c->busy[first + 1], &c->busy[last],
			(c->used - last) * sizeof(c->busy[0]));
		c->used -= last - first - 1;
	} else if (c->used < CALENDAR_SLOTS) {
		memmove(&c->busy[first + 1], &c->busy[first],
			(c->used - first) * sizeof(c->busy[0]));
		c->used++;
	} else {
		/* The oldest is the one that is least likely to be asked about again. */
		if (!first)
			return end - length;
		first--;
		memmove(&c->busy[0], &c->busy[1], first * sizeof(c->busy[0]));
	}
	c->busy[first].from = now;
	c->busy[first].to = end;
	return end - length;
}
