/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TRACE_H
#define TRACE_H

/*
 * Print what is in a log of trace events from byte `from` on: a line
 * "trace EVENT COUNT" for each event, and "throttle_values PERCENT,...", the
 * values that the throttle was set to, without repetitions of the one before.
 */
void trace_print(const char *path, long from);

#endif
