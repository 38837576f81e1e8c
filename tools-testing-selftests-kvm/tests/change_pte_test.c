// SPDX-License-Identifier: GPL-2.0
/*
 * Test of how KVM follows the primary MMU by the change_pte MMU notifier
 *
 * First, count: KSM merges a VM's memory, and the vCPUs read all of it, and read
 * it again, and then write to it. What the first pass has more exits than the
 * second one it has for faults: none if KVM kept what was merged mapped. Then they
 * read it while it is merged, and as long again when it has been.
 *
 * Then, storm: vCPUs read and write, by two memslots at once, what KSM merges and
 * what is unmerged, copied on write by the host, discarded, migrated, aged and
 * write-protected for the dirty log, while one of the memslots is moved.
 *
 * What is verified
 *
 * A few words of each page name the group of pages that it belongs to, which all
 * have the same contents, and a generation. The group's owner, a vCPU or a host
 * thread, writes generations that go up by one. It records which one it starts to
 * write to a page, and which one is done. A reader of the page finds no older
 * generation than was done before, and none that was not started after. So a
 * vCPU that reads or writes a page that has been replaced is found, by itself
 * or by others.
 *
 * A page that the host discards is zero until its owner has written it anew; its
 * sequence number is odd meanwhile. Anybody may add zero to a word, atomically:
 * a write that breaks the sharing and changes nothing.
 *
 * It uses KSM for itself, and has KSM forget all that it has merged.
 */

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <asm/barrier.h>
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/kernel.h>

#include "compat.h"
#include "host_file.h"
#include "host_mm.h"
#include "metric.h"
#include "stress_helper.h"
#include "stress_util.h"
#include "test_result.h"

/* The size of a huge page with 4K pages */
#define BLOCK_SIZE		(2UL << 20)

#define MAIN_SLOT		1
#define ALIAS_SLOT		2
#define SHARED_SLOT		3

/*
 * The same guest virtual as guest physical addresses, far from the test's code
 * and from what ucall() uses.
 */
#define MAIN_GPA		(4UL << 30)
#define ALIAS_GPA		(8UL << 30)
#define SHARED_GPA		(12UL << 30)

/* Where the second memslot can be: the first two overlap. */
#define NR_PLACES		3

#define MAX_STORM_VCPUS		64

/* Words of a page that are written */
#define WORDS_PER_PAGE		8

/* Seconds without progress which are a failure, even in a debug kernel */
#define HANG_SECONDS		100

/* Seconds for KSM to merge all of the memory while it is read */
#define MERGE_SECONDS		300

/* Stages of GUEST_SYNC() */
#define STAGE_DONE		1
#define STAGE_FAILED		2

enum command {
	READ_ALL,
	READ_ON,
	TOUCH_ALL,
	WRITE_GROUPS,
	STORM,
};

/* What the test has results of */
enum result {
	RESULT_MERGED,
	RESULT_STORM,
	RESULT_REPLACED,
	NR_RESULTS,
};

#define VALUE_MARK		BIT(63)
#define VALUE_GEN(value)	((u32)(value) & 0xfffffff)

/* Of a page: what is being, and what has been written to it */
struct record {
	u32 started;
	u32 done;
	u32 seq;
	u32 pad;
};

struct failure {
	u64 page;
	u64 word;
	u64 value;
	u64 gva;
	struct record before;
	struct record after;
};

/* Host and guest share this, by memory that nothing happens to. */
struct shared {
	/* Constant */
	u64 seed;
	u64 nr_vcpus;
	u64 nr_pages;
	u64 group_pages;
	u64 page_shift;
	u64 records_gva;

	/* Written by the host */
	u32 command;
	u32 stop;
	u32 alias_open;
	u32 hot_page;
	u64 alias_gva;

	/* Written by vCPUs */
	struct {
		u64 accesses;
		u32 in_alias;
		u32 pad[13];
	} vcpu[MAX_STORM_VCPUS];
	struct failure failure[MAX_STORM_VCPUS];
};

static void full_barrier(void)
{
	/* Records and words are looked at and written in the order as below. */
	smp_mb();
}

static u64 value_of(struct shared *sh, u64 page, u64 word, u32 gen)
{
	return VALUE_MARK | (page / sh->group_pages) << 40 | word << 28 | gen;
}

/* Where a word of a page is, in bytes from the start of the memory */
static u64 word_offset(struct shared *sh, u64 page, u64 word)
{
	return (page << sh->page_shift) + (word << (sh->page_shift - 3));
}

/* The owner of a group: a vCPU, or the host, which comes after the last of them */
static u64 owner_of(struct shared *sh, u64 group)
{
	return group % (sh->nr_vcpus + 1);
}

/*
 * Read a word and verify it. Its records are the caller's, for what he has to say
 * if it returns false.
 */
static bool verify_word(struct shared *sh, struct record *rec, void *base,
			u64 page, u64 word, struct failure *f)
{
	u64 value;
	u32 gen;

	f->before.seq = READ_ONCE(rec->seq);
	f->before.done = READ_ONCE(rec->done);
	full_barrier();
	value = READ_ONCE(*(u64 *)(base + word_offset(sh, page, word)));
	full_barrier();
	f->after.started = READ_ONCE(rec->started);
	f->after.seq = READ_ONCE(rec->seq);

	gen = VALUE_GEN(value);
	if (!value) {
		if (!f->before.done || (f->before.seq & 1) ||
		    f->before.seq != f->after.seq)
			return true;
	} else if (value == value_of(sh, page, word, gen) &&
		   gen >= f->before.done && gen <= f->after.started) {
		return true;
	}

	f->page = page;
	f->word = word;
	f->value = value;
	f->gva = (u64)base;
	return false;
}

