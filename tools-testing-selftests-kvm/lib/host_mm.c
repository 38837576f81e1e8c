// SPDX-License-Identifier: GPL-2.0
/*
 * What tests have the host's memory management do: age pages, migrate them
 */

#include <sys/syscall.h>
#include <linux/kernel.h>

#include "host_file.h"
#include "host_mm.h"
#include "test_util.h"

/* The tools' own <asm/unistd.h> may come first, which has but a few. */
#ifndef __NR_move_pages
#ifdef __x86_64__
#define __NR_move_pages		279
#else
#define __NR_move_pages		239
#endif
#endif

#define MPOL_MF_MOVE		2
#define NODES_FILE		"/sys/devices/system/node/has_memory"
#define COMPACT_FILE		"/proc/sys/vm/compact_memory"

static int pagemap_fd = -1, page_idle_fd = -1;

u64 pagemap_read(int fd, const void *start, u64 nr, u64 *entries)
{
	ssize_t ret = pread(fd, entries, nr * 8, (uintptr_t)start / getpagesize() * 8);

	return ret < 0 ? 0 : ret / 8;
}

bool page_idle_open(void)
{
	if (pagemap_fd >= 0)
		close(pagemap_fd);
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (page_idle_fd < 0)
		page_idle_fd = open(PAGE_IDLE_BITMAP, O_WRONLY | O_CLOEXEC);
	return pagemap_fd >= 0 && page_idle_fd >= 0;
}

bool page_idle_mark(u64 entry)
{
	u64 bit = BIT(PAGEMAP_PFN(entry) % 64);
	ssize_t ret;

	if (!(entry & PAGEMAP_PRESENT))
		return false;

	ret = pwrite(page_idle_fd, &bit, 8, PAGEMAP_PFN(entry) / 64 * 8);
	/* None, if it is in the bitmap's last word, and that is not full. */
	TEST_ASSERT(ret == 8 || !ret, "Writing to " PAGE_IDLE_BITMAP " failed, errno: %i (%s)",
		    errno, strerror(errno));
	return true;
}

u64 page_idle_mark_range(const void *start, u64 nr)
{
	u64 entries[64], n, i, marked = 0, most = ARRAY_SIZE(entries);

	for (; nr; nr -= n, start += n * getpagesize()) {
		n = pagemap_read(pagemap_fd, start, min(nr, most), entries);
		if (!n)
			break;
		for (i = 0; i < n; i++)
			marked += page_idle_mark(entries[i]);
	}
	return marked;
}

const char *thp_missing(void)
{
	char text[64];

	if (!host_read_text(THP_DIR "/enabled", text, sizeof(text)))
		return "the kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)";
	return strstr(text, "[never]") ? THP_DIR "/enabled is set to never" : NULL;
}

bool migrate_by_node(void)
{
	char text[64];

	return host_read_text(NODES_FILE, text, sizeof(text)) && strpbrk(text, ",-");
}

const char *migrate_setup(void)
{
	if (!migrate_by_node() && access(COMPACT_FILE, W_OK))
		return "neither two NUMA nodes nor compaction in this kernel";
	return NULL;
}

void compact_memory(void)
{
	TEST_ASSERT(host_write_text(COMPACT_FILE, "1"), "Can't write to " COMPACT_FILE);
}

void move_to_node(void *start, u64 nr, int node)
{
	void **addresses = calloc(nr, sizeof(*addresses));
	int *nodes = calloc(nr, 2 * sizeof(*nodes));
	u64 i;

	TEST_ASSERT(addresses && nodes, "Memory allocation failed");
	for (i = 0; i < nr; i++) {
		addresses[i] = start + i * getpagesize();
		nodes[i] = node;
	}
	/* Holes and pages that somebody uses are not moved. */
	syscall(__NR_move_pages, 0, nr, addresses, nodes, nodes + nr, MPOL_MF_MOVE);
	free(addresses);
	free(nodes);
}
