/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QMP_H
#define QMP_H

#include <stdbool.h>
#include <stddef.h>

/* A connection to the monitor of a QEMU. */
struct qmp {
	int fd;
	char *buffer;
	size_t fill, size;
	const char *who;	/* for messages */
	bool gone;		/* QEMU has closed it */
};

/* Connect to the socket `path`; waits for it up to `limit` seconds. */
void qmp_open(struct qmp *qmp, const char *path, const char *who, double limit);
void qmp_close(struct qmp *qmp);

/*
 * Send a command and wait for its reply, which stays valid until the next call.
 * Returns NULL if QEMU has gone. `limit` seconds without an answer are an error:
 * a monitor that does not answer is a hang.
 */
const char *qmp_try(struct qmp *qmp, double limit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As qmp_try(), but an error reply, or no reply, ends the driver. */
const char *qmp_run(struct qmp *qmp, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The number behind the first `"key": ` of a reply, or `missing`. */
long long qmp_number(const char *reply, const char *key, long long missing);

/* The string behind the first `"key": `, in a buffer of its own; "" if there is none. */
const char *qmp_string(const char *reply, const char *key);

#endif
