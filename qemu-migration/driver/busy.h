/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BUSY_H
#define BUSY_H

/*
 * Keep the main loop of a QEMU busy: send one long command after the other to its monitor
 * at socket `path`, and wait for the answers. A process of its own does so.
 */
void busy_start(const char *path);

/* End that. Returns the number of commands that were answered. */
long busy_end(void);

#endif
