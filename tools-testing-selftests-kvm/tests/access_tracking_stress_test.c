// SPDX-License-Identifier: GPL-2.0
/*
 * Stress test of aging (access tracking) of guest memory
 *
 * Threads of the host age a VM's memory, by idle page tracking or by MGLRU,
 * with the vCPUs idle and while they access it or (-p) fault other memory in,
 * or do both (-H), with the dirty log off or (-l) on.
 * How long a pass takes, what the vCPUs lose, and whether the result is right:
 *
 *  - A page that a vCPU accessed after it was marked must not be found idle, if
 *    all TLBs were flushed between. Aging by clear_young does not flush, a
 *    vCPU that still has the translation does not set the accessed flag again,
 *    and so such false idles are merely counted if there was no flush.
 *
 *  - A page that nobody accessed must be found idle. (By idle page tracking:
 *    MGLRU tells how many pages are young, not which.)
 *
 *  - Each page has one vCPU as its owner, which writes values that name the
 *    page and a generation. The generation is recorded in memory that is not
 *    aged. What is read must be what was written last; at the end the host
 *    verifies all of the memory.
 *
 *  - With -e memory is evicted, which reaches clear_flush_young, too.
 *
 * There are two regions. The aged one gets populated at first and stays so. The
 * fresh one, which is there with -p only, is faulted in by the vCPUs and given
 * back again in each iteration. Idle page tracking goes over the aged region
 * alone: the same pages in a pass while vCPUs fault as in one while they are
 * idle, so that the two compare. Between the regions there is a gap, so that the
 * host does not share an anon_vma between them. MGLRU goes over all that the
 * process has: the fresh region counts in as far as it is there.
 *
 * Each phase ends with a line "... time: ", before anything of the next one.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <asm/barrier.h>
#include <linux/bitops.h>
#include <linux/kernel.h>

#include "compat.h"
#include "host_file.h"
#include "host_mm.h"
#include "metric.h"
#include "stress_util.h"
#include "test_result.h"
#ifdef HAVE_LRU_GEN_UTIL_H
#include "lru_gen_util.h"
#endif
#ifdef HAVE_VGIC_V3_SUPPORTED
#ifdef __aarch64__
#include "vgic.h"
#endif
#endif

#define LRU_GEN_SYSFS		"/sys/kernel/mm/lru_gen/enabled"

#define MAX_STRESS_VCPUS	64
#define MAX_AGERS		16
#define MAX_SLOTS		64

/* Where memory may begin that is to be mapped by blocks of 2M */
#define ALIGNMENT		(2UL << 20)

/* Guest physical and virtual addresses, far from the test's code */
#define SHARED_GPA		(4UL << 30)
#define FLUSH_GPA		(6UL << 30)
#define TEST_GPA		(8UL << 30)

enum slot {
	SHARED_SLOT = 1,
	FLUSH_SLOT,
	FIRST_TEST_SLOT,
};

/* Stages of GUEST_SYNC() */
#define STAGE_DONE		1
#define STAGE_FAILED		2

enum command {
	WARM_UP,	/* Fault in what is not of the regions, write for flush_vm() */
	POPULATE,	/* Write to all of the aged region */
	ACCESS,		/* Read and write it, so many rounds */
	FAULT_IN,	/* The fresh region, and access the aged one if it is hot */
	TOUCH,		/* Part of the aged region, when told to */
	IDLE,		/* Not a command to vCPUs: they do not run */
	QUIT,
};

/* The parts of the VM's memory */
enum region {
	AGED,
	FRESH,
	NR_REGIONS,
};

/* What the test has results of */
enum result {
	RESULT_MEMORY,
	RESULT_AGING,
	RESULT_LOG,
	RESULT_EVICTION,
	NR_RESULTS,
};

/* Host and guest share this, by memory that is not aged. */
struct shared {
	/* Written by the host */
	u64 command;
	u64 page_shift;
	u64 pages_per_vcpu[NR_REGIONS];
	u64 percent_writes;
	u64 rounds;
	u64 hot;
	u64 region_gva[NR_REGIONS];
	u64 recs_gva[NR_REGIONS];
	u64 flush_gva;
	u64 turn;
	u64 go;

	/* Written by vCPUs: which turn they are ready for */
	struct {
		u64 ready;
		u64 pad[15];
	} vcpu[MAX_STRESS_VCPUS];
};

/* What a page has, and what the host finds there; 0 if never written */
static u64 value_of(u64 region, u64 page, u32 generation)
{
	return generation ? (u64)generation << 32 | region << 31 | page : 0;
}

static u64 hash(u64 page, u64 n)
{
	u64 x = (page + 1) * 0x9e3779b97f4a7c15UL ^ (n + 1) * 0xc2b2ae3d27d4eb4fUL;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9UL;
	return x >> 32;
}

/* Three pages of four, others in each turn */
static bool is_touched(u64 page, u64 turn)
{
	return hash(page, turn) & 3;
}

/*
 * Guest code
 */

static void guest_access(struct shared *sh, u64 region, u64 page, bool is_write)
{
	u64 *word = (u64 *)(sh->region_gva[region] + (page << sh->page_shift));
	u32 *rec = (u32 *)sh->recs_gva[region] + page;
	u32 generation = *rec;
	u64 value;

	/* The first access to memory is a write, if it is to be one. */
	if (generation || !is_write) {
		value = READ_ONCE(*word);
		if (value != value_of(region, page, generation))
			GUEST_SYNC_ARGS(STAGE_FAILED, region, page, value, generation);
	}
	if (is_write) {
		WRITE_ONCE(*word, value_of(region, page, generation + 1));
		*rec = generation + 1;
	}
}

static void guest_go_over(struct shared *sh, u64 id, u64 region, u64 n,
			  u64 percent)
{
	u64 nr = sh->pages_per_vcpu[region];
	u64 page, first = id * nr;

	for (page = first; page < first + nr; page++)
		guest_access(sh, region, page, hash(page, n) % 100 < percent);
}

/*
 * Each page of the fresh region, and some of the aged one after it, in turn. A
 * fault is an exit. Where that leaves no translation cached, as under QEMU, what
 * is accessed next is young again, although clear_young flushes no TLB.
 */
static void guest_fault_in(struct shared *sh, u64 id, u64 n)
{
	u64 nr = sh->pages_per_vcpu[FRESH];
	u64 page, first = id * nr;
	u64 nr_aged = sh->pages_per_vcpu[AGED], i, hot = 0;

	for (page = first; page < first + nr; page++) {
		guest_access(sh, FRESH, page, hash(page, n) % 100 < sh->percent_writes);
		for (i = 0; i < sh->hot; i++, hot++)
			guest_access(sh, AGED, id * nr_aged + hot % nr_aged,
				     hash(hot, n) % 100 < sh->percent_writes);
	}
}

static void guest_touch(struct shared *sh, u64 id)
{
	u64 nr = sh->pages_per_vcpu[AGED], turn = sh->turn;
	u64 page, first = id * nr;

	/* With translations cached, and without an exit until told to go on. */
	guest_go_over(sh, id, AGED, 0, 0);
	/* Pairs with the acquire in check() */
	smp_store_release(&sh->vcpu[id].ready, turn);
	/* Pairs with the release in check() */
	while (smp_load_acquire(&sh->go) != turn)
		;

	for (page = first; page < first + nr; page++)
		if (is_touched(page, turn))
			guest_access(sh, AGED, page, hash(page, turn + 1) % 100 <
						     sh->percent_writes);
}

static void guest_main(u64 id)
{
	struct shared *sh = (struct shared *)SHARED_GPA;
	u64 i, n = 0;

	for (;;) {
		switch (READ_ONCE(sh->command)) {
		case WARM_UP:
			for (i = 0; i < NR_REGIONS; i++)
				READ_ONCE(*(u32 *)sh->recs_gva[i]);
			if (!id)
				WRITE_ONCE(*(u64 *)sh->flush_gva, 0);
			break;
		case POPULATE:
			guest_go_over(sh, id, AGED, 0, 100);
			break;
		case ACCESS:
			for (i = 0; i < sh->rounds; i++)
				guest_go_over(sh, id, AGED, n++, sh->percent_writes);
			break;
		case FAULT_IN:
			guest_fault_in(sh, id, n++);
			break;
		case TOUCH:
			guest_touch(sh, id);
			break;
		}
		GUEST_SYNC(STAGE_DONE);
	}
}

/*
 * Host code
 */

/* What backs the regions: the kernel ages no other memory that a VM can have. */
enum backing {
	ANONYMOUS,
	ANONYMOUS_THP,
	NR_BACKINGS,
};

static const char * const backing_names[] = {
	[ANONYMOUS]	= "anonymous",
	[ANONYMOUS_THP]	= "anonymous_thp",
};

