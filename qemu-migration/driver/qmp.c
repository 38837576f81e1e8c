// SPDX-License-Identifier: GPL-2.0
/*
 * A QMP client that knows as much as the driver needs: QEMU prints a reply or an
 * event in one line, with `"key": value` in a fixed spelling.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "qmp.h"
#include "util.h"

/* The next line without its end, or NULL if QEMU has gone or `end` has come. */
static char *read_line(struct qmp *qmp, double end)
{
	static char *line;

	for (;;) {
		char *stop = memchr(qmp->buffer, '\n', qmp->fill);
		struct pollfd wait = { .fd = qmp->fd, .events = POLLIN };
		double left = end - seconds();
		ssize_t got;

		if (stop) {
			size_t length = stop + 1 - qmp->buffer;

			free(line);
			line = strndup(qmp->buffer, length - 1);
			qmp->fill -= length;
			memmove(qmp->buffer, stop + 1, qmp->fill);
			return line;
		}
		if (left <= 0)
			return NULL;
		if (poll(&wait, 1, left * 1000 + 1) <= 0)
			continue;
		if (qmp->fill == qmp->size) {
			qmp->size = qmp->size ? qmp->size * 2 : 65536;
			qmp->buffer = realloc(qmp->buffer, qmp->size);
			if (!qmp->buffer)
				die("no memory");
		}
		got = read(qmp->fd, qmp->buffer + qmp->fill, qmp->size - qmp->fill);
		if (got <= 0) {
			if (got < 0 && errno == EINTR)
				continue;
			qmp->gone = true;
			return NULL;
		}
		qmp->fill += got;
	}
}

void qmp_open(struct qmp *qmp, const char *path, const char *who, double limit)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	double end = seconds() + limit;

	memset(qmp, 0, sizeof(*qmp));
	qmp->who = who;
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	for (;;) {
		qmp->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(qmp->fd, (struct sockaddr *)&address, sizeof(address)))
			break;
		close(qmp->fd);
		if (seconds() > end)
			die("%s: QEMU does not come up (see its log)", who);
		nap(0.05);
	}
	qmp->size = 65536;
	qmp->buffer = malloc(qmp->size);
	if (!read_line(qmp, end))
		die("%s: QEMU sends no greeting", who);
	qmp_run(qmp, "{\"execute\": \"qmp_capabilities\"}");
}

void qmp_close(struct qmp *qmp)
{
	if (qmp->buffer) {
		close(qmp->fd);
		free(qmp->buffer);
	}
	memset(qmp, 0, sizeof(*qmp));
}

static const char *send_and_wait(struct qmp *qmp, double limit, const char *command)
{
	size_t length = strlen(command), sent = 0;
	double end = seconds() + limit;
	char *line;

	while (sent < length && !qmp->gone) {
		ssize_t put = send(qmp->fd, command + sent, length - sent, MSG_NOSIGNAL);

		if (put < 0 && errno != EINTR)
			qmp->gone = true;
		else if (put > 0)
			sent += put;
	}
	while (!qmp->gone) {
		line = read_line(qmp, end);
		if (!line && !qmp->gone)
			die("hang: %s: no answer within %.0f s to %s", qmp->who, limit, command);
		if (line && (!strncmp(line, "{\"return\"", 9) || !strncmp(line, "{\"error\"", 8) ||
			     !strncmp(line, "{\"id\"", 5)))
			return line;
	}
	return NULL;
}

const char *qmp_try(struct qmp *qmp, double limit, const char *format, ...)
{
	const char *reply;
	va_list list;
	char *command;

	va_start(list, format);
	command = vtext(format, list);
	va_end(list);
	reply = send_and_wait(qmp, limit, command);
	free(command);
	return reply;
}

const char *qmp_run(struct qmp *qmp, const char *format, ...)
{
	const char *reply;
	va_list list;
	char *command;

	va_start(list, format);
	command = vtext(format, list);
	va_end(list);
	reply = send_and_wait(qmp, 120, command);
	if (!reply)
		die("%s: QEMU has gone before it answered %s", qmp->who, command);
	if (!strncmp(reply, "{\"error\"", 8))
		die("%s: %s gives %s", qmp->who, command, reply);
	free(command);
	return reply;
}

static const char *value_of(const char *reply, const char *key)
{
	char *pattern = text("\"%s\": ", key);
	const char *at = reply ? strstr(reply, pattern) : NULL;

	at = at ? at + strlen(pattern) : NULL;
	free(pattern);
	return at;
}

long long qmp_number(const char *reply, const char *key, long long missing)
{
	const char *at = value_of(reply, key);

	return at ? strtoll(at, NULL, 10) : missing;
}

const char *qmp_string(const char *reply, const char *key)
{
	static char buffer[4][256];
	static unsigned int next;
	char *copy = buffer[next++ % 4];
	const char *at = value_of(reply, key);
	size_t length = at && *at == '"' ? strcspn(at + 1, "\"") : 0;

	snprintf(copy, sizeof(buffer[0]), "%.*s", (int)length, length ? at + 1 : "");
	return copy;
}
