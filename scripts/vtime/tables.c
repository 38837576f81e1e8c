// SPDX-License-Identifier: GPL-2.0
/*
 * Where the guest's kernel writes page tables.  Stores there move cache lines, whatever instruction
 * they are: a kernel that writes entries by atomics waits for a line that another CPU wrote, and so does
 * a kernel that writes them by plain stores.  All other plain stores cost nothing but their instruction.
 *
 * The file of marks says where that code is, in lines of a name and a hexadecimal address: `tables_from`,
 * and then `tables_to`, the first address behind it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vtime.h"

#define MAX_RANGES 64

static struct {
	uint64_t from, to;
} ranges[MAX_RANGES];
static int used;

/* Read the file `marks`; false, and a message, if it cannot be used. */
bool tables_open(const char *marks)
{
	unsigned long long address, from = 0;
	FILE *f = fopen(marks, "r");
	bool good = true;
	char name[128];

	if (!f) {
		fprintf(stderr, "vtime: %s: %s\n", marks, strerror(errno));
		return false;
	}
	while (good && fscanf(f, "%127s %llx", name, &address) == 2) {
		if (!strcmp(name, "tables_from")) {
			from = address;
		} else if (!strcmp(name, "tables_to")) {
			good = used < MAX_RANGES && from < address;
			if (good) {
				ranges[used].from = from;
				ranges[used++].to = address;
			}
		}
	}
	fclose(f);
	if (!good)
		fprintf(stderr, "vtime: %s: bad or too many ranges of code\n", marks);
	return good;
}

/* Whether the instruction at `address` is of the code that writes page tables. */
bool tables_code(uint64_t address)
{
	int i;

	for (i = 0; i < used; i++)
		if (address >= ranges[i].from && address < ranges[i].to)
			return true;
	return false;
}
