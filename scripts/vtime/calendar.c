// SPDX-License-Identifier: GPL-2.0
/*
 * What can do one thing at a time: the times at which it is busy.  Who comes out of turn (see
 * clock.c), later in virtual time than somebody who has yet to come, takes nothing from him.
 */
#include <string.h>

#include "vtime.h"

/*
 * Have `length` ps of it from the first free time at or after `now`; returns when they begin.  With the
 * lock held.
 */
int64_t calendar_reserve(struct calendar *c, int64_t now, int64_t length)
{
	int64_t start = now;
	int at = 0;

	if (!length)
		return now;
	while (at < c->used) {
		if (c->busy[at].to > start) {
			if (c->busy[at].from >= start + length)
				break;
			start = c->busy[at].to;
		}
		at++;
	}
	if (at && c->busy[at - 1].to == start) {
		c->busy[--at].to = start + length;
	} else {
		if (c->used == CALENDAR_SLOTS) {
			/* The oldest is the one that is least likely to be asked about again. */
			if (!at)
				return start;
			memmove(&c->busy[0], &c->busy[1], (at - 1) * sizeof(c->busy[0]));
			at--;
		} else {
			memmove(&c->busy[at + 1], &c->busy[at], (c->used - at) * sizeof(c->busy[0]));
			c->used++;
		}
		c->busy[at].from = start;
		c->busy[at].to = start + length;
	}
	if (at + 1 < c->used && c->busy[at + 1].from == c->busy[at].to) {
		c->busy[at].to = c->busy[at + 1].to;
		memmove(&c->busy[at + 1], &c->busy[at + 2],
			(c->used - at - 2) * sizeof(c->busy[0]));
		c->used--;
	}
	return start;
}
