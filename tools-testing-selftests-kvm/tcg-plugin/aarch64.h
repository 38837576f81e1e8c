/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What TCG plugins for arm64 share: the registers of an emulated CPU, the file that they write, and whether
 * this QEMU is one that they know.  For one file of a plugin, behind a header with MAXCPU.
 */
#ifndef TCG_PLUGIN_AARCH64_H
#define TCG_PLUGIN_AARCH64_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_api.h"

#define XZR 31
#define HCR_TGE (1ULL << 27)

/* The handles of each CPU's registers: the general ones, and one that the plugin has named. */
static struct {
	struct qemu_plugin_register *x[XZR], *named;
} registers[MAXCPU];

static inline uint64_t read_register(struct qemu_plugin_register *handle)
{
	static _Thread_local GByteArray *bytes;
	uint64_t value = 0;

	if (!bytes)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	qemu_plugin_read_register(handle, bytes);
	memcpy(&value, bytes->data, bytes->len > 8 ? 8 : bytes->len);
	return value;
}

static inline uint64_t read_x(unsigned int cpu, unsigned int number)
{
	return number == XZR ? 0 : read_register(registers[cpu].x[number]);
}

static inline uint64_t read_named(unsigned int cpu)
{
	return read_register(registers[cpu].named);
}

/* When the CPU is created; ends QEMU if it lacks one of them. */
static inline void find_registers(const char *plugin, unsigned int cpu, const char *named)
{
	GArray *list = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *all = (const void *)list->data;
	unsigned int i, number;
	char end;

	for (i = 0; cpu < MAXCPU && i < list->len; i++)
		if (!strcmp(all[i].name, named))
			registers[cpu].named = all[i].handle;
		else if (sscanf(all[i].name, "x%u%c", &number, &end) == 1 && number < XZR)
			registers[cpu].x[number] = all[i].handle;
	if (cpu < MAXCPU && registers[cpu].named && registers[cpu].x[0] && registers[cpu].x[XZR - 1])
		return;
	fprintf(stderr, "%s: CPU %u is one too many, or this QEMU lacks its registers\n", plugin, cpu);
	exit(1);
}

static inline FILE *open_output(const char *plugin, const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		fprintf(stderr, "%s: %s: %s\n", plugin, path, strerror(errno));
	return file;
}

static inline bool is_known(const char *plugin, const qemu_info_t *info)
{
	if (info->version.cur <= QEMU_API_NEWEST && !strcmp(info->target_name, "aarch64"))
		return true;
	fprintf(stderr, "%s: this QEMU's plugin interface is %d, known are %d to %d; its target is %s, known is aarch64\n",
		plugin, info->version.cur, QEMU_API_VERSION, QEMU_API_NEWEST, info->target_name);
	return false;
}

#endif