/* By the owner of the page's group only */
static void write_page(struct shared *sh, struct record *rec, void *base,
		       u64 page, u32 gen)
{
	u64 word;

	WRITE_ONCE(rec->started, gen);
	full_barrier();
	for (word = 0; word < WORDS_PER_PAGE; word++)
		WRITE_ONCE(*(u64 *)(base + word_offset(sh, page, word)),
			   value_of(sh, page, word, gen));
	full_barrier();
	WRITE_ONCE(rec->done, gen);
}

/* All pages of a group come to be the same. By its owner only */
static void write_group(struct shared *sh, struct record *recs, void *base,
			u64 group)
{
	u64 first = group * sh->group_pages, i;
	u32 gen = 0;

	for (i = first; i < first + sh->group_pages; i++)
		if (recs[i].started > gen)
			gen = recs[i].started;
	for (i = first; i < first + sh->group_pages; i++)
		write_page(sh, &recs[i], base, i, gen + 1);
}

/* One page is not like the others any more, and it shows if they are it still. */
static void write_one_of_group(struct shared *sh, struct record *recs, void *base,
			       u64 group, u64 r)
{
	u64 page = group * sh->group_pages + r % sh->group_pages;

	write_page(sh, &recs[page], base, page, recs[page].started + 1);
}

/* A write that changes nothing, whatever is written at the same time */
static void touch_page(struct shared *sh, void *base, u64 page, u64 word)
{
	u64 *p = base + word_offset(sh, page, word);
#if defined(__aarch64__)
	u64 value;
	u32 failed;

	asm volatile("1: ldxr %0, %2\n"
		     "stxr %w1, %0, %2\n"
		     "cbnz %w1, 1b"
		     : "=&r" (value), "=&r" (failed), "+Q" (*p) : : "memory");
#elif defined(__x86_64__)
	asm volatile("lock addq $0, %0" : "+m" (*p) : : "memory");
#else
	__atomic_fetch_add(p, 0, __ATOMIC_SEQ_CST);
#endif
}

/*
 * Guest code
 */

static struct record *guest_record(struct shared *sh, u64 page)
{
	return (struct record *)sh->records_gva + page;
}

static void guest_verify(struct shared *sh, u64 id, void *base, u64 page,
			 u64 word)
{
	if (!verify_word(sh, guest_record(sh, page), base, page, word,
			 &sh->failure[id]))
		GUEST_SYNC(STAGE_FAILED);
}

static void guest_storm(struct shared *sh, u64 id, u64 *state)
{
	u64 nr_groups = sh->nr_pages / sh->group_pages;
	struct record *recs = guest_record(sh, 0);
	u64 r, page, n, group;
	void *base;

	while (!READ_ONCE(sh->stop)) {
		r = next_random(state);
		page = (r >> 20) % sh->nr_pages;
		/* Where the host is about to write */
		if ((r >> 6 & 3) == 3)
			page = READ_ONCE(sh->hot_page) + page % sh->group_pages;
		WRITE_ONCE(sh->vcpu[id].accesses, sh->vcpu[id].accesses + 1);

		base = (void *)MAIN_GPA;
		if (r & 1) {
			WRITE_ONCE(sh->vcpu[id].in_alias, 1);
			full_barrier();
			if (READ_ONCE(sh->alias_open))
				base = (void *)READ_ONCE(sh->alias_gva);
		}

		/* Few writes, or there is nothing to merge */
		switch (r >> 1 & 31) {
		case 0:
			touch_page(sh, base, page, r >> 8 & (WORDS_PER_PAGE - 1));
			break;
		case 1:
			/* Again and again, with a translation that is cached */
			group = (r >> 20) % nr_groups;
			group -= owner_of(sh, group);
			group += id;
			for (n = r >> 10 & 15; group < nr_groups && n; n--)
				write_one_of_group(sh, recs, base, group, r >> 40);
			if (group < nr_groups && (r >> 16 & 3))
				write_group(sh, recs, base, group);
			break;
		default:
			for (n = r >> 10 & 15; n; n--)
				guest_verify(sh, id, base, page,
					     n & (WORDS_PER_PAGE - 1));
			break;
		}
		full_barrier();
		WRITE_ONCE(sh->vcpu[id].in_alias, 0);
	}
}

static void guest_code(u64 id)
{
	struct shared *sh = (struct shared *)SHARED_GPA;
	u64 state = random_seeded(sh->seed + id);
	u64 nr_groups = sh->nr_pages / sh->group_pages;
	void *base = (void *)MAIN_GPA;
	u64 i;

	for (;;) {
		switch (READ_ONCE(sh->command)) {
		case READ_ON:
			for (i = id; !READ_ONCE(sh->stop); i = (i + sh->nr_vcpus) % sh->nr_pages)
				guest_verify(sh, id, base, i, i & (WORDS_PER_PAGE - 1));
			break;
		case READ_ALL:
			for (i = id; i < sh->nr_pages; i += sh->nr_vcpus)
				guest_verify(sh, id, base, i, i & (WORDS_PER_PAGE - 1));
			break;
		case TOUCH_ALL:
			for (i = id; i < sh->nr_pages; i += sh->nr_vcpus)
				touch_page(sh, base, i, 0);
			break;
		case WRITE_GROUPS:
			for (i = id; i < nr_groups; i += sh->nr_vcpus + 1)
				write_group(sh, guest_record(sh, 0), base, i);
			break;
		case STORM:
			guest_storm(sh, id, &state);
			break;
		}
		GUEST_SYNC(STAGE_DONE);
	}
}