/* Options */
static int nr_vcpus = 2;
static u64 bytes_per_vcpu = 1UL << 20;
static u64 fresh_per_vcpu;
static enum backing backing;
static int mode;
static u64 nr_iterations = 2;
static u64 nr_rounds = 4;
static u64 nr_idle_passes = 8;
static u64 nr_agers = 1;
static u64 aging_limit = 3;	/* Seconds, in a phase */
static u64 percent_writes = 50;
static bool fault_in;
static bool keep_in_host;
static u64 nr_hot;
static u64 harvest_us;	/* Or 0: no dirty logging of the aged region */
static bool forced_flush = true;
static u64 nr_slots = 1;
static u64 gpa_offset;
static u64 percent_resident;
static bool own_zram;
static char cgroup_name[64];

static struct kvm_vm *vm;
static struct kvm_vcpu *vcpus[MAX_STRESS_VCPUS];
static struct shared *sh;
static u64 page_size, end_gpa;
static u64 nr_pages;	/* Of the aged region */
static u64 nr_fresh;	/* Of the fresh one, or 0 */
static void *region[NR_REGIONS];
static u32 *recs[NR_REGIONS];
static void *flush_page;

/*
 * Workers, which are the vCPUs' threads and the agers, and main() meet at
 * start and end of each phase.
 */
static pthread_barrier_t start_phase, end_phase;
static enum command command;
static u64 vcpus_running;
static u64 vcpu_ns[MAX_STRESS_VCPUS];

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000UL + ts.tv_nsec;
}

static void *allocate(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	TEST_ASSERT(p, "Memory allocation failed");
	return p;
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	TEST_ASSERT(fd >= 0, "Cannot open %s (%s)", path, strerror(errno));
	return fd;
}

#define SKIP(fmt, ...) do {			\
	print_skip(fmt, ##__VA_ARGS__);		\
	exit(KSFT_SKIP);			\
} while (0)

#define INVALID(fmt, ...) do {			\
	fprintf(stderr, fmt "\n", ##__VA_ARGS__);	\
	exit(KSFT_FAIL);			\
} while (0)

/* Times of passes, of a phase or of all iterations */
struct passes {
	u64 nr;
	u64 *ns;
};

#define MAX_PASSES	65536UL

static void add_pass(struct passes *passes, u64 ns)
{
	if (!passes->ns)
		passes->ns = allocate(MAX_PASSES, sizeof(*passes->ns));
	if (passes->nr < MAX_PASSES)
		passes->ns[passes->nr++] = ns;
}

static void add_passes(struct passes *passes, const struct passes *more)
{
	u64 i;

	for (i = 0; i < more->nr; i++)
		add_pass(passes, more->ns[i]);
}

