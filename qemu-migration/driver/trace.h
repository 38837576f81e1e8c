/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TRACE_H
#define TRACE_H

/*
 * Print what is in a log of trace events from byte `from` on: a line
 * "trace EVENT COUNT" for each event, and "throttle_values PERCENT,...", the
 * values that the throttle was set to, without repetitions of the one before.
 */
void trace_print(const char *path, long from);

/*
 * The event in a line of the log, "EVENT VALUES", without the thread and the time that
 * are before it; *at: that time, s since 1970, 0 if the line has none.
 */
char *trace_event(char *line, double *at);

#endif