/*
 * Host code
 */

/* Options */
static int nr_vcpus = 2;
static u64 mem_size = 2UL << 20;
static u64 group_pages = 4;
static u64 nr_iterations = 1;
static u64 storm_seconds = 3;
static bool thp, must_follow, stopped_only;
static u64 seed;

static u64 page_size, page_shift, nr_pages, nr_groups;
static u64 nr_blocks;
static u64 block_pages;
static void *mem;
static struct kvm_vm *vm;
static struct kvm_vcpu *vcpus[MAX_STORM_VCPUS];
static struct shared *sh;
static struct record *records;
static u64 place_gpa[NR_PLACES];
static unsigned long *bmap;
static pthread_barrier_t start_barrier, end_barrier;
static pthread_t vcpu_threads[MAX_STORM_VCPUS];
static u64 vcpu_ns[MAX_STORM_VCPUS];
static bool quit;
static u64 nr_verified;
static pid_t main_process;

/* For changes of memslots; vCPUs do not take it. */
static pthread_mutex_t slot_lock = PTHREAD_MUTEX_INITIALIZER;

static u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	TEST_ASSERT(!clock_gettime(clock, &ts), "clock_gettime() failed (%s)",
		    strerror(errno));
	return timespec_to_ns(ts);
}

static u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* What the kernel counts for this VM, if it does */

#define NO_COUNTER	(~0UL)

static u64 read_counter(const char *name)
{
	u64 value;

	return vm_read_counter(vm, name, &value) ? value : NO_COUNTER;
}

/* Faults that have mapped something, where that is counted apart */
static u64 read_faults(void)
{
	u64 faults = read_counter("stage2_faults_parallel");

	return faults != NO_COUNTER ? faults : read_counter("pf_fixed");
}

static void fail_word(const char *who, struct failure *f)
{
	TEST_FAIL("%s: page %lu (block %lu, group %lu, owner %lu), word %lu at 0x%lx\n"
		  "  is 0x%lx: generation %u\n"
		  "  done before it was read: %u, started after: %u, discarded: %u, %u",
		  who, f->page, f->page / block_pages, f->page / group_pages,
		  owner_of(sh, f->page / group_pages), f->word, f->gva, f->value,
		  VALUE_GEN(f->value), f->before.done, f->after.started,
		  f->before.seq, f->after.seq);
}

static void verify_memory(void)
{
	struct failure f = {};
	u64 page, word;

	for (page = 0; page < nr_pages; page++)
		for (word = 0; word < WORDS_PER_PAGE; word++)
			if (!verify_word(sh, &records[page], mem, page, word, &f))
				fail_word("Host", &f);
	nr_verified += nr_pages;
}

/* vCPUs */

static void *vcpu_worker(void *data)
{
	struct kvm_run *run;
	int id = (long)data;
	struct ucall uc;
	u64 start;
	char who[16];

	run = vcpus[id]->run;
	snprintf(who, sizeof(who), "vCPU %d", id);

	for (;;) {
		pthread_barrier_wait(&start_barrier);
		if (READ_ONCE(quit))
			return NULL;
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		vcpu_run(vcpus[id]);
		TEST_ASSERT(get_ucall(vcpus[id], &uc) == UCALL_SYNC,
			    "%s: unexpected exit, exit_reason=%s", who,
			    exit_reason_str(run->exit_reason));
		if (uc.args[1] == STAGE_FAILED)
			fail_word(who, &sh->failure[id]);
		vcpu_ns[id] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		pthread_barrier_wait(&end_barrier);
	}
}

static void begin(enum command command)
{
	WRITE_ONCE(sh->command, command);
	WRITE_ONCE(sh->stop, 0);
	pthread_barrier_wait(&start_barrier);
}

/* The time that the vCPUs took, in ns */
static u64 end(void)
{
	u64 sum = 0;
	int i;

	pthread_barrier_wait(&end_barrier);
	for (i = 0; i < nr_vcpus; i++)
		sum += vcpu_ns[i];
	return sum;
}

struct pass {
	u64 exits;
	u64 faults;
	u64 ns;
};

static struct pass run_pass(enum command command)
{
	struct pass before, after;

	before.exits = read_counter("exits");
	before.faults = read_faults();
	begin(command);
	after.ns = end();
	after.exits = read_counter("exits") - before.exits;
	after.faults = read_faults() - before.faults;
	return after;
}

/* KSM */

static clockid_t ksmd_clock;

