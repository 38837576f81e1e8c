// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "busy.h"
#include "qmp.h"
#include "util.h"

static volatile long *answers;
static pid_t sender;

void busy_start(const char *path)
{
	struct qmp qmp;

	answers = mmap(NULL, sizeof(*answers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answers == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	qmp_open(&qmp, path, "busy", 60);
	sender = fork();
	if (sender < 0)
		die("fork: %s", strerror(errno));
	if (!sender) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* It ends with QEMU: not by exit(), which would end the machines. */
		while (qmp_try(&qmp, 1e6, "{\"execute\": \"query-qmp-schema\"}"))
			(*answers)++;
		_exit(0);
	}
	qmp_close(&qmp);
}

long busy_end(void)
{
	if (sender <= 0)
		return 0;
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
	sender = 0;
	return *answers;
}
