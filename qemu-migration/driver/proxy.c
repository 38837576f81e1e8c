// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proxy.h"
#include "util.h"

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un made = { .sun_family = AF_UNIX };

	strncpy(made.sun_path, path, sizeof(made.sun_path) - 1);
	return made;
}

static void put(int fd, const char *from, ssize_t count)
{
	while (count > 0) {
		ssize_t done = send(fd, from, count, MSG_NOSIGNAL);

		if (done < 0 && errno != EINTR)
			_exit(0);
		if (done > 0) {
			from += done;
			count -= done;
		}
	}
}

static void pass(int source, int target, uint64_t cut)
{
	struct pollfd fds[2] = { { source, POLLIN, 0 }, { target, POLLIN, 0 } };
	static char buffer[65536];

	/* To the byte, so that it may fall into the middle of a page. */
	while (cut) {
		int i;

		if (poll(fds, 2, -1) < 0)
			continue;
		for (i = 0; i < 2; i++) {
			size_t most = !i && cut < sizeof(buffer) ? cut : sizeof(buffer);
			ssize_t got;

			if (!fds[i].revents)
				continue;
			got = read(fds[i].fd, buffer, most);
			if (got <= 0)
				_exit(0);
			put(fds[!i].fd, buffer, got);
			if (!i)
				cut -= got;
		}
	}
}

pid_t proxy_start(const char *from, const char *to, uint64_t cut)
{
	struct sockaddr_un here = address(from), there = address(to);
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), source, target;
	pid_t pid;

	unlink(from);
	if (bind(listening, (struct sockaddr *)&here, sizeof(here)) || listen(listening, 1))
		die("%s: %s", from, strerror(errno));
	pid = fork();
	if (pid) {
		close(listening);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	source = accept(listening, NULL, NULL);
	target = socket(AF_UNIX, SOCK_STREAM, 0);
	if (source < 0 || connect(target, (struct sockaddr *)&there, sizeof(there)))
		_exit(1);
	pass(source, target, cut);
	_exit(0);
}
