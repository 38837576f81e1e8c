/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of the host's kernel, in sysfs, procfs and debugfs
 */

#ifndef SELFTEST_KVM_HOST_FILE_H
#define SELFTEST_KVM_HOST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* All of these return whether it worked. */

/* The file's first line, without its end */
bool host_read_text(const char *path, char *text, size_t size);
bool host_read_number(const char *path, u64 *number);
bool host_write_text(const char *path, const char *text);

/*
 * Write a value, which is replaced by the old one when the process exits, or is
 * ended by SIGINT, SIGTERM or SIGHUP. The path is not copied.
 */
bool set_until_exit(const char *path, const char *value);

#endif /* SELFTEST_KVM_HOST_FILE_H */
