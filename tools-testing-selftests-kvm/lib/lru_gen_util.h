/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What MGLRU says of a memory cgroup: the library's, or for trees that have MGLRU
 * without it, what tests use of that
 */
#if __has_include_next("lru_gen_util.h")
#include_next "lru_gen_util.h"
#elif !defined(SELFTEST_KVM_OUR_LRU_GEN_UTIL_H)
#define SELFTEST_KVM_OUR_LRU_GEN_UTIL_H

#include <stdio.h>
#include <string.h>

#include "test_util.h"

#define LRU_GEN_DEBUGFS		"/sys/kernel/debug/lru_gen"
#define LRU_GEN_ENABLED_PATH	"/sys/kernel/mm/lru_gen/enabled"
/* Bits of that: MGLRU, and that it walks page tables */
#define LRU_GEN_ENABLED		1
#define LRU_GEN_MM_WALK		2

struct memcg_stats {
	unsigned long memcg_id;
	int nr_nodes;
	struct node_stats {
		int node, nr_gens;
		/* Oldest first */
		struct { int gen; long nr_anon; } gens[16];
	} nodes[16];
};

static void lru_gen_read_memcg_stats(struct memcg_stats *stats, const char *name)
{
	FILE *f = fopen(LRU_GEN_DEBUGFS, "re");
	char line[4096], path[4096];
	struct node_stats *node = NULL;
	bool ours = false;
	int number;
	long anon;

	TEST_ASSERT(f, LRU_GEN_DEBUGFS " cannot be opened");
	stats->nr_nodes = 0;
	while ((!stats->nr_nodes || ours) && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "memcg ", 6)) {
			ours = !stats->nr_nodes &&
			       sscanf(line, "memcg %lu /%s", &stats->memcg_id, path) == 2 &&
			       !strcmp(path, name);
		} else if (ours && sscanf(line, " node %d", &number) == 1) {
			TEST_ASSERT(stats->nr_nodes < 16, "too many nodes");
			node = &stats->nodes[stats->nr_nodes++];
			node->node = number;
			node->nr_gens = 0;
		} else if (ours && node && sscanf(line, "%d %*u %ld", &number, &anon) == 2) {
			TEST_ASSERT(node->nr_gens < 16, "too many generations");
			node->gens[node->nr_gens].gen = number;
			node->gens[node->nr_gens++].nr_anon = anon;
		}
	}
	fclose(f);
	TEST_ASSERT(stats->nr_nodes, LRU_GEN_DEBUGFS " does not have the cgroup %s", name);
}
#endif
