/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tests have the host's memory management do: age pages, migrate them
 */

#ifndef SELFTEST_KVM_HOST_MM_H
#define SELFTEST_KVM_HOST_MM_H

#include <stdbool.h>
#include <linux/types.h>
#include <linux/bitops.h>

#define THP_DIR			"/sys/kernel/mm/transparent_hugepage"
#define KHUGEPAGED_DIR		THP_DIR "/khugepaged"
#define KSM_DIR			"/sys/kernel/mm/ksm"
#define PAGE_IDLE_BITMAP	"/sys/kernel/mm/page_idle/bitmap"

/* Entries of /proc/<pid>/pagemap */
#define PAGEMAP_PRESENT		BIT(63)
#define PAGEMAP_SWAP		BIT(62)
#define PAGEMAP_PFN(entry)	((entry) & (BIT(55) - 1))

/*
 * Read so many entries from the page at @start on. Returns how many were read,
 * which is 0 if the process has no memory any more.
 */
u64 pagemap_read(int fd, const void *start, u64 nr, u64 *entries);

/*
 * Open what idle page tracking takes, of this process; again after fork().
 * Returns whether the kernel has it.
 */
bool page_idle_open(void);

/*
 * Clear the accessed flag of the page that a pagemap's entry is of, or of the
 * huge page that begins with it. Returns whether it is there.
 */
bool page_idle_mark(u64 entry);

/* The same for a range; returns the number of pages, where a huge page is one. */
u64 page_idle_mark_range(const void *start, u64 nr);

/* Returns why memory cannot have transparent huge pages, or NULL. */
const char *thp_missing(void);

/* Returns why pages cannot be migrated, or NULL. */
const char *migrate_setup(void);

/* Whether there are nodes to move pages between: otherwise compaction does it. */
bool migrate_by_node(void);
void compact_memory(void);
void move_to_node(void *start, u64 nr, int node);

#endif /* SELFTEST_KVM_HOST_MM_H */