static int compare_ns(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void print_ns(const char *before, u64 ns)
{
	pr_info("%s%lu.%.9lus", before, ns / 1000000000, ns % 1000000000);
}

/* What a line is about: an iteration, or 0 for all of them */
static void print_before(u64 iteration)
{
	if (iteration)
		pr_info("Iteration %lu ", iteration);
	else
		pr_info("All ");
}

static void print_passes(u64 iteration, const char *when, struct passes *passes)
{
	u64 median, p99, most;

	print_before(iteration);
	pr_info("aging passes, vCPUs %s: %lu", when, passes->nr);
	if (!passes->nr) {
		pr_info("\n");
		metric_part("passes.", when, iteration, 0, "count");
		return;
	}
	qsort(passes->ns, passes->nr, sizeof(*passes->ns), compare_ns);
	median = passes->ns[(passes->nr - 1) / 2];
	p99 = passes->ns[(passes->nr * 99 + 99) / 100 - 1];
	most = passes->ns[passes->nr - 1];
	print_ns(", median ", median);
	print_ns(", p99 ", p99);
	print_ns(", max ", most);
	pr_info("\n");
	metric_part("passes.", when, iteration, passes->nr, "count");
	metric_part("pass_median.", when, iteration, median / 1e9, "s");
	metric_part("pass_p99.", when, iteration, p99 / 1e9, "s");
	metric_part("pass_max.", when, iteration, most / 1e9, "s");
}

/* A phase is over: its time, before anything of the next one */
static void print_phase(u64 iteration, const char *what, const char *name, u64 ns)
{
	print_before(iteration);
	pr_info("%s ", what);
	print_ns("time: ", ns);
	pr_info("\n");
	metric_of(name, iteration, ns / 1e9, "s");
}

/* What aging finds of the aged region, in pages */
struct found {
	u64 young;
	u64 idle;
	u64 untracked;	/* On no list of the kernel's, or swapped out */
	u64 swapped;

	/* Accessed by a vCPU since they were marked, and of those found idle */
	u64 touched;
	u64 false_idle;

	/* Not accessed, but found young */
	u64 false_young;
};

/*
 * Idle page tracking: a bitmap with a bit for each page frame. A write marks the
 * pages whose bits are set as idle, after clearing their accessed flags; a read
 * tells which are still idle, after looking at the accessed flags.
 */

/* Of /proc/kpageflags */
#define KPF_LRU		BIT(5)
#define KPF_TAIL	BIT(16)

/* Where the pages are: the part of the bitmap that has bits of them */
struct idle_map {
	int fd;
	u64 nr_swapped;
	u64 nr_words;
	u64 *word;		/* Numbers of 64-bit words, in order */
	u64 *bits;		/* Those of our pages in it */
	u64 *got;		/* What was read */

	/* For each page, its frame, or 0, that of a huge page's head, and its word */
	u64 *frame;
	u64 *pfn;
	u64 *index;
	bool *tracked;

	struct frame {
		u64 pfn;
		u64 page;
	} *frames;
};

static int pagemap_fd, kpageflags_fd;

static const char *idle_map_missing(void)
{
	if (access(PAGE_IDLE_BITMAP, F_OK))
		return "the kernel has no " PAGE_IDLE_BITMAP " (CONFIG_IDLE_PAGE_TRACKING)";
	if (access("/proc/kpageflags", F_OK) || access("/proc/self/pagemap", F_OK))
		return "the kernel has no /proc/kpageflags (CONFIG_PROC_PAGE_MONITOR)";
	return NULL;
}

static struct idle_map *new_idle_map(bool use_bitmap)
{
	struct idle_map *map = allocate(1, sizeof(*map));

	map->fd = use_bitmap ? open_file(PAGE_IDLE_BITMAP, O_RDWR) : -1;
	map->word = allocate(nr_pages, sizeof(*map->word));
	map->bits = allocate(nr_pages, sizeof(*map->bits));
	map->got = allocate(nr_pages, sizeof(*map->got));
	map->frame = allocate(nr_pages, sizeof(*map->frame));
	map->pfn = allocate(nr_pages, sizeof(*map->pfn));
	map->index = allocate(nr_pages, sizeof(*map->index));
	map->tracked = allocate(nr_pages, sizeof(*map->tracked));
	map->frames = allocate(nr_pages, sizeof(*map->frames));
	return map;
}

static int compare_frames(const void *a, const void *b)
{
	u64 x = ((const struct frame *)a)->pfn, y = ((const struct frame *)b)->pfn;

	return x < y ? -1 : x > y;
}

static void read_pagemap(u64 *entries, u64 first, u64 nr)
{
	TEST_ASSERT(pagemap_read(pagemap_fd, region[AGED] + first * page_size, nr, entries) == nr,
		    "Reading /proc/self/pagemap failed (%s)", strerror(errno));
}

/* Look up where the pages are now. */
static void refresh(struct idle_map *map)
{
	u64 i, nr = 0, flags = 0, pfn, head = 0;
	struct frame *frame;

	read_pagemap(map->frame, 0, nr_pages);
	map->nr_swapped = 0;
	for (i = 0; i < nr_pages; i++) {
		map->nr_swapped += !!(map->frame[i] & PAGEMAP_SWAP);
		pfn = map->frame[i] & PAGEMAP_PRESENT ? PAGEMAP_PFN(map->frame[i]) : 0;
		map->frame[i] = pfn;
		map->pfn[i] = 0;
		map->tracked[i] = false;
		if (!pfn)
			continue;
		if (pread(kpageflags_fd, &flags, sizeof(flags), pfn * sizeof(flags)) !=
		    sizeof(flags))
			continue;

		/* What holds of a huge page is known by its head. */
		if (!(flags & KPF_TAIL))
			head = pfn;
		map->pfn[i] = head;
		map->tracked[i] = flags & KPF_LRU;
		map->frames[nr].pfn = head;
		map->frames[nr++].page = i;
	}

	qsort(map->frames, nr, sizeof(*map->frames), compare_frames);
	map->nr_words = 0;
	for (frame = map->frames; frame < map->frames + nr; frame++) {
		if (!map->nr_words || map->word[map->nr_words - 1] != frame->pfn / 64) {
			map->word[map->nr_words] = frame->pfn / 64;
			map->bits[map->nr_words++] = 0;
		}
		map->bits[map->nr_words - 1] |= 1UL << frame->pfn % 64;
		map->index[frame->page] = map->nr_words - 1;
	}
}

/*
 * The bitmap's last word has bits for frames that are not there, if there are not
 * a multiple of 64, and then the kernel does not tell what is in it.
 */
static void leave_last_word_out(struct idle_map *map)
{
	u64 page;

	map->nr_words--;
	for (page = 0; page < nr_pages; page++)
		if (map->frame[page] && map->index[page] == map->nr_words)
			map->tracked[page] = false;
}

/* The time that it took the kernel to mark all pages, in ns */
static u64 idle_map_mark(struct idle_map *map)
{
	u64 start = now_ns(), i, n;
	ssize_t done;

	/* Words that follow each other by one system call; of long ones the kernel does a part. */
	for (i = 0; i < map->nr_words; i += done / 8) {
		for (n = 1; i + n < map->nr_words && map->word[i + n] == map->word[i] + n; n++)
			;
		done = pwrite(map->fd, map->bits + i, n * 8, map->word[i] * 8);
		if (!done && i == map->nr_words - 1)
			break;	/* see leave_last_word_out() */
		TEST_ASSERT(done >= 8, "Writing " PAGE_IDLE_BITMAP " failed (%s)",
			    strerror(errno));
	}
	return now_ns() - start;
}

static void idle_map_read(struct idle_map *map)
{
	u64 i, n;
	ssize_t done;

	for (i = 0; i < map->nr_words; i += done / 8) {
		for (n = 1; i + n < map->nr_words && map->word[i + n] == map->word[i] + n; n++)
			;
		done = pread(map->fd, map->got + i, n * 8, map->word[i] * 8);
		if (!done && i == map->nr_words - 1) {
			leave_last_word_out(map);
			break;
		}
		TEST_ASSERT(done >= 8, "Reading " PAGE_IDLE_BITMAP " failed (%s)",
			    strerror(errno));
	}
}

/* How many pages idle_map_read() has found young */
static u64 idle_map_young(struct idle_map *map)
{
	u64 page, young = 0;

	for (page = 0; page < nr_pages; page++)
		young += map->tracked[page] &&
			 !(map->got[map->index[page]] >> map->pfn[page] % 64 & 1);
	return young;
}

/* What is aged as one begins with the page first: where it ends */
static u64 end_of_unit(struct idle_map *map, u64 first)
{
	u64 next = first + 1;

	while (next < nr_pages && map->pfn[first] && map->pfn[next] == map->pfn[first])
		next++;
	return next;
}

/* Whether a vCPU touched any of the pages in a turn; 0 is for what is not known. */
static bool any_touched(u64 first, u64 end, u64 turn)
{
	u64 page;

	for (page = first; turn && page < end; page++)
		if (is_touched(page, turn))
			return true;
	return false;
}

static bool has_moved(struct idle_map *map, u64 page)
{
	u64 entry;

	read_pagemap(&entry, page, 1);
	return !(entry & PAGEMAP_PRESENT) || PAGEMAP_PFN(entry) != map->frame[page];
}

/* A huge page counts as all of its pages. */
static struct found idle_map_found(struct idle_map *map, u64 turn)
{
	struct found found = { .swapped = map->nr_swapped };
	u64 first, next, nr;
	bool touched;
	bool idle;

	idle_map_read(map);
	for (first = 0; first < nr_pages; first = next) {
		next = end_of_unit(map, first);
		nr = next - first;
		if (!map->tracked[first] || has_moved(map, first)) {
			found.untracked += nr;
			continue;
		}
		idle = map->got[map->index[first]] >> map->pfn[first] % 64 & 1;
		found.idle += idle ? nr : 0;
		found.young += idle ? 0 : nr;
		touched = any_touched(first, next, turn);
		found.touched += touched ? nr : 0;
		found.false_idle += touched && idle ? nr : 0;
		found.false_young += turn && !touched && !idle ? nr : 0;
	}
	return found;
}

/*
 * MGLRU: pages of a memory cgroup are in generations. Aging opens a new one, and
 * what was accessed gets moved to the one which was the youngest before. There
 * are only numbers of pages, and they include what else the cgroup has.
 */

#ifdef HAVE_LRU_GEN_UTIL_H
static const char *lru_gen_missing(void)
{
	u64 enabled, wanted = LRU_GEN_ENABLED | LRU_GEN_MM_WALK;

	if (!host_read_number(LRU_GEN_ENABLED_PATH, &enabled))
		return "the kernel has no " LRU_GEN_ENABLED_PATH " (CONFIG_LRU_GEN)";
	if ((enabled & wanted) != wanted)
		return "MGLRU or its page table walks are off (" LRU_GEN_ENABLED_PATH ")";
	if (access(LRU_GEN_DEBUGFS, F_OK))
		return "there is no " LRU_GEN_DEBUGFS " (CONFIG_DEBUG_FS, mounted)";
	return NULL;
}

/* Open a generation in each node; returns the time that it took the kernel, in ns. */
static u64 lru_gen_mark(struct idle_map *map)
{
	int i, fd = open_file(LRU_GEN_DEBUGFS, O_WRONLY);
	struct memcg_stats stats;
	struct node_stats *node;
	char text[128];
	u64 start, ns = 0;

	lru_gen_read_memcg_stats(&stats, cgroup_name);
	for (i = 0; i < stats.nr_nodes; i++) {
		node = &stats.nodes[i];

		/* With anonymous pages, and without leaving out what looks sparse. */
		snprintf(text, sizeof(text), "+ %lu %d %d 200 1", stats.memcg_id, node->node,
			 node->gens[node->nr_gens - 1].gen);
		start = now_ns();
		/* Reclaim may open a generation at the same time. */
		TEST_ASSERT(write(fd, text, strlen(text)) == strlen(text) ||
			    (errno == EEXIST && percent_resident),
			    "Writing '%s' to " LRU_GEN_DEBUGFS " failed (%s)", text,
			    strerror(errno));
		ns += now_ns() - start;
	}
	close(fd);
	return ns;
}

/* The cgroup's anonymous pages: those of the two youngest generations are young. */
static struct found lru_gen_read(void)
{
	struct found found = {};
	struct memcg_stats stats;
	struct node_stats *node;
	int i, gen;

	lru_gen_read_memcg_stats(&stats, cgroup_name);
	for (i = 0; i < stats.nr_nodes; i++) {
		node = &stats.nodes[i];
		for (gen = 0; gen < node->nr_gens; gen++) {
			if (gen + 2 < node->nr_gens)
				found.idle += node->gens[gen].nr_anon;
			else
				found.young += node->gens[gen].nr_anon;
		}
	}
	return found;
}

static struct found lru_gen_found(struct idle_map *map, u64 turn)
{
	struct found found;
	u64 first, next;

	lru_gen_mark(map);
	found = lru_gen_read();

	/* Pages on no list are in no generation, which kpageflags knows. */
	refresh(map);
	found.swapped = map->nr_swapped;
	for (first = 0; first < nr_pages; first = next) {
		next = end_of_unit(map, first);
		if (!map->tracked[first])
			found.untracked += next - first;
		else if (any_touched(first, next, turn))
			found.touched += next - first;
	}

	/* At least so many, whatever else of the cgroup's is young */
	if (turn && found.touched > found.young)
		found.false_idle = found.touched - found.young;
	return found;
}
#else
static const char *lru_gen_missing(void)
{
	return "the library of these selftests has no lru_gen_util.h";
}

#define lru_gen_mark	NULL
#define lru_gen_found	NULL
#endif /* HAVE_LRU_GEN_UTIL_H */

static const struct mechanism {
	const char *name;
	const char *(*missing)(void);
	u64 (*mark)(struct idle_map *map);
	struct found (*found)(struct idle_map *map, u64 turn);
	u64 max_agers;
} mechanisms[] = {
	{ "page_idle", idle_map_missing, idle_map_mark, idle_map_found, MAX_AGERS },
	{ "lru_gen", lru_gen_missing, lru_gen_mark, lru_gen_found, 1 },
};

#define PAGE_IDLE_MECHANISM	(&mechanisms[0])
#define LRU_GEN_MECHANISM	(&mechanisms[1])

static const struct mechanism *mechanism;
static struct idle_map *main_map;

/*
 * What is set up for the test and removed after it, whatever becomes of it: a
 * cgroup, a mount of cgroups, swap on zram
 */

static pid_t cleaner;		/* The process that removes it */
static char mount_dir[64], cgroup_dir[128], zram_dev[32];
static u64 zram_number;

static const char *cgroup_file(const char *dir, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void remove_swap(void)
{
	char text[64];
	int i;

	if (!zram_dev[0])
		return;
	if (swapoff(zram_dev) && errno != EINVAL)
		pr_info("%s is still in use (%s)\n", zram_dev, strerror(errno));
	snprintf(text, sizeof(text), "%lu", zram_number);

	/* Others may look at it for a moment, such as udev. */
	for (i = 0; i < 100; i++) {
		if (host_write_text("/sys/class/zram-control/hot_remove", text))
			return;
		if (errno != EBUSY)
			break;
		usleep(10000);
	}
	pr_info("%s could not be removed (%s)\n", zram_dev, strerror(errno));
}

static void remove_cgroup(void)
{
	int i;

	if (cgroup_dir[0]) {
		host_write_text(cgroup_file(mount_dir, "cgroup.procs"), "0");

		/* What a process has left behind goes after it. */
		for (i = 0; i < 100 && rmdir(cgroup_dir) && errno == EBUSY; i++)
			usleep(10000);
	}
	if (mount_dir[0]) {
		umount2(mount_dir, MNT_DETACH);
		rmdir(mount_dir);
	}
}

static void clean_up(void)
{
	if (getpid() != cleaner)
		return;
	cleaner = 0;
	remove_cgroup();
	remove_swap();
}

/* The root of all cgroups, where nobody else sees it mounted */
static void mount_cgroups(void)
{
	if (unshare(CLONE_NEWNS))
		SKIP("no mount namespace of its own (%s)", strerror(errno));
	mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	strcpy(mount_dir, "/tmp/access_tracking_XXXXXX");
	if (!mkdtemp(mount_dir)) {
		mount_dir[0] = '\0';
		SKIP("no directory in /tmp (%s)", strerror(errno));
	}
	if (mount("none", mount_dir, "cgroup2", 0, NULL))
		SKIP("cgroup2 cannot be mounted at %s (%s)", mount_dir, strerror(errno));
}

/* A cgroup of this test's own, with nothing in it yet */
static void make_cgroup(void)
{
	char controllers[256] = "";
	const char *path;

	mount_cgroups();
	path = cgroup_file(mount_dir, "cgroup.controllers");
	host_read_text(path, controllers, sizeof(controllers));
	if (!strstr(controllers, "memory"))
		SKIP("no memory controller in %s (CONFIG_MEMCG, cgroup v2)", path);
	path = cgroup_file(mount_dir, "cgroup.subtree_control");
	if (!host_write_text(path, "+memory"))
		SKIP("no memory controller by %s (%s)", path, strerror(errno));

	snprintf(cgroup_name, sizeof(cgroup_name), "access_tracking_%d", getpid());
	snprintf(cgroup_dir, sizeof(cgroup_dir), "%s/%s", mount_dir, cgroup_name);
	if (mkdir(cgroup_dir, 0755)) {
		int error = errno;

		cgroup_dir[0] = '\0';
		SKIP("no cgroup %s in %s (%s)", cgroup_name, mount_dir, strerror(error));
	}
}

/*
 * What the cgroup may have besides the test's memory: the kernel's part, such as
 * page tables, what is on its way to zram, what CPUs have charged in advance
 */
static u64 cgroup_slack(void)
{
	return 128 * page_size;
}

/* From here on memory counts for the cgroup. */
static void enter_cgroup(void)
{
	u64 used = 0;
	char text[32];

	TEST_ASSERT(host_write_text(cgroup_file(cgroup_dir, "cgroup.procs"), "0"),
		    "Cannot enter %s (%s)", cgroup_dir, strerror(errno));
	if (!percent_resident)
		return;

	host_read_number(cgroup_file(cgroup_dir, "memory.current"), &used);
	used += (nr_pages + nr_fresh) * page_size * percent_resident / 100 + cgroup_slack();
	snprintf(text, sizeof(text), "%lu", used);
	TEST_ASSERT(host_write_text(cgroup_file(cgroup_dir, "memory.max"), text),
		    "Cannot limit the memory of %s (%s)", cgroup_dir, strerror(errno));
	pr_info("Memory cgroup v2, limited to %lu KiB\n", used >> 10);
}

/* The header of a swap area, in its first page */
static void format_swap(const char *dev, u64 size)
{
	char *page = allocate(1, page_size);
	u32 *info = (u32 *)(page + 1024);
	int fd = open_file(dev, O_WRONLY);

	info[0] = 1;				/* version */
	info[1] = size / page_size - 1;		/* last page */
	memcpy(page + page_size - 10, "SWAPSPACE2", 10);
	TEST_ASSERT(write(fd, page, page_size) == page_size, "Writing to %s failed (%s)",
		    dev, strerror(errno));
	close(fd);
	free(page);
}

static bool have_swap(void)
{
	char line[256];
	int nr = 0;
	FILE *f = fopen("/proc/swaps", "re");

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		nr++;
	fclose(f);
	return nr > 1;
}

static void make_swap(void)
{
	u64 size = (nr_pages + nr_fresh) * page_size * 4 + (16UL << 20);
	char path[64], text[32];

	if (!own_zram) {
		if (!have_swap())
			INVALID("-e: no swap to evict memory to (-z sets it up on zram)");
		return;
	}
	if (!host_read_number("/sys/class/zram-control/hot_add", &zram_number))
		SKIP("no /sys/class/zram-control/hot_add (CONFIG_ZRAM)");
	snprintf(zram_dev, sizeof(zram_dev), "/dev/zram%lu", zram_number);
	snprintf(path, sizeof(path), "/sys/block/zram%lu/disksize", zram_number);
	snprintf(text, sizeof(text), "%lu", size);
	TEST_ASSERT(host_write_text(path, text), "Writing %s to %s failed (%s)", text, path,
		    strerror(errno));
	format_swap(zram_dev, size);
	/* Before any other that there is */
	if (swapon(zram_dev, SWAP_FLAG_PREFER | 100))
		SKIP("no swap on %s (%s)", zram_dev, strerror(errno));
}

/*
 * Pages swapped in and out: requests to our own zram, each of them a page, or
 * else those of the host since it was booted, if the kernel counts them
 * (VM_EVENT_COUNTERS).
 */
static bool read_swap_counts(u64 *in, u64 *out)
{
	u64 number, found = 0;
	char text[128];
	FILE *f;

	if (own_zram) {
		snprintf(text, sizeof(text), "/sys/block/zram%lu/stat", zram_number);
		f = fopen(text, "re");
		found = f && fscanf(f, "%lu %*u %*u %*u %lu", in, out) == 2 ? 2 : 0;
	} else {
		f = fopen("/proc/vmstat", "re");
		while (f && fscanf(f, "%127s %lu", text, &number) == 2) {
			if (strcmp(text, "pswpin") && strcmp(text, "pswpout"))
				continue;
			*(strcmp(text, "pswpin") ? out : in) = number;
			found++;
		}
	}
	if (f)
		fclose(f);
	return found == 2;
}

static pid_t child;

static void kill_child(int signal)
{
	kill(child, SIGKILL);
}

/* Signals that end the test wait, from before there is something to clean up. */
static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(how, &set, NULL);
}

/*
 * Go on in a child, which may be killed, for want of memory or by a signal. The
 * parent waits for it and cleans up.
 */
static void run_in_child(void)
{
	int status;

	fflush(stdout);
	child = fork();
	TEST_ASSERT(child >= 0, "fork() failed (%s)", strerror(errno));
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		block_signals(SIG_UNBLOCK);
		return;
	}

	signal(SIGINT, kill_child);
	signal(SIGTERM, kill_child);
	signal(SIGHUP, kill_child);
	block_signals(SIG_UNBLOCK);
	while (waitpid(child, &status, 0) < 0)
		TEST_ASSERT(errno == EINTR, "waitpid() failed (%s)", strerror(errno));
	if (WIFSIGNALED(status)) {
		pr_info("Killed by signal %d\n", WTERMSIG(status));
		exit(128 + WTERMSIG(status));
	}
	exit(WEXITSTATUS(status));
}

