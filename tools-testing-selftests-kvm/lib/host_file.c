// SPDX-License-Identifier: GPL-2.0
/*
 * Files of the host's kernel, in sysfs, procfs and debugfs
 */

#include <signal.h>

#include "host_file.h"
#include "test_util.h"

#define MAX_SETTINGS 16

static struct setting {
	const char *path;
	char old[64];
} settings[MAX_SETTINGS];
static int nr_settings;

/* The process that restores them: a child of it does not. */
static pid_t owner;

bool host_read_text(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(text, size, f);
	fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = '\0';
	return ok;
}

bool host_read_number(const char *path, u64 *number)
{
	char text[64], *end;

	if (!host_read_text(path, text, sizeof(text)))
		return false;
	*number = strtoull(text, &end, 0);
	return end != text;
}

bool host_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == strlen(text);
	close(fd);
	return ok;
}

static void restore_settings(void)
{
	if (getpid() != owner)
		return;
	while (nr_settings > 0) {
		nr_settings--;
		host_write_text(settings[nr_settings].path, settings[nr_settings].old);
	}
}

/* Nothing here but what a signal handler may do */
static void restore_and_die(int signal)
{
	restore_settings();
	_exit(128 + signal);
}

bool set_until_exit(const char *path, const char *value)
{
	struct setting *setting = &settings[nr_settings];
	char *choice, *end;

	TEST_ASSERT(nr_settings < MAX_SETTINGS, "Too many settings");
	if (!owner) {
		owner = getpid();
		atexit(restore_settings);
		signal(SIGINT, restore_and_die);
		signal(SIGTERM, restore_and_die);
		signal(SIGHUP, restore_and_die);
	}

	if (!host_read_text(path, setting->old, sizeof(setting->old)) ||
	    !host_write_text(path, value))
		return false;

	/* always [madvise] never */
	choice = strchr(setting->old, '[');
	end = strchr(setting->old, ']');
	if (choice && end) {
		memmove(setting->old, choice + 1, end - choice - 1);
		setting->old[end - choice - 1] = '\0';
	}
	setting->path = path;
	nr_settings++;
	return true;
}
