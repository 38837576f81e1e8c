// SPDX-License-Identifier: GPL-2.0
/*
 * The stage-2 page tables that the recorded stores have made: which pages are tables, of which tree
 * and level, for which addresses, and what is in them.
 */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define BUCKETS 4096

static struct table *buckets[BUCKETS];
/* The same for all VMs: a kernel has one page size. */
static int page_shift;

bool tables_geometry(uint64_t vtcr, struct geometry *geometry)
{
	static const int shifts[4] = { 12, 16, 14, 0 };
	int tg0 = vtcr >> 14 & 3, t0sz = vtcr & 63, sl0 = vtcr >> 6 & 3;

	geometry->page_shift = shifts[tg0];
	geometry->ipa_bits = 64 - t0sz;
	geometry->level = (tg0 ? 3 : 2) - sl0;
	return geometry->page_shift && geometry->ipa_bits <= 52 && geometry->level >= 0;
}

static int shift_of(int level)
{
	return page_shift + (page_shift - 3) * (3 - level);
}

int tables_shift(const struct table *table)
{
	return shift_of(table->level);
}

int tables_entries(void)
{
	return 1 << (page_shift - 3);
}

uint64_t tables_page(uint64_t physical)
{
	return physical >> page_shift << page_shift;
}

bool tables_is_table(int level, uint64_t entry)
{
	return level < 3 && (entry & 3) == 3;
}

uint64_t tables_output(uint64_t entry)
{
	uint64_t address = tables_page(entry & 0xffffffffffffULL);

	/* 64K pages: bits 51 to 48 of the address are in 15 to 12. */
	return page_shift == 16 ? address | (entry >> 12 & 15) << 48 : address;
}

static struct table **bucket(uint64_t address)
{
	return &buckets[(address >> page_shift) * 0x9e3779b97f4a7c15ULL >> 52];
}

struct table *tables_find(uint64_t physical)
{
	struct table *table;

	if (!page_shift)
		return NULL;
	physical = tables_page(physical);
	for (table = *bucket(physical); table; table = table->next)
		if (table->address == physical)
			return table;
	return NULL;
}

static struct table *new_table(uint64_t root, uint64_t address, uint64_t ipa, int level)
{
	struct table *table, **list;

	tables_remove(address);
	table = calloc(1, sizeof(*table) + tables_entries() * sizeof(table->entry[0]));
	if (!table)
		abort();
	table->root = root;
	table->address = address;
	table->ipa = ipa;
	table->level = level;
	list = bucket(address);
	table->next = *list;
	*list = table;
	return table;
}

struct table *tables_next_root(const struct table *after)
{
	struct table *table = after ? after->next : NULL;
	size_t i = after ? bucket(after->address) - buckets + 1 : 0;

	while (!table || table->address != table->root)
		if (table)
			table = table->next;
		else if (i < BUCKETS)
			table = buckets[i++];
		else
			return NULL;
	return table;
}

void tables_add_root(uint64_t root, const struct geometry *geometry)
{
	uint64_t i, size, pages = 1;

	page_shift = geometry->page_shift;
	size = 1ULL << (shift_of(geometry->level) + page_shift - 3);
	if (1ULL << geometry->ipa_bits > size)
		pages = (1ULL << geometry->ipa_bits) / size;
	for (i = 0; i < pages; i++)
		new_table(root, root + (i << page_shift), i * size, geometry->level)->top = true;
}

struct table *tables_add(const struct table *parent, uint64_t address, uint64_t ipa)
{
	return new_table(parent->root, address, ipa, parent->level + 1);
}

/* Forget the table at `address` and those that it leads to; of a root the concatenated ones, too. */
void tables_remove(uint64_t address)
{
	struct table *table = tables_find(address), **list, *behind = NULL;
	int i;

	if (!table)
		return;
	for (list = bucket(table->address); *list != table; list = &(*list)->next)
		;
	*list = table->next;
	if (table->top)
		behind = tables_find(table->address + (1ULL << page_shift));
	if (behind && behind->top && behind->root == table->root)
		tables_remove(behind->address);
	for (i = 0; i < tables_entries(); i++)
		if (tables_is_table(table->level, table->entry[i]))
			tables_remove(tables_output(table->entry[i]));
	free(table);
}