static bool find_ksmd(void)
{
	struct dirent *entry;
	char path[300], text[32];
	bool found = false;
	DIR *dir = opendir("/proc");

	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		found = atoi(entry->d_name) && host_read_text(path, text, sizeof(text)) &&
			!strcmp(text, "ksmd") &&
			!clock_getcpuclockid(atoi(entry->d_name), &ksmd_clock);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Of all the host: those of others would count as this VM's. */
static u64 pages_merged(void)
{
	u64 shared = 0, sharing = 0;

	TEST_ASSERT(host_read_number(KSM_DIR "/pages_shared", &shared) &&
		    host_read_number(KSM_DIR "/pages_sharing", &sharing),
		    "Can't read " KSM_DIR);
	return shared + sharing;
}

/* Returns why KSM cannot be had, or NULL. */
static const char *setup_ksm(void)
{
	char text[32];

	if (!host_read_text(KSM_DIR "/run", text, sizeof(text)))
		return "No KSM in this kernel";
	if (strcmp(text, "0"))
		return "KSM is in use, its /run is not 0";
	snprintf(text, sizeof(text), "%lu", 4 * nr_pages);
	return set_until_exit(KSM_DIR "/run", "0") &&
	       set_until_exit(KSM_DIR "/sleep_millisecs", "10") &&
	       set_until_exit(KSM_DIR "/pages_to_scan", text) && find_ksmd() ? NULL : "Not root";
}

static void run_ksm(bool run)
{
	TEST_ASSERT(host_write_text(KSM_DIR "/run", run ? "1" : "0"),
		    "Can't write to " KSM_DIR "/run");
}

static void merge(void *start, size_t size)
{
	TEST_ASSERT(!madvise(start, size, MADV_MERGEABLE),
		    "madvise(MADV_MERGEABLE) failed (%s)", strerror(errno));
}

static void unmerge(void *start, size_t size)
{
	TEST_ASSERT(!madvise(start, size, MADV_UNMERGEABLE),
		    "madvise(MADV_UNMERGEABLE) failed (%s)", strerror(errno));
}

/* Counting */

static u64 total_read_faults, total_read_pages;

/* What @pass has more than the other one, which did the same without any faults */
static double print_pass(u64 iteration, const char *what, const char *name, struct pass *pass,
			 struct pass *other)
{
	double ns = (double)pass->ns - (double)other->ns;
	double faults = (double)pass->faults - (double)other->faults;
	double exits = (double)pass->exits - (double)other->exits;

	pr_info("Iteration %lu: %s: %.0f exits (%.3f a page), %.3f ms of vCPUs", iteration,
		what, exits, exits / nr_pages, ns / 1e6);
	if (read_faults() != NO_COUNTER)
		pr_info(", %.0f faults by KVM's count", faults);
	pr_info("\n");
	metric_part(name, "_exits", iteration, exits, "count");
	metric_part(name, "_exits_per_page", iteration, exits / nr_pages, "x");
	metric_part(name, "_vcpu_time", iteration, ns / 1e9, "s");
	if (read_faults() != NO_COUNTER)
		metric_part(name, "_faults", iteration, faults, "count");
	return exits > 0 ? exits : 0;
}

/* Each page of a group the same, all mapped, and none of them merged */
static void make_pages(void)
{
	u64 i;

	unmerge(mem, mem_size);
	/* Have KSM forget them, and count anew. */
	TEST_ASSERT(host_write_text(KSM_DIR "/run", "2"), "Can't write to " KSM_DIR "/run");

	begin(WRITE_GROUPS);
	end();
	for (i = nr_vcpus; i < nr_groups; i += nr_vcpus + 1)
		write_group(sh, records, mem, i);
	run_pass(TOUCH_ALL);
	merge(mem, mem_size);
}

/* Returns how long it took, in ns. */
static u64 merge_pages(u64 iteration, const char *what, const char *suffix)
{
	u64 merged, last = 0, start = now_ns(), took;
	u64 ksmd = clock_ns(ksmd_clock);
	u64 flushes = read_counter("remote_tlb_flush");

	run_ksm(true);
	do {
		usleep(20000);
		merged = pages_merged();
		TEST_ASSERT(now_ns() - start < MERGE_SECONDS * 1000000000UL,
			    "KSM merges no more than %lu of %lu pages", merged, nr_pages);
		/* A few may be in use by others. */
		if (merged != last)
			last = merged;
		else if (merged > nr_pages - nr_pages / 50)
			break;
	} while (merged < nr_pages);
	run_ksm(false);
	took = now_ns() - start;
	ksmd = clock_ns(ksmd_clock) - ksmd;
	pr_info("Iteration %lu: %lu of %lu pages merged%s in %.3f s, %.3f ms of ksmd",
		iteration, merged, nr_pages, what, took / 1e9, ksmd / 1e6);
	if (flushes != NO_COUNTER) {
		flushes = read_counter("remote_tlb_flush") - flushes;
		pr_info(", %lu remote TLB flushes", flushes);
	}
	pr_info("\n");
	metric_part("pages_merged", suffix, iteration, merged, "pages");
	metric_part("merge_time", suffix, iteration, took / 1e9, "s");
	metric_part("merge_ksmd_time", suffix, iteration, ksmd / 1e9, "s");
	if (flushes != NO_COUNTER)
		metric_part("merge_tlb_flushes", suffix, iteration, flushes, "count");
	return took;
}

/* The vCPUs read all the time, while ... */
static struct pass begin_reading(void)
{
	struct pass pass = {
		.exits = read_counter("exits"),
		.faults = read_faults(),
	};

	begin(READ_ON);
	return pass;
}

static void end_reading(struct pass *pass)
{
	WRITE_ONCE(sh->stop, 1);
	pass->ns = end();
	pass->exits = read_counter("exits") - pass->exits;
	pass->faults = read_faults() - pass->faults;
}

static void count_faults(u64 iteration)
{
	struct pass first, second;
	u64 took;

	make_pages();
	merge_pages(iteration, "", "");
	first = run_pass(READ_ALL);
	second = run_pass(READ_ALL);
	total_read_faults += print_pass(iteration, "read merged pages", "read_merged", &first, &second);
	total_read_pages += nr_pages;
	first = run_pass(TOUCH_ALL);
	second = run_pass(TOUCH_ALL);
	print_pass(iteration, "write to merged pages", "write_merged", &first, &second);
	if (stopped_only) {
		verify_memory();
		return;
	}

	make_pages();
	first = begin_reading();
	took = merge_pages(iteration, " while read", "_while_read");
	end_reading(&first);
	second = begin_reading();
	usleep(took / 1000);
	end_reading(&second);
	print_pass(iteration, "read while merged", "read_while_merged", &first, &second);
	verify_memory();
}

/* Helpers of the storm: threads of the host */

/* In every other block the pages stay as they are, and huge if they can. */
static u64 random_block(struct stress_helper *helper)
{
	u64 r = helper_random(helper);
	u64 block = (r >> 8) % nr_blocks;

	return nr_blocks > 1 && (r & 7) ? block & ~1UL : block;
}

static u64 ksm_last;

/* Its operations are those of ksmd: pages that were merged, at least. */
static void op_ksm(struct stress_helper *helper)
{
	u64 merged = pages_merged(), block;

	if (merged > ksm_last)
		helper->count += merged - ksm_last;
	ksm_last = merged;

	/* KSM wants to see pages unchanged before it merges them. */
	if (helper_random(helper) & 31)
		return;

	/* Give each user of a merged page a copy. */
	block = random_block(helper);
	unmerge(mem + block * BLOCK_SIZE, BLOCK_SIZE);
	if (!(block & 1) || nr_blocks == 1)
		merge(mem + block * BLOCK_SIZE, BLOCK_SIZE);
}

/* A group that is the host's */
static u64 host_group(struct stress_helper *helper)
{
	u64 r = helper_random(helper) % nr_groups;

	r += nr_vcpus - owner_of(sh, r);
	return r < nr_groups ? r : nr_vcpus;
}

static void discard_group(u64 group)
{
	u64 page = group * group_pages, i;

	for (i = page; i < page + group_pages; i++)
		WRITE_ONCE(records[i].seq, records[i].seq + 1);
	full_barrier();
	TEST_ASSERT(!madvise(mem + page * page_size, group_pages * page_size, MADV_DONTNEED),
		    "madvise(MADV_DONTNEED) failed (%s)", strerror(errno));
	write_group(sh, records, mem, group);
	full_barrier();
	for (i = page; i < page + group_pages; i++)
		WRITE_ONCE(records[i].seq, records[i].seq + 1);
}

/* One thread is the host as an owner of groups. */
static void op_write(struct stress_helper *helper)
{
	u64 r = helper_random(helper);
	u64 group = host_group(helper);
	int i, n = 1 + (r >> 8) % 8;

	for (i = 0; i < n; i++) {
		WRITE_ONCE(sh->hot_page, group * group_pages);
		if (r & 4)
			helper_pause(helper, 200);
		if (r & 1)
			write_group(sh, records, mem, group);
		else if (r & 2)
			write_one_of_group(sh, records, mem, group, r >> 16);
		else
			discard_group(group);
		r = helper_random(helper);
		group = host_group(helper);
	}
	helper->count += n;
}

/*
 * All memory is shared with a process that does nothing: each writer gets
 * a copy: vCPUs, KSM and the other helpers.
 */
static void op_fork(struct stress_helper *helper)
{
	int status;
	pid_t pid = fork();

	TEST_ASSERT(pid >= 0, "fork() failed (%s)", strerror(errno));
	if (!pid) {
		/* It does not outlive a test that fails. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == main_process)
			pause();
		_exit(0);
	}
	helper_pause(helper, helper->pause_us);
	kill(pid, SIGKILL);
	TEST_ASSERT(waitpid(pid, &status, 0) == pid, "waitpid() failed (%s)",
		    strerror(errno));
	helper->count++;
}

/* The memslot that is moved is used only while it is at rest. */
static void op_slots(struct stress_helper *helper)
{
	u64 r = helper_random(helper), start = now_ns();
	int i;

	WRITE_ONCE(sh->alias_open, 0);
	full_barrier();
	for (i = 0; i < nr_vcpus; i++)
		while (READ_ONCE(sh->vcpu[i].in_alias)) {
			TEST_ASSERT(now_ns() - start < HANG_SECONDS * 1000000000UL,
				    "vCPU %d does not get on within %d seconds", i,
				    HANG_SECONDS);
			usleep(10);
		}

	pthread_mutex_lock(&slot_lock);
	if (!(r & 3))
		vm_set_user_memory_region(vm, ALIAS_SLOT, 0, sh->alias_gva, 0, mem);
	sh->alias_gva = place_gpa[(r >> 8) % NR_PLACES];
	vm_set_user_memory_region(vm, ALIAS_SLOT, 0, sh->alias_gva, mem_size, mem);
	pthread_mutex_unlock(&slot_lock);
	full_barrier();
	WRITE_ONCE(sh->alias_open, 1);
	helper->count++;
}

static void op_log(struct stress_helper *helper)
{
	int i, n = 1 + helper_random(helper) % 8;

	pthread_mutex_lock(&slot_lock);
	vm_set_user_memory_region(vm, MAIN_SLOT, KVM_MEM_LOG_DIRTY_PAGES, MAIN_GPA, mem_size, mem);
	pthread_mutex_unlock(&slot_lock);
	for (i = 0; i < n; i++) {
		helper_pause(helper, helper->pause_us);
		kvm_vm_get_dirty_log(vm, MAIN_SLOT, bmap);
		helper->count++;
	}
	if (!(n & 1))
		return;
	pthread_mutex_lock(&slot_lock);
	vm_set_user_memory_region(vm, MAIN_SLOT, 0, MAIN_GPA, mem_size, mem);
	pthread_mutex_unlock(&slot_lock);
}

static void op_migrate(struct stress_helper *helper)
{
	u64 page = helper_random(helper) % nr_pages;

	if (migrate_by_node())
		move_to_node(mem + page * page_size, 1, helper->count & 1);
	else
		compact_memory();
	helper->count++;
}

static const char *setup_age(void)
{
	return page_idle_open() ? NULL : "no idle page tracking in this kernel";
}

static void op_age(struct stress_helper *helper)
{
	u64 first = helper_random(helper) % nr_pages, most = 64;

	helper->count += page_idle_mark_range(mem + first * page_size,
					      min(nr_pages - first, most));
}

static u64 collapse_last;

static const char *setup_collapse(void)
{
	if (!thp)
		return "for huge pages";
	if (!host_read_number(KHUGEPAGED_DIR "/pages_collapsed", &collapse_last) ||
	    !set_until_exit(KHUGEPAGED_DIR "/scan_sleep_millisecs", "50"))
		return "no khugepaged in this kernel";
	return NULL;
}

/* The operations are those of khugepaged. */
static void op_collapse(struct stress_helper *helper)
{
	u64 number = 0;

	host_read_number(KHUGEPAGED_DIR "/pages_collapsed", &number);
	helper->count += number - collapse_last;
	collapse_last = number;
}

static struct stress_helper helpers[] = {
	{
		.name = "ksm", .op = op_ksm, .pause_us = 20000,
		.what = "merges pages, counts them, unmerges blocks",
	},
	{
		.name = "write", .op = op_write, .pause_us = 500,
		.what = "writes to pages of the host's, or discards them",
	},
	{
		.name = "fork", .op = op_fork, .pause_us = 30000,
		.what = "shares all memory with another process for a while",
	},
	{
		.name = "slots", .op = op_slots, .pause_us = 10000,
		.what = "moves the second memslot, deletes it and adds it again",
	},
	{
		.name = "log", .op = op_log, .pause_us = 3000,
		.what = "turns dirty logging on and off, harvests it",
	},
	{
		.name = "migrate", .setup = migrate_setup, .op = op_migrate, .pause_us = 20000,
		.what = "moves pages between nodes, or compacts memory",
	},
	{
		.name = "age", .setup = setup_age, .op = op_age, .pause_us = 2000,
		.what = "clears accessed flags by idle page tracking",
	},
	{
		.name = "collapse", .setup = setup_collapse, .op = op_collapse, .pause_us = 20000,
		.what = "khugepaged, counts the huge pages it made",
	},
};

#define NR_HELPERS	ARRAY_SIZE(helpers)

/* Something was merged in the storm, if that is wanted. */
static bool has_merged(void)
{
	return helpers[0].off || READ_ONCE(helpers[0].count);
}

static const char * const counter_names[] = {
	"change_pte_replaced",
	"change_pte_protected",
	"change_pte_unmapped",
	"change_pte_overlapped",
	"mmu_seq_retries",
	"stage2_faults_parallel",
	"pf_fixed",
	"remote_tlb_flush",
};

static void print_counters(void)
{
	u64 value;
	int i;

	pr_info("KVM:");
	for (i = 0; i < ARRAY_SIZE(counter_names); i++) {
		value = read_counter(counter_names[i]);
		if (value != NO_COUNTER)
			pr_info(" %s %lu", counter_names[i], value);
	}
	pr_info("\n");
	for (i = 0; i < ARRAY_SIZE(counter_names); i++) {
		value = read_counter(counter_names[i]);
		if (value != NO_COUNTER)
			metric_part("storm_kvm_", counter_names[i], 0, value, "count");
	}
}

static bool storming;
static u64 storm_start;

static void print_storm(void)
{
	u64 accesses = 0;
	int i;

	for (i = 0; i < nr_vcpus; i++)
		accesses += READ_ONCE(sh->vcpu[i].accesses);
	pr_info("Storm: %.1f s, %lu accesses by vCPUs, %lu pages verified by the host\n",
		(now_ns() - storm_start) / 1e9, accesses, nr_verified);
	metric("accesses", accesses, "count");
	metric("pages_verified", nr_verified, "pages");
	helpers_print(helpers, NR_HELPERS, "storm_host_");
	print_counters();
}

/* A test that fails exits: say how far it got. */
static void print_storm_of_failure(void)
{
	if (!storming || getpid() != main_process)
		return;
	pr_info("It failed after:\n");
	print_storm();
}

static void storm(void)
{
	u64 state = random_seeded(seed), last, accesses;
	u64 limit = storm_seconds * 1000000000UL;
	int i, id;

	unmerge(mem, mem_size);
	for (i = 0; i < nr_blocks; i += 2)
		merge(mem + i * BLOCK_SIZE, BLOCK_SIZE);
	if (!helpers[0].off)
		run_ksm(true);
	ksm_last = pages_merged();
	nr_verified = 0;
	storm_start = now_ns();
	storming = true;
	begin(STORM);
	helpers_start(helpers, NR_HELPERS, &state);

	while (now_ns() - storm_start < limit ||
	       (!has_merged() && now_ns() - storm_start < limit + HANG_SECONDS * 1000000000UL)) {
		usleep(200000);
		verify_memory();
	}
	TEST_ASSERT(has_merged(), "KSM has merged nothing");

	/* While all goes on, each vCPU does. */
	for (id = 0; id < nr_vcpus; id++) {
		last = READ_ONCE(sh->vcpu[id].accesses);
		for (i = 0; (accesses = READ_ONCE(sh->vcpu[id].accesses)) == last; i++) {
			TEST_ASSERT(i < HANG_SECONDS * 100,
				    "vCPU %d does not get on within %d seconds", id,
				    HANG_SECONDS);
			usleep(10000);
		}
	}

	helpers_stop(helpers, NR_HELPERS, false);
	WRITE_ONCE(sh->stop, 1);
	end();
	run_ksm(false);
	verify_memory();
	storming = false;
	print_storm();
}

/* Setting up */

static void create_vm(void)
{
	u64 pages, shared_size, offset, guest_page_size;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	long i;

	offset = roundup(sizeof(*sh), page_size);
	shared_size = roundup(offset + nr_pages * sizeof(*records), BLOCK_SIZE);
	/* The library adds what is for code, stacks, ucall() and page tables. */
	pages = ((1 + NR_PLACES) * mem_size + shared_size) / MIN_PAGE_SIZE;
	vm = __vm_create_with_vcpus(VM_SHAPE_DEFAULT, nr_vcpus, pages, guest_code, vcpus);
	guest_page_size = vm->page_size;

	/* It is not this memory that is to be copied on write. */
	madvise(addr_gpa2hva(vm, 0), memslot2region(vm, 0)->region.memory_size, MADV_DONTFORK);

	/* fork() does not touch what is shared. */
	sh = reserve_aligned(shared_size, BLOCK_SIZE);
	map_fixed(sh, shared_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	records = (void *)sh + offset;

	mem = reserve_aligned(mem_size, BLOCK_SIZE);
	map_fixed(mem, mem_size, PROT_READ | PROT_WRITE, flags, -1, 0);
	madvise(mem, mem_size, thp ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);

	place_gpa[0] = ALIAS_GPA;
	place_gpa[1] = ALIAS_GPA + BLOCK_SIZE / 2;
	place_gpa[2] = ALIAS_GPA + 2 * mem_size;

	sh->seed = seed;
	sh->nr_vcpus = nr_vcpus;
	sh->nr_pages = nr_pages;
	sh->group_pages = group_pages;
	sh->page_shift = page_shift;
	sh->records_gva = SHARED_GPA + offset;
	sh->alias_gva = place_gpa[0];
	sh->alias_open = 1;
	virt_map(vm, MAIN_GPA, MAIN_GPA, mem_size / guest_page_size);
	virt_map(vm, ALIAS_GPA, ALIAS_GPA, 3 * mem_size / guest_page_size);
	virt_map(vm, SHARED_GPA, SHARED_GPA, shared_size / guest_page_size);
	vm_set_user_memory_region(vm, SHARED_SLOT, 0, SHARED_GPA, shared_size, sh);
	vm_set_user_memory_region(vm, MAIN_SLOT, 0, MAIN_GPA, mem_size, mem);
	vm_set_user_memory_region(vm, ALIAS_SLOT, 0, ALIAS_GPA, mem_size, mem);

	for (i = 0; i < nr_vcpus; i++)
		vcpu_args_set(vcpus[i], 1, i);
}

static void help(char *name, int status)
{
	puts("");
	printf("usage: %s [-h] [-v vcpus] [-b bytes] [-g pages] [-s backing] [-i iterations] [-n]\n"
	       "          [-f]", name);
	printf(" [-t seconds] [-d helper,...] [-o helper,...] [-r seed]");
	puts("\n");
	printf(" -v: specify the number of vCPUs (default: %d)\n", nr_vcpus);
	printf(" -b: specify the size of the memory, a multiple of 2M (default: %luM)\n",
	       mem_size >> 20);
	printf(" -g: specify how many pages have the same contents (default: %lu)\n",
	       group_pages);
	printf(" -s: specify what backs the memory: anonymous (default) or anonymous_thp\n");
	printf(" -i: specify how many times KSM merges all of the memory, and faults are\n"
	       "     counted (default: %lu, as with -n)\n", nr_iterations);
	printf(" -n: do not merge while the vCPUs read, which takes long where a flush of their\n"
	       "     TLBs does\n");
	printf(" -f: fail if vCPUs fault on more than 2 of 100 merged pages that they read,\n"
	       "     or none of all pages is replaced; skip if KVM does not count the latter\n");
	printf(" -t: specify how long the storm goes on after that (default: %lu s)\n",
	       storm_seconds);
	printf(" -d: do without these helpers\n");
	printf(" -o: have these helpers only\n");
	helpers_list(helpers, NR_HELPERS);
	printf(" -r: specify the seed for random numbers, not 0 (default: by the time)\n");
	puts("");
	exit(status);
}

/* How many faults there were on what was merged */
static void test_merged(void)
{
	long i;

	test_result_begin("merged pages");
	if (!nr_iterations) {
		test_result_skip("none are counted (-i 0)");
		return;
	}
	for (i = 1; i <= nr_iterations; i++)
		count_faults(i);
	pr_info("All: %.3f faults a merged page that was read\n",
		(double)total_read_faults / total_read_pages);
	metric("faults_per_merged_page", (double)total_read_faults / total_read_pages, "x");
	if (must_follow)
		TEST_ASSERT(total_read_faults * 50 <= total_read_pages,
			    "%lu faults on %lu merged pages", total_read_faults, total_read_pages);
	test_result_pass();
}

static void test_storm(void)
{
	test_result_begin("storm");
	if (!storm_seconds) {
		test_result_skip("there is none (-t 0)");
		return;
	}
	storm();
	test_result_pass();
}

static void test_replaced(u64 replaced)
{
	test_result_begin("replaced pages");
	if (!must_follow) {
		test_result_skip("not asked for (see -f)");
		return;
	}
	if (replaced == NO_COUNTER) {
		print_skip("KVM does not count what change_pte replaces, so -f cannot tell");
		exit(KSFT_SKIP);
	}
	TEST_ASSERT(replaced, "No page has been replaced");
	test_result_pass();
}

int main(int argc, char *argv[])
{
	u64 replaced;
	bool iterations_given = false;
	const char *reason;
	int opt;
	long i;

	seed = time(NULL);
	while ((opt = getopt(argc, argv, "hv:b:g:s:i:nft:d:o:r:")) != -1) {
		switch (opt) {
		case 'v':
			nr_vcpus = parse_number(optarg, 1, MAX_STORM_VCPUS);
			break;
		case 'b':
			mem_size = parse_size(optarg);
			break;
		case 'g':
			group_pages = parse_number(optarg, 2, 256);
			break;
		case 's':
			thp = !strcmp(optarg, "anonymous_thp");
			if (!thp && strcmp(optarg, "anonymous")) {
				fprintf(stderr, "Unknown name '%s', see -h\n", optarg);
				exit(1);
			}
			break;
		case 'i':
			nr_iterations = parse_number(optarg, 0, 1UL << 20);
			iterations_given = true;
			break;
		case 'n':
			stopped_only = true;
			break;
		case 'f':
			must_follow = true;
			break;
		case 't':
			storm_seconds = parse_number(optarg, 0, 1UL << 32);
			break;
		case 'd':
			helpers_select(helpers, NR_HELPERS, optarg, false);
			break;
		case 'o':
			helpers_select(helpers, NR_HELPERS, optarg, true);
			break;
		case 'r':
			seed = parse_number(optarg, 1, -1);
			break;
		case 'h':
		default:
			help(argv[0], opt == 'h' ? 0 : 1);
			break;
		}
	}

	/* A run without options is to be short. */
	stopped_only |= !iterations_given;

	page_size = getpagesize();
	page_shift = __builtin_ctzl(page_size);
	block_pages = BLOCK_SIZE / page_size;
	nr_pages = mem_size / page_size;
	nr_groups = nr_pages / group_pages;
	nr_blocks = mem_size / BLOCK_SIZE;
	TEST_ASSERT(mem_size && mem_size <= 512UL << 20 && !(mem_size % BLOCK_SIZE) &&
		    !(block_pages % group_pages) && nr_groups > nr_vcpus,
		    "The memory must be a multiple of 2M, not more than 512M, and have a group for each vCPU");

	kvm_keep_vm();

	setbuf(stdout, NULL);
	main_process = getpid();
	atexit(print_storm_of_failure);
	reason = setup_ksm();
	if (reason) {
		print_skip("%s", reason);
		return KSFT_SKIP;
	}
	helpers_setup(helpers, NR_HELPERS);
	bmap = bitmap_zalloc(nr_pages);
	create_vm();
	TEST_ASSERT(!must_follow || read_counter("exits") != NO_COUNTER,
		    "No counters of this VM in debugfs, so -f cannot tell");
	test_result_plan(NR_RESULTS);
	pr_info("%d vCPUs, %lu pages of %s, in groups of %lu", nr_vcpus, nr_pages,
		thp ? "anonymous_thp" : "anonymous", group_pages);
	pr_info(", seed %lu", seed);
	pr_info("\n");

	pthread_barrier_init(&start_barrier, NULL, nr_vcpus + 1);
	pthread_barrier_init(&end_barrier, NULL, nr_vcpus + 1);
	for (i = 0; i < nr_vcpus; i++)
		pthread_create(&vcpu_threads[i], NULL, vcpu_worker, (void *)i);

	test_merged();
	test_storm();
	replaced = read_counter("change_pte_replaced");

	WRITE_ONCE(quit, true);
	pthread_barrier_wait(&start_barrier);
	for (i = 0; i < nr_vcpus; i++)
		pthread_join(vcpu_threads[i], NULL);
	kvm_vm_free(vm);

	test_replaced(replaced);
	return 0;
}