/* The VM */

/*
 * Memory that starts where a huge page can, with some of no use before and
 * after it: no VMA of one region is next to one of the other.
 */
static void *map_memory(size_t size, enum backing how)
{
	void *p = reserve_aligned(size + 2 * ALIGNMENT, ALIGNMENT) + ALIGNMENT;

	map_fixed(p, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, size, how == ANONYMOUS_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return p;
}

static u64 nr_aged_slots;

/* What it takes to make the fresh region's memslots anew */
static struct kvm_userspace_memory_region fresh_slots[MAX_SLOTS];

/* The memslots of a region; returns where the next may begin */
static u64 add_region(enum region nr, u64 size, u64 gpa, u64 gva,
		      u32 slot)
{
	u64 unit = vm->page_size > page_size ? vm->page_size : page_size;
	u64 per_slot = (size / nr_slots + unit - 1) / unit * unit;
	struct kvm_userspace_memory_region *fresh = fresh_slots;
	u64 done, part;
	u32 flags = 0;

	if (nr == AGED && harvest_us)
		flags = KVM_MEM_LOG_DIRTY_PAGES;
	region[nr] = map_memory(size, backing);
	sh->region_gva[nr] = gva;
	for (done = 0; done < size; done += part) {
		part = per_slot < size - done ? per_slot : size - done;
		if (nr == FRESH)
			*fresh++ = (struct kvm_userspace_memory_region) {
				.slot = slot,
				.guest_phys_addr = gpa + gpa_offset,
				.memory_size = part,
				.userspace_addr = (uintptr_t)region[nr] + done,
			};
		vm_set_user_memory_region(vm, slot++, flags, gpa + gpa_offset, part,
					  region[nr] + done);
		nr_aged_slots += nr == AGED;
		virt_map(vm, gva + done, gpa + gpa_offset, part / vm->page_size);

		/* Memslots do not touch. */
		gpa += (gpa_offset + part + 2 * ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	}
	return gpa;
}

static void create_vm(void)
{
	u64 size = nr_pages * page_size;
	u64 fresh_size = nr_fresh * page_size;
	u64 shared_size, recs_size, gpa, gva, extra;
	int i;

	recs_size = nr_pages * sizeof(u32);
	if (nr_fresh > nr_pages)
		recs_size = nr_fresh * sizeof(u32);
	recs_size = (recs_size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	shared_size = ALIGNMENT + NR_REGIONS * recs_size;

	/* The library adds what is for code, stacks, ucall() and page tables. */
	extra = (size + shared_size + fresh_size + 4 * ALIGNMENT) / MIN_PAGE_SIZE;
	vm = __vm_create_with_vcpus(VM_SHAPE(mode), nr_vcpus, extra, guest_main, vcpus);
#ifdef HAVE_VGIC_V3_SUPPORTED
#ifdef __aarch64__
	/* Without it each exit looks after userspace's, with a lock for all CPUs. */
	if (vgic_v3_supported(vm))
		vgic_v3_setup(vm, nr_vcpus, 1UL << 31);
#endif
#endif

	sh = map_memory(shared_size, ANONYMOUS_THP);
	memset(sh, 0, shared_size);
	vm_set_user_memory_region(vm, SHARED_SLOT, 0, SHARED_GPA, shared_size, sh);
	virt_map(vm, SHARED_GPA, SHARED_GPA, shared_size / vm->page_size);
	sh->page_shift = __builtin_ctzl(page_size);
	sh->pages_per_vcpu[AGED] = bytes_per_vcpu / page_size;
	sh->pages_per_vcpu[FRESH] = fresh_per_vcpu / page_size;
	sh->percent_writes = percent_writes;
	sh->rounds = nr_rounds;
	sh->hot = nr_hot;
	for (i = 0; i < NR_REGIONS; i++) {
		recs[i] = (void *)sh + ALIGNMENT + i * recs_size;
		sh->recs_gva[i] = SHARED_GPA + ALIGNMENT + i * recs_size;
	}

	flush_page = map_memory(ALIGNMENT, ANONYMOUS);
	vm_set_user_memory_region(vm, FLUSH_SLOT, KVM_MEM_LOG_DIRTY_PAGES, FLUSH_GPA,
				  vm->page_size > page_size ? vm->page_size :
								     page_size, flush_page);
	virt_map(vm, FLUSH_GPA, FLUSH_GPA, 1);
	sh->flush_gva = FLUSH_GPA;

	gva = TEST_GPA;
	gpa = add_region(AGED, size, TEST_GPA, gva, FIRST_TEST_SLOT);
	if (fault_in)
		gpa = add_region(FRESH, fresh_size, gpa, gva + size + ALIGNMENT,
				 FIRST_TEST_SLOT + nr_slots + 1);
	end_gpa = gpa;

	for (i = 0; i < nr_vcpus; i++)
		vcpu_args_set(vcpus[i], 1, (u64)i);
}

/*
 * Have KVM flush all TLBs of the VM: dirty logging is on for a memslot of a page
 * that a vCPU has just written to. A harvest of the log write protects the page
 * and flushes, which x86 can do for the whole VM only (but on Hyper-V). No vCPU
 * need exit for the harvest, as it would for a change of memslots, which waits
 * for SRCU: an exit may flush by itself, and then whether KVM has done so would
 * not be seen.
 *
 * arm64 with FEAT_TLBIRANGE invalidates the stage-2 translations of that page
 * only, and all that are combined with stage 1: where a CPU caches stage 2 by
 * itself, a false idle proves nothing.
 */
static void flush_vm(void)
{
	u64 bitmap = 0;

	kvm_vm_get_dirty_log(vm, FLUSH_SLOT, &bitmap);
	TEST_ASSERT(bitmap, "No flush: a page that was written to is not in the dirty log");
}

/* Harvests the dirty log of the aged region; returns how many pages were in it. */
static u64 harvest(void)
{
	static u64 *bitmap;
	u64 i, slot, nr_words = nr_pages / 64 + 1, nr_dirty = 0;

	if (!bitmap)
		bitmap = allocate(nr_words, sizeof(*bitmap));
	for (slot = FIRST_TEST_SLOT; slot < FIRST_TEST_SLOT + nr_aged_slots; slot++) {
		memset(bitmap, 0, nr_words * sizeof(*bitmap));
		kvm_vm_get_dirty_log(vm, slot, bitmap);
		for (i = 0; i < nr_words; i++)
			nr_dirty += __builtin_popcountl(bitmap[i]);
	}
	return nr_dirty;
}

/* Workers */

static void run_vcpu_to_done(int id)
{
	struct ucall uc;
	u64 cmd;
	int ret;

	do {
		ret = _vcpu_run(vcpus[id]);
	} while (ret && errno == EINTR);
	TEST_ASSERT(!ret, "KVM_RUN failed, vCPU %d, errno: %i (%s)", id, errno,
		    strerror(errno));
	cmd = get_ucall(vcpus[id], &uc);
	TEST_ASSERT(cmd == UCALL_SYNC, "vCPU %d: unexpected exit, reason %d, ucall %lu", id,
		    vcpus[id]->run->exit_reason, cmd);
	TEST_ASSERT(uc.args[1] == STAGE_DONE,
		    "vCPU %d: page %lu of the %s region has 0x%lx, not 0x%lx (generation %lu)",
		    id, uc.args[3], uc.args[2] == AGED ? "aged" : "fresh", uc.args[4],
		    value_of(uc.args[2], uc.args[3], uc.args[5]), uc.args[5]);
}

static void time_vcpu(int id)
{
	u64 start = now_ns();

	run_vcpu_to_done(id);
	vcpu_ns[id] = now_ns() - start;
	__atomic_sub_fetch(&vcpus_running, 1, __ATOMIC_SEQ_CST);
}

static void *vcpu_worker(void *data)
{
	int id = (uintptr_t)data;

	for (;;) {
		pthread_barrier_wait(&start_phase);
		if (command == QUIT)
			return NULL;
		if (command != IDLE)
			time_vcpu(id);
		pthread_barrier_wait(&end_phase);
	}
}

struct ager {
	pthread_t thread;
	struct idle_map *map;

	/* Of this phase */
	struct passes passes;
	u64 young;		/* Sum of all passes, with -H */
	bool stopped;
} agers[MAX_AGERS];

/*
 * The time that a pass took the kernel, in ns, and how many pages were young. With
 * -H a pass is what a user of idle page tracking does again and again: to read
 * which pages are still idle, and to mark all. A page that is young is aged by the
 * first, or, if a fault has marked it accessed meanwhile, by the second.
 */
static u64 age(struct idle_map *map, u64 *young)
{
	u64 start = now_ns(), ns;

	*young = 0;
	if (!nr_hot)
		return mechanism->mark(map);
	idle_map_read(map);
	ns = now_ns() - start;
	*young = idle_map_young(map);
	return ns + idle_map_mark(map);
}

/* Whether there is another pass to do in this phase */
static bool goes_on(struct ager *ager)
{
	switch (command) {
	case IDLE:
		if (nr_hot)
			return !ager->passes.nr;
		return ager->passes.nr < nr_idle_passes;
	case ACCESS:
	case FAULT_IN:
		return true;
	default:
		return false;
	}
}

static void *ager_worker(void *data)
{
	struct ager *ager = data;
	u64 ns, start;
	u64 young;

	for (;;) {
		pthread_barrier_wait(&start_phase);
		if (command == QUIT)
			return NULL;
		ager->passes.nr = 0;
		ager->young = 0;
		ager->stopped = false;
		start = now_ns();
		while (goes_on(ager)) {
			/* Where memory gets evicted, it is elsewhere each time. */
			if (percent_resident)
				refresh(ager->map);
			ns = age(ager->map, &young);

			/* The last one ends with the vCPUs idle. */
			if (command != IDLE && ager->passes.nr &&
			    !__atomic_load_n(&vcpus_running, __ATOMIC_SEQ_CST))
				break;
			add_pass(&ager->passes, ns);
			ager->young += young;
			if (command != IDLE &&
			    !__atomic_load_n(&vcpus_running, __ATOMIC_SEQ_CST))
				break;

			/*
			 * Locks that are spun for, and an emulated machine with more
			 * CPUs than it is run by: vCPUs may hardly get on.
			 */
			ager->stopped = command != IDLE &&
					now_ns() - start > aging_limit * 1000000000;
			if (ager->stopped)
				break;
		}
		pthread_barrier_wait(&end_phase);
	}
}

static void begin(enum command what)
{
	sh->command = what;
	command = what;
	vcpus_running = nr_vcpus;
	pthread_barrier_wait(&start_phase);
}

static void end(void)
{
	pthread_barrier_wait(&end_phase);
}

/* Phases */

static struct passes idle_passes, busy_passes;
static u64 most_swapped;
static struct found with_flush, without_flush;
static u64 idle_young, busy_young;
static u64 total_slowest_ns, total_mean_ns;
static u64 total_harvested;

static void print_found(u64 iteration, const char *when, const struct found *found)
{
	print_before(iteration);
	pr_info("found after aging, vCPUs %s: %lu young, %lu idle, %lu not tracked, %lu swapped out\n",
		when, found->young, found->idle, found->untracked, found->swapped);
	metric_part("young.", when, iteration, found->young, "pages");
	metric_part("idle.", when, iteration, found->idle, "pages");
	metric_part("untracked.", when, iteration, found->untracked, "pages");
	metric_part("swapped.", when, iteration, found->swapped, "pages");
	if (found->swapped > most_swapped)
		most_swapped = found->swapped;
}

/* Of all passes, with -H */
static void print_young(u64 iteration, const char *when, u64 young, u64 passes)
{
	double mean = passes ? (double)young / passes : 0.0;

	print_before(iteration);
	pr_info("found young by a pass, vCPUs %s: %.1f of %lu pages\n", when, mean, nr_pages);
	metric_part("young.", when, iteration, mean, "pages");
}

/* What the agers have done in a phase, added to passes; returns the young pages. */
static u64 add_aging(struct passes *passes)
{
	u64 i, young = 0;

	for (i = 0; i < nr_agers; i++) {
		add_passes(passes, &agers[i].passes);
		young += agers[i].young;
	}
	return young;
}

static void age_idle_memory(u64 iteration)
{
	struct passes passes = {};
	struct found found = {};
	u64 ns;
	u64 i, young = 0;

	refresh(main_map);
	for (i = 0; nr_hot && i < nr_agers; i++) {
		refresh(agers[i].map);
		idle_map_mark(agers[i].map);
	}
	ns = now_ns();
	for (i = 0; i < (nr_hot ? nr_idle_passes : 1); i++) {
		/* So that the pass has something to age, by vCPUs that are idle by then. */
		if (nr_hot) {
			begin(POPULATE);
			end();
		}
		begin(IDLE);
		end();
		young += add_aging(&passes);
	}
	ns = now_ns() - ns;
	if (!nr_hot)
		found = mechanism->found(main_map, 0);

	print_phase(iteration, "age idle memory", "age_idle_time", ns);
	print_passes(iteration, "idle", &passes);
	if (nr_hot)
		print_young(iteration, "idle", young, passes.nr);
	else
		print_found(iteration, "idle", &found);
	idle_young += young;
	add_passes(&idle_passes, &passes);
	free(passes.ns);
}

/* As long as vCPUs run */
static void harvest_while_vcpus_run(u64 iteration)
{
	u64 harvests, harvested = 0, next;

	for (harvests = 0; __atomic_load_n(&vcpus_running, __ATOMIC_SEQ_CST); harvests++) {
		/* To sleep would be until the next tick, on an x86 that is emulated. */
		for (next = now_ns() + harvest_us * 1000; now_ns() < next; )
			sched_yield();
		harvested += harvest();
	}
	print_before(iteration);
	pr_info("dirty log: %lu harvests, %lu pages\n", harvests, harvested);
	metric_of("harvests", iteration, harvests, "count");
	metric_of("harvested", iteration, harvested, "pages");
	total_harvested += harvested;
}

/* What the agers did while the vCPUs ran */
struct aging {
	struct passes passes;
	struct found found;
	u64 stopped;
	u64 young;
};

static void collect_aging(struct aging *aging)
{
	u64 i;

	memset(aging, 0, sizeof(*aging));
	aging->young = add_aging(&aging->passes);
	for (i = 0; i < nr_agers; i++)
		aging->stopped += agers[i].stopped;
	busy_young += aging->young;
	if (nr_hot)
		return;
	if (percent_resident)
		refresh(main_map);
	aging->found = mechanism->found(main_map, 0);
}

static void print_aging(u64 iteration, struct aging *aging)
{
	if (aging->stopped) {
		print_before(iteration);
		pr_info("aging was over after %lu s, vCPUs went on without\n", aging_limit);
	}
	print_passes(iteration, "running", &aging->passes);
	if (nr_hot)
		print_young(iteration, "running", aging->young, aging->passes.nr);
	else
		print_found(iteration, "running", &aging->found);
	add_passes(&busy_passes, &aging->passes);
	free(aging->passes.ns);
}

static void run_vcpus(u64 iteration)
{
	u64 slowest = 0, sum = 0;
	const char *what = "access memory", *name = "access_memory_time";
	enum command command = ACCESS;
	struct aging aging;
	int i;

	if (fault_in) {
		command = FAULT_IN;
		what = "fault memory in";
		name = "fault_memory_time";
	}
	begin(command);
	if (harvest_us)
		harvest_while_vcpus_run(iteration);
	end();
	for (i = 0; i < nr_vcpus; i++) {
		slowest = vcpu_ns[i] > slowest ? vcpu_ns[i] : slowest;
		sum += vcpu_ns[i];
	}
	if (nr_agers)
		collect_aging(&aging);

	print_phase(iteration, what, name, slowest);
	print_before(iteration);
	print_ns("vCPU time, mean ", sum / nr_vcpus);
	print_ns(", slowest ", slowest);
	pr_info("\n");
	metric_of("vcpu_time_mean", iteration, sum / nr_vcpus / 1e9, "s");
	if (nr_agers)
		print_aging(iteration, &aging);
	total_slowest_ns += slowest;
	total_mean_ns += sum / nr_vcpus;
}

/* KVM forgets what it has mapped of the fresh region. */
static void remake_fresh_slots(void)
{
	struct kvm_userspace_memory_region *slot;
	void *hva;

	for (slot = fresh_slots; slot < fresh_slots + MAX_SLOTS && slot->memory_size; slot++) {
		hva = (void *)(uintptr_t)slot->userspace_addr;
		vm_set_user_memory_region(vm, slot->slot, 0, slot->guest_phys_addr, 0, hva);
		vm_set_user_memory_region(vm, slot->slot, 0, slot->guest_phys_addr,
					  slot->memory_size, hva);
	}
}

/* What the vCPUs have faulted in is given back, by the host or by KVM alone. */
static void discard_fresh_memory(u64 iteration)
{
	size_t size = nr_fresh * page_size;
	u64 start = now_ns();

	if (keep_in_host)
		remake_fresh_slots();
	else
		TEST_ASSERT(!madvise(region[FRESH], size, MADV_DONTNEED), "madvise() failed (%s)",
			    strerror(errno));
	start = now_ns() - start;
	if (!keep_in_host)
		memset(recs[FRESH], 0, nr_fresh * sizeof(u32));
	print_phase(iteration, "discard fresh memory", "discard_memory_time", start);

	/* Where the end of a memslot unmaps all memory, the aged region goes, too. */
	if (keep_in_host) {
		begin(POPULATE);
		end();
	}
}

static struct found check(bool flush)
{
	static u64 turn;
	int i;

	/*
	 * As little as possible between now and then: an exit, such as by a tick,
	 * may flush what the vCPU has cached. In a TLB that is emulated it does.
	 */
	refresh(main_map);
	if (flush) {
		/* Before that, as a permission fault may flush, too. */
		begin(WARM_UP);
		end();
	}
	sh->turn = ++turn;
	begin(TOUCH);
	for (i = 0; i < nr_vcpus; i++)
		/* Pairs with the release in guest_touch() */
		while (smp_load_acquire(&sh->vcpu[i].ready) != turn)
			sched_yield();
	mechanism->mark(main_map);
	if (flush)
		flush_vm();
	/* Pairs with the acquire in guest_touch() */
	smp_store_release(&sh->go, turn);
	end();
	return mechanism->found(main_map, turn);
}

static void add_found(struct found *sum, const struct found *found)
{
	sum->touched += found->touched;
	sum->false_idle += found->false_idle;
	sum->young += found->young;
	sum->idle += found->idle;
	sum->false_young += found->false_young;
}

static void print_check(u64 iteration, const char *how, const struct found *found)
{
	print_before(iteration);
	pr_info("false idle %s flush: %lu of %lu pages touched; %lu young, %lu idle, %lu young but not touched\n",
		how, found->false_idle, found->touched, found->young, found->idle,
		found->false_young);
	metric_part("false_idle.", how, iteration, found->false_idle, "pages");
	metric_part("touched.", how, iteration, found->touched, "pages");
	metric_part("young.", how, iteration, found->young, "pages");
	metric_part("idle.", how, iteration, found->idle, "pages");
	metric_part("false_young.", how, iteration, found->false_young, "pages");
}

static void check_idle_memory(u64 iteration)
{
	u64 start = now_ns();
	struct found without, with = {};

	without = check(false);
	if (forced_flush)
		with = check(true);
	start = now_ns() - start;

	print_phase(iteration, "check idle memory", "check_idle_time", start);
	print_check(iteration, "without", &without);
	add_found(&without_flush, &without);
	if (!forced_flush)
		return;
	print_check(iteration, "after", &with);
	add_found(&with_flush, &with);
}

static void verify_region(u64 nr, u64 nr_in_region)
{
	u64 page, i, words = page_size / 8, *p;

	for (page = 0; page < nr_in_region; page++) {
		p = region[nr] + page * page_size;
		TEST_ASSERT(p[0] == value_of(nr, page, recs[nr][page]),
			    "Host: page %lu has 0x%lx, not 0x%lx", page, p[0],
			    value_of(nr, page, recs[nr][page]));
		for (i = 1; i < words; i++)
			TEST_ASSERT(!p[i], "Host: word %lu of page %lu has 0x%lx, not 0", i,
				    page, p[i]);
	}
}

static void verify_memory(void)
{
	u64 pages = nr_pages;

	verify_region(AGED, nr_pages);
	if (keep_in_host) {
		verify_region(FRESH, nr_fresh);
		pages += nr_fresh;
	}
	pr_info("Verified by the host: %lu pages\n", pages);
	metric("pages_verified", pages, "pages");
}

/*
 * New pages wait to be put on LRU lists, where aging finds them, until a CPU has
 * a batch of them (of 31 pages). Give each CPU more than so many others.
 */
static void put_pages_on_lists(void)
{
	size_t size = 64 * page_size, i;
	cpu_set_t all, one;
	char *others;
	int cpu;

	TEST_ASSERT(!sched_getaffinity(0, sizeof(all), &all),
		    "sched_getaffinity() failed (%s)", strerror(errno));
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			continue;
		others = map_memory(size, ANONYMOUS);
		for (i = 0; i < size; i += page_size)
			WRITE_ONCE(others[i], 1);
		munmap(others, size);
	}
	TEST_ASSERT(!sched_setaffinity(0, sizeof(all), &all),
		    "sched_setaffinity() failed (%s)", strerror(errno));
}

static void start_agers(void)
{
	u64 i;

	kpageflags_fd = open_file("/proc/kpageflags", O_RDONLY);
	main_map = new_idle_map(mechanism == PAGE_IDLE_MECHANISM);
	for (i = 0; i < nr_agers; i++) {
		/* Memory for the passes is there before any time is taken. */
		add_pass(&agers[i].passes, 0);
		agers[i].map = main_map;
		if (percent_resident || nr_hot)
			agers[i].map = new_idle_map(mechanism == PAGE_IDLE_MECHANISM);
	}
	add_pass(&idle_passes, 0);
	add_pass(&busy_passes, 0);
	idle_passes.nr = 0;
	busy_passes.nr = 0;
	for (i = 0; i < nr_agers; i++)
		pthread_create(&agers[i].thread, NULL, ager_worker, &agers[i]);
}

static void print_all_aging(void)
{
	print_passes(0, "idle", &idle_passes);
	print_passes(0, "running", &busy_passes);
	if (nr_hot) {
		print_young(0, "idle", idle_young, idle_passes.nr);
		print_young(0, "running", busy_young, busy_passes.nr);
	}
	if (percent_resident)
		return;
	print_check(0, "without", &without_flush);
	if (forced_flush)
		print_check(0, "after", &with_flush);
}

static u64 swapped_out, swapped_in;
static bool swap_is_counted;

static void run_test(void)
{
	pthread_t threads[MAX_STRESS_VCPUS];
	u64 i, start;
	u64 in[2] = {}, out[2] = {};
	u64 threads_in_all = nr_vcpus + 1;

	pagemap_fd = open_file("/proc/self/pagemap", O_RDONLY);
	create_vm();
	threads_in_all += nr_agers;
	pthread_barrier_init(&start_phase, NULL, threads_in_all);
	pthread_barrier_init(&end_phase, NULL, threads_in_all);
	for (i = 0; i < nr_vcpus; i++)
		pthread_create(&threads[i], NULL, vcpu_worker, (void *)i);
	if (nr_agers)
		start_agers();
	if (cgroup_dir[0])
		enter_cgroup();

	read_swap_counts(&in[0], &out[0]);
	begin(WARM_UP);
	end();
	pr_info("guest physical test memory: [0x%lx, 0x%lx)\n", TEST_GPA, end_gpa);
	start = now_ns();
	begin(POPULATE);
	end();
	start = now_ns() - start;
	if (nr_agers)
		put_pages_on_lists();
	print_ns("Populate memory time: ", start);
	pr_info("\n");
	metric("populate_memory_time", start / 1e9, "s");
	if (keep_in_host)
		for (i = 0; i < nr_fresh; i++)
			WRITE_ONCE(*(u64 *)(region[FRESH] + i * page_size), 0);

	for (i = 1; i <= nr_iterations; i++) {
		if (nr_agers)
			age_idle_memory(i);
		run_vcpus(i);
		if (fault_in)
			discard_fresh_memory(i);

		/* Where memory gets evicted, what is idle is not known. */
		if (nr_agers && !percent_resident)
			check_idle_memory(i);
	}

	begin(QUIT);
	for (i = 0; i < nr_vcpus; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < nr_agers; i++)
		pthread_join(agers[i].thread, NULL);
	verify_memory();
	swap_is_counted = read_swap_counts(&in[1], &out[1]);
	kvm_vm_free(vm);

	print_ns("vCPU time over all iterations, mean ", total_mean_ns / nr_iterations);
	print_ns(", slowest ", total_slowest_ns / nr_iterations);
	pr_info("\n");
	if (nr_agers)
		print_all_aging();
	swapped_out = out[1] - out[0];
	swapped_in = in[1] - in[0];
	if (percent_resident && swap_is_counted) {
		pr_info("Pages swapped out: %lu, in: %lu\n", swapped_out, swapped_in);
		metric("swapped_out", swapped_out, "pages");
		metric("swapped_in", swapped_in, "pages");
	} else if (percent_resident) {
		pr_info("Pages swapped out: at least %lu at a time\n", most_swapped);
	}
}

/* Whether aging works, as far as it is known what it has to find */
static void verify_aging(void)
{
	struct found *found = forced_flush ? &with_flush : &without_flush;

	test_result_begin("aging");
	if (!nr_agers) {
		test_result_skip("nothing is aged (-a 0)");
		return;
	}
	if (percent_resident) {
		test_result_skip("what is evicted is not known to be idle (-e)");
		return;
	}
	TEST_ASSERT(!nr_hot || (idle_young && busy_young),
		    "Nothing was young: %lu pages in %lu passes while vCPUs were idle, %lu in %lu while they ran",
		    idle_young, idle_passes.nr, busy_young, busy_passes.nr);
	TEST_ASSERT(found->touched, "%s tracks no page: is there too little memory?",
		    mechanism->name);
	TEST_ASSERT(!with_flush.false_idle,
		    "%lu pages were found idle, although vCPUs accessed them after a flush",
		    with_flush.false_idle);

	/* A few may be moved, or looked at by others. */
	TEST_ASSERT(found->false_young * 10 <= found->young + found->idle,
		    "%lu pages were found young, although nobody accessed them",
		    found->false_young);
	test_result_pass();
}

static void verify_log(void)
{
	test_result_begin("dirty log");
	if (!harvest_us) {
		test_result_skip("it is off (see -l)");
		return;
	}
	TEST_ASSERT(total_harvested, "No page was in the dirty log");
	test_result_pass();
}

static void verify_eviction(void)
{
	test_result_begin("eviction");
	if (!percent_resident) {
		test_result_skip("all memory may stay (see -e)");
		return;
	}
	if (swap_is_counted)
		TEST_ASSERT(swapped_out && swapped_in, "No memory was evicted and came back");
	else
		TEST_ASSERT(most_swapped || !nr_agers, "No memory was evicted");
	test_result_pass();
}

static void help(const char *name)
{
	int i;

	puts("");
	printf("usage: %s [-h] [-v vcpus] [-b bytes] [-s backing] [-m mode]\n"
	       "          [-i iterations] [-r rounds] [-w percent] [-x memslots] [-o offset]\n",
	       name);
	puts("          [-n passes] [-a threads] [-t seconds] [-k mechanism]");
	puts("          [-f]");
	puts("          [-p [-B bytes] [-S] [-H pages]]");
	puts("          [-l microseconds]");
	puts("          [-e percent [-z]]");
	puts("");
	printf(" -v: specify the number of vCPUs (default: %d)\n", nr_vcpus);
	printf(" -b: specify the size of the memory of each vCPU, e.g. 10M\n"
	       "     (default: %luM)\n", bytes_per_vcpu >> 20);
	printf(" -s: specify the type of memory that backs the test regions:\n"
	       "     anonymous or anonymous_thp (default: %s)\n", backing_names[backing]);
	printf(" -m: specify the guest mode ID to test (default: that of the library)\n"
	       "     Guest mode IDs:\n");
	for (i = 0; i < NUM_VM_MODES; i++)
		printf("         %d:    %s%s\n", i, vm_guest_mode_string(i),
		       guest_modes[i].supported ? " (supported)" : "");
	printf(" -i: specify the number of iterations (default: %lu)\n", nr_iterations);
	printf(" -r: specify how many times each vCPU goes over its memory in an\n"
	       "     iteration (default: %lu)\n", nr_rounds);
	printf(" -n: specify the number of passes over memory of vCPUs that are idle,\n"
	       "     in an iteration (default: %lu)\n", nr_idle_passes);
	printf(" -w: specify the percentage of accesses that are writes (default: %lu)\n",
	       percent_writes);
	printf(" -p: the vCPUs fault other memory in while their memory is aged. It is\n"
	       "     given back in each iteration.\n");
	printf(" -B: specify the size of that memory, for each vCPU (default: as -b)\n");
	printf(" -S: the host keeps it, and only the memslots go and come back: what the\n"
	       "     vCPUs fault in is in the host's page tables already, so that faults\n"
	       "     and aging do not meet at the host's LRU lists. (Not in the\n"
	       "     first iteration, which activates the pages.)\n");
	printf(" -H: specify how many pages of the memory that is aged they access after each\n"
	       "     page that they fault in. All of it is accessed before each pass over\n"
	       "     memory of idle vCPUs, too, and a pass sees which pages are idle and\n"
	       "     then marks all. If no page is young, that is a failure. For page_idle,\n"
	       "     without -e.\n");
	printf(" -l: dirty logging is on for the memory that is aged. Specify how long to wait\n"
	       "     before each harvest, while the vCPUs run.\n");
	printf(" -a: specify the number of threads that age (default: %lu). 0 is for\n"
	       "     what vCPUs take without: nothing is checked but memory.\n", nr_agers);
	printf(" -t: specify for how many seconds they do so at most, in a phase\n"
	       "     (default: %lu)\n", aging_limit);
	printf(" -k: specify what ages: page_idle, or lru_gen (MGLRU), which takes one\n"
	       "     thread (default: lru_gen if the kernel has it on)\n");
	printf(" -f: do not check what is idle after a flush of all TLBs, with which a\n"
	       "     page found idle although it was accessed is a failure\n");
	printf(" -x: specify the number of memslots of a region (default: %lu)\n", nr_slots);
	printf(" -o: specify the offset of memslots from an address where there can be\n"
	       "     blocks, e.g. 4k (default: 0)\n");
	printf(" -e: evict memory: this percentage of it may be resident, by a memory\n"
	       "     cgroup. Without swap (or -z) that is an error.\n");
	printf(" -z: set up swap on a zram device of its own\n");
	puts("");
}

static void parse_mechanism(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(mechanisms); i++)
		if (!strcmp(name, mechanisms[i].name))
			mechanism = &mechanisms[i];
	if (!mechanism)
		INVALID("Unknown mechanism '%s', see -h", name);
}

/* Skips the test if what it needs is not there. */
static void choose_mechanism(void)
{
	const char *missing;

	if (!mechanism && access(PAGE_IDLE_BITMAP, F_OK) && access(LRU_GEN_SYSFS, F_OK))
		SKIP("the kernel has neither " PAGE_IDLE_BITMAP " (CONFIG_IDLE_PAGE_TRACKING) nor "
		     LRU_GEN_SYSFS " (CONFIG_LRU_GEN)");
	if (!mechanism && !nr_hot && nr_agers == 1 && !lru_gen_missing())
		mechanism = LRU_GEN_MECHANISM;
	if (!mechanism)
		mechanism = PAGE_IDLE_MECHANISM;
	missing = mechanism->missing();
	if (missing)
		SKIP("%s: %s", mechanism->name, missing);
	if (nr_agers > mechanism->max_agers)
		INVALID("%s takes %lu threads at most", mechanism->name,
			mechanism->max_agers);
}

/*
 * Where the test is to be in a memory cgroup, go on in a child, and clean up when
 * it is gone.
 */
static void run_in_cgroup(void)
{
	bool wanted = percent_resident;

	cleaner = getpid();
	atexit(clean_up);
	if (percent_resident &&
	    (nr_pages + nr_fresh) * page_size * (100 - percent_resident) / 100 <= cgroup_slack())
		INVALID("-e: too little memory to evict any of it (see -b, -v)");
	wanted |= nr_agers && mechanism == LRU_GEN_MECHANISM;
	if (!wanted)
		return;
	block_signals(SIG_BLOCK);
	make_cgroup();
	if (percent_resident)
		make_swap();
	run_in_child();
}

int main(int argc, char *argv[])
{
	u64 guest_page_size;
	int opt;

	guest_modes_append_default();
	mode = VM_MODE_DEFAULT;

	while ((opt = getopt(argc, argv, "hv:b:B:s:m:i:r:n:w:pSH:l:a:t:k:fx:o:e:z")) != -1) {
		switch (opt) {
		case 'v':
			nr_vcpus = parse_number(optarg, 1, MAX_STRESS_VCPUS);
			break;
		case 'b':
			bytes_per_vcpu = parse_size(optarg);
			break;
		case 'B':
			fresh_per_vcpu = parse_size(optarg);
			break;
		case 's':
			backing = parse_name(optarg, backing_names, NR_BACKINGS);
			break;
		case 'm':
			mode = parse_number(optarg, 0, NUM_VM_MODES - 1);
			break;
		case 'i':
			nr_iterations = parse_number(optarg, 1, 1UL << 20);
			break;
		case 'r':
			nr_rounds = parse_number(optarg, 1, 1UL << 30);
			break;
		case 'n':
			nr_idle_passes = parse_number(optarg, 1, MAX_PASSES);
			break;
		case 'w':
			percent_writes = parse_number(optarg, 0, 100);
			break;
		case 'p':
			fault_in = true;
			break;
		case 'S':
			keep_in_host = true;
			break;
		case 'H':
			nr_hot = parse_number(optarg, 1, 1UL << 20);
			break;
		case 'l':
			harvest_us = parse_number(optarg, 1, 1000000);
			break;
		case 'a':
			nr_agers = parse_number(optarg, 0, MAX_AGERS);
			break;
		case 't':
			aging_limit = parse_number(optarg, 1, 1UL << 30);
			break;
		case 'k':
			parse_mechanism(optarg);
			break;
		case 'f':
			forced_flush = false;
			break;
		case 'x':
			nr_slots = parse_number(optarg, 1, MAX_SLOTS);
			break;
		case 'o':
			gpa_offset = parse_size(optarg);
			break;
		case 'e':
			percent_resident = parse_number(optarg, 1, 99);
			break;
		case 'z':
			own_zram = true;
			break;
		case 'h':
		default:
			help(argv[0]);
			exit(opt == 'h' ? 0 : 1);
		}
	}
	if ((keep_in_host || nr_hot) && !fault_in)
		INVALID("-S and -H are for -p");
	if (nr_hot && (percent_resident || mechanism == LRU_GEN_MECHANISM))
		INVALID("-H is for page_idle, without -e");
	if (own_zram && !percent_resident)
		INVALID("-z is for -e");

	/* A line is one write, so that nobody sees a part of it. */
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	page_size = getpagesize();
	if (!bytes_per_vcpu || bytes_per_vcpu % page_size)
		INVALID("The memory of a vCPU (-b) must be a multiple of %lu bytes", page_size);
	nr_pages = nr_vcpus * bytes_per_vcpu / page_size;
	if (nr_pages >= 1UL << 24)
		INVALID("Too much memory (-b, -v)");
	if (!fault_in)
		fresh_per_vcpu = 0;
	else if (!fresh_per_vcpu)
		fresh_per_vcpu = bytes_per_vcpu;
	if (fresh_per_vcpu % page_size)
		INVALID("The memory of a vCPU (-B) must be a multiple of %lu bytes", page_size);
	nr_fresh = nr_vcpus * fresh_per_vcpu / page_size;
	if (nr_fresh >= 1UL << 24)
		INVALID("Too much memory (-B, -v)");

	guest_page_size = vm_guest_mode_params[mode].page_size;
	if (bytes_per_vcpu % guest_page_size || fresh_per_vcpu % guest_page_size ||
	    gpa_offset % guest_page_size ||
	    gpa_offset % page_size)
		INVALID("Sizes and offset (-b, -B, -o) must be multiples of the page size");
	if (access("/dev/kvm", R_OK | W_OK))
		SKIP("/dev/kvm cannot be opened (%s)", strerror(errno));
	if (geteuid())
		SKIP("must be root, to age memory");
	if (backing == ANONYMOUS_THP && thp_missing())
		SKIP("%s", thp_missing());
	if (!guest_modes[mode].supported)
		SKIP("guest mode %d (%s) is not supported", mode, vm_guest_mode_string(mode));
	if (nr_agers)
		choose_mechanism();

	run_in_cgroup();
	kvm_keep_vm();

	test_result_plan(NR_RESULTS);
	pr_info("Test iterations: %lu\n", nr_iterations);
	pr_info("Testing guest mode: %s\n", vm_guest_mode_string(mode));
	pr_info("%d vCPUs, %lu pages of %s in %lu memslots", nr_vcpus, nr_pages,
		backing_names[backing], nr_slots);
	pr_info(", aged by %lu threads (%s)", nr_agers, nr_agers ? mechanism->name : "none");
	pr_info(", %lu faulted in meanwhile", nr_fresh);
	pr_info("\n");
	test_result_begin("memory");
	run_test();
	test_result_pass();
	verify_aging();
	verify_log();
	verify_eviction();
	return 0;
}
