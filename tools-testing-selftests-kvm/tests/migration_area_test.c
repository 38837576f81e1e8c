// SPDX-License-Identifier: GPL-2.0
/*
 * What a guest loses while it is migrated: the area between the rate at which it
 * worked before and its rate until all is sent, blackout included.
 *
 * Each vCPU works on a part of the memory. A unit of work is a computation that takes
 * a while, and an access to a page chosen at random; so many of 100 are writes. The
 * vCPU counts it in the slices of time that it took.
 *
 * The host does what QEMU does, but sends to itself: it turns the log on, and sends
 * all pages, no faster than the bandwidth allows. Before the first page of a chunk
 * it clears the chunk's log. Then it harvests the log and sends what was written,
 * until what is left can be sent within the downtime. Then it stops the vCPUs,
 * harvests once more, sends the rest and turns the log off. QEMU would throttle a
 * guest that writes faster than can be sent; here it is stopped after some passes.
 * At last what was sent is compared with the guest's memory.
 *
 * Lost work is printed as time in which all vCPUs together would have done it, from
 * the first page to the last: to turn the log on waits for a grace period, and what
 * the guest loses meanwhile is printed apart.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <linux/bitmap.h>
#include <linux/bitops.h>

#include "compat.h"
#include "guest_counter.h"
#include "host_mm.h"
#include "metric.h"
#include "old_vgic.h"
#include "stress_random.h"
#include "stress_util.h"

#define MAX_VCPUS	64
#define SLOT		1
#define SHARED_SLOT	2
/* The same guest virtual as guest physical addresses */
#define GPA		(16UL << 30)
#define SHARED_GPA	(44UL << 30)
#define BLOCK_SIZE	(2UL << 20)
#define MAX_SLICES	8192
/* Units are counted in such parts. */
#define PARTS		1024
#define CALIBRATION	20000
/* Slices before the migration, the first of which does not count */
#define NR_BEFORE	41

struct vcpu_state {
	u64 started, loops;
	u32 units[MAX_SLICES];
} __aligned(4096);

/* Host and guest share this, by memory that nothing happens to. */
struct shared {
	u64 ready, go, stop, slice_ticks, unit_ticks, pages, stride, percent, page_size, seed;
	struct vcpu_state vcpu[MAX_VCPUS];
};

static int nr_vcpus = 4;
static u64 size = 64UL << 20, percent = 20, stride = 1, unit_ns = 10000, slice_us = 250, seed;
static u64 bandwidth = 3125, downtime_ns, chunk, nr_passes = 10;
static bool huge, initially_set = true;

static struct kvm_vm *vm;
static struct kvm_vcpu *vcpus[MAX_VCPUS];
static struct shared *sh;
static void *memory, *sent;
static u64 page_size, nr_pages;
/* Of what is to be sent; of chunks whose log is to be cleared before a page of theirs is sent */
static unsigned long *dirty, *to_clear, *harvest;
static u64 nr_sent, nr_same, next_send;
static double get_ns, clear_ns;

/* Guest code */

static void guest_compute(u64 loops)
{
	while (loops--)
		asm volatile("" : "+r" (loops));
}

/* The most loops that go into a unit: what disturbs it only makes them fewer. */
static u64 guest_calibrate(struct shared *sh)
{
	u64 i, start, ticks, loops = 1;

	for (i = 0; i < 5; i++) {
		start = guest_counter();
		guest_compute(CALIBRATION);
		ticks = guest_counter() - start;
		if (ticks && loops < sh->unit_ticks * CALIBRATION / ticks)
			loops = sh->unit_ticks * CALIBRATION / ticks;
	}
	return loops;
}

static void guest_work(struct shared *sh, struct vcpu_state *vcpu, u64 id)
{
	u64 state, slice = 0, units = 0, now, last, end, left, part, random, *at;

	state = random_seeded(READ_ONCE(sh->seed) * MAX_VCPUS + id + 1);
	WRITE_ONCE(vcpu->started, 2);
	while (!READ_ONCE(sh->go))
		;
	last = guest_counter();
	end = last + sh->slice_ticks;

	while (!READ_ONCE(sh->stop)) {
		guest_compute(vcpu->loops);
		random = next_random(&state);
		at = (u64 *)(GPA + (id * sh->pages + random % (sh->pages / sh->stride) * sh->stride) *
			     sh->page_size);
		if ((random >> 32) % 100 < sh->percent)
			WRITE_ONCE(*at, *at + 1);
		else
			READ_ONCE(*at);
		now = guest_counter();
		/* A unit that took longer is of several slices. */
		for (left = PARTS; now >= end; end += sh->slice_ticks) {
			part = left * (end - last) / (now - last);
			vcpu->units[slice] = units + part;
			left -= part;
			last = end;
			units = 0;
			if (slice < MAX_SLICES - 1)
				slice++;
		}
		units += left;
		last = now;
	}
	vcpu->units[slice] = units;
}

static void guest_code(u64 id)
{
	struct shared *sh = (struct shared *)SHARED_GPA;
	struct vcpu_state *vcpu = &sh->vcpu[id];
	u64 i;

	for (i = 0; i < sh->pages; i++)
		WRITE_ONCE(*(u64 *)(GPA + (id * sh->pages + i) * sh->page_size), i);
	/* When all others have done that, too */
	WRITE_ONCE(vcpu->started, 1);
	while (!READ_ONCE(sh->ready))
		;
	vcpu->loops = guest_calibrate(sh);
	guest_work(sh, vcpu, id);
	GUEST_DONE();
}

/* The host's part */

static pthread_barrier_t stopped;

static void *vcpu_thread(void *arg)
{
	struct kvm_vcpu *vcpu = arg;
	struct ucall uc;

	vcpu_run(vcpu);
	TEST_ASSERT(get_ucall(vcpu, &uc) == UCALL_DONE, "exit_reason=%s",
		    exit_reason_str(vcpu->run->exit_reason));
	pthread_barrier_wait(&stopped);
	return NULL;
}

static u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ul + now.tv_nsec;
}

static void set_log(bool on)
{
	vm_set_user_memory_region(vm, SLOT, on ? KVM_MEM_LOG_DIRTY_PAGES : 0, GPA,
				  nr_pages * page_size, memory);
}

/* Harvest the log; returns how many pages are left to send. */
static u64 get_log(void)
{
	struct kvm_dirty_log log = { .slot = SLOT, .dirty_bitmap = harvest };
	u64 i, left = 0, start = now_ns();

	TEST_ASSERT(!ioctl(vm->fd, KVM_GET_DIRTY_LOG, &log), "KVM_GET_DIRTY_LOG: %s",
		    strerror(errno));
	get_ns += now_ns() - start;
	for (i = 0; i < BITS_TO_LONGS(nr_pages); i++) {
		dirty[i] |= harvest[i];
		left += __builtin_popcountl(dirty[i]);
	}
	memset(to_clear, 0xff, BITS_TO_LONGS(DIV_ROUND_UP(nr_pages, chunk)) * sizeof(long));
	return left;
}

/* As QEMU: what the last harvest says of the chunk, when the first page of it is sent. */
static void clear_log(u64 page)
{
	struct kvm_clear_dirty_log log = { .slot = SLOT };
	u64 start = now_ns();

	if (!test_bit(page / chunk, to_clear))
		return;
	clear_bit(page / chunk, to_clear);
	page -= page % chunk;
	log.first_page = page;
	log.num_pages = min(chunk, nr_pages - page);
	log.dirty_bitmap = harvest + page / 64;
	TEST_ASSERT(!ioctl(vm->fd, KVM_CLEAR_DIRTY_LOG, &log), "KVM_CLEAR_DIRTY_LOG: %s",
		    strerror(errno));
	clear_ns += now_ns() - start;
}

/* The library's memcpy() and memcmp() go by bytes: a page would take longer than its time on the wire. */
static void send_page(u64 page)
{
	u64 i, *from = memory + page * page_size, *to = sent + page * page_size;

	/* The guest writes to the first word alone. */
	nr_same += *to == READ_ONCE(*from);
	for (i = 0; i < page_size / sizeof(u64); i++)
		to[i] = READ_ONCE(from[i]);
	nr_sent++;
}

static void send_dirty(void)
{
	u64 page;

	for (page = 0; page < nr_pages; page++) {
		if (!test_bit(page, dirty))
			continue;
		clear_log(page);
		clear_bit(page, dirty);
		/* The link does not catch up on what it was not given in time. */
		next_send = max(next_send, now_ns()) + page_size * 1000 / bandwidth;
		send_page(page);
		while (now_ns() < next_send)
			;
	}
}

static u64 count_lost(void)
{
	u64 i, *from = memory, *to = sent, last = ~0UL, lost = 0;

	for (i = 0; i < nr_pages * page_size / sizeof(u64); i++) {
		if (from[i] == to[i] || last == i * sizeof(u64) / page_size)
			continue;
		last = i * sizeof(u64) / page_size;
		lost++;
	}
	return lost;
}

/* Units of all vCPUs in the slices from @first to before @last */
static double units(u64 first, u64 last)
{
	double sum = 0;
	int i;

	for (; first < last; first++)
		for (i = 0; i < nr_vcpus; i++)
			sum += sh->vcpu[i].units[first];
	return sum / PARTS;
}

/*
 * In ns since the vCPUs had begun: the log was turned on from @on, pages were sent from
 * @send to @end; the vCPUs were told to stop at @stop, and all had at @quiet.
 */
static void print_area(u64 on, u64 send, u64 stop, u64 quiet, u64 end)
{
	u64 slice_ns = slice_us * 1000, first = on / slice_ns, area = send / slice_ns;
	u64 last = end / slice_ns + 1, from = area - 4, slice;
	double steady, lost, rate;

	TEST_ASSERT(last < MAX_SLICES, "It took more than %u slices: longer ones are needed (-S)",
		    MAX_SLICES);
	steady = units(1, first) / (first - 1);
	/* In ns of all vCPUs; a slice's beginning, before the first page, is as steady. */
	lost = end - area * slice_ns - units(area, last) / steady * slice_ns;

	pr_info("Lost %.0f us of %lu us, %lu us of them blackout\n", lost / 1000, (end - send) / 1000,
		(end - stop) / 1000);
	metric("lost_work", lost / 1e9, "s");
	metric("lost_share", lost / (end - send), "x");
	metric("lost_running_share", (lost - (end - quiet)) / (quiet - send), "x");
	metric("lost_log_on", (area - first - units(first, area) / steady) * slice_ns / 1e9, "s");
	metric("log_on", (send - on) / 1e9, "s");
	metric("sending_time", (end - send) / 1e9, "s");
	metric("stop_time", (quiet - stop) / 1e9, "s");
	metric("blackout", (end - stop) / 1e9, "s");
	metric("unit_time", nr_vcpus * slice_us / steady / 1e6, "s");
	metric("slice_time", slice_us / 1e6, "s");
	for (slice = from; slice < last; slice++) {
		rate = units(slice, slice + 1) / steady;
		/* Behind the end it would work again. */
		if (slice == last - 1)
			rate += (double)(last * slice_ns - end) / slice_ns;
		metric_of("guest_rate", slice - from + 1, rate, "x");
	}
}

static void wait_for(u64 started)
{
	int i;

	for (i = 0; i < nr_vcpus; i++)
		while (READ_ONCE(sh->vcpu[i].started) < started)
			;
}

static void migrate(void)
{
	u64 begin, on, send, stop, quiet, end, left, pass;

	wait_for(1);
	WRITE_ONCE(sh->ready, 1);
	wait_for(2);
	begin = now_ns();
	WRITE_ONCE(sh->go, 1);
	while (now_ns() - begin < NR_BEFORE * slice_us * 1000)
		;
	on = now_ns() - begin;
	set_log(true);
	send = now_ns() - begin;
	bitmap_fill(dirty, nr_pages);
	bitmap_zero(to_clear, DIV_ROUND_UP(nr_pages, chunk));
	if (initially_set)
		get_log();

	for (pass = 1; pass <= nr_passes; pass++) {
		send_dirty();
		left = get_log();
		if (left * page_size * 1000 / bandwidth <= downtime_ns)
			break;
	}
	stop = now_ns() - begin;
	WRITE_ONCE(sh->stop, 1);
	pthread_barrier_wait(&stopped);
	quiet = now_ns() - begin;
	get_log();
	send_dirty();
	end = now_ns() - begin;
	set_log(false);

	left = count_lost();
	metric("pages_lost", left, "count");
	TEST_ASSERT(!left, "%lu pages are not what the guest has", left);
	metric("converged", pass <= nr_passes, "count");
	metric("passes", min(pass, nr_passes) + 1, "count");
	metric("pages_sent", nr_sent, "count");
	metric("pages_sent_again", nr_sent - nr_pages, "count");
	metric("pages_sent_unchanged", nr_same, "count");
	metric("get_time", get_ns / 1e9, "s");
	metric("clear_time", clear_ns / 1e9, "s");
	print_area(on, send, stop, quiet, end);
}

static void create_vm(void)
{
	u64 shared_size = roundup(sizeof(*sh), BLOCK_SIZE), ticks;
	int i;

	vm = __vm_create_with_vcpus(VM_SHAPE_DEFAULT, nr_vcpus,
				    (nr_pages * page_size + shared_size) / MIN_PAGE_SIZE, guest_code,
				    vcpus);
	setup_old_vgic(vm, nr_vcpus);
	vm_enable_cap(vm, KVM_CAP_MANUAL_DIRTY_LOG_PROTECT2, KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE |
		      (initially_set ? KVM_DIRTY_LOG_INITIALLY_SET : 0));

	sh = reserve_aligned(shared_size, BLOCK_SIZE);
	map_fixed(sh, shared_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory = reserve_aligned(nr_pages * page_size, BLOCK_SIZE);
	map_fixed(memory, nr_pages * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		  -1, 0);
	madvise(memory, nr_pages * page_size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(memory, 0xff, nr_pages * page_size);
	sent = reserve_aligned(nr_pages * page_size, BLOCK_SIZE);
	map_fixed(sent, nr_pages * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	/* The destination is there before the migration begins. */
	memset(sent, 0xff, nr_pages * page_size);
	madvise(sh, shared_size, MADV_NOHUGEPAGE);
	memset(sh, 0, shared_size);
	dirty = bitmap_zalloc(nr_pages);
	harvest = bitmap_zalloc(nr_pages);
	to_clear = bitmap_zalloc(DIV_ROUND_UP(nr_pages, chunk));
	TEST_ASSERT(dirty && harvest && to_clear, "Memory allocation failed");

	vm_set_user_memory_region(vm, SHARED_SLOT, 0, SHARED_GPA, shared_size, sh);
	virt_map(vm, SHARED_GPA, SHARED_GPA, shared_size / vm->page_size);
	set_log(false);
	virt_map(vm, GPA, GPA, nr_pages * page_size / vm->page_size);

	ticks = ticks_per_ms(vcpus[0]);
	sh->slice_ticks = slice_us * ticks / 1000;
	sh->unit_ticks = unit_ns * ticks / 1000000;
	sh->pages = nr_pages / nr_vcpus;
	sh->seed = seed;
	sh->stride = stride;
	sh->percent = percent;
	sh->page_size = page_size;
	for (i = 0; i < nr_vcpus; i++)
		vcpu_args_set(vcpus[i], 1, (u64)i);
}

static void help(const char *name)
{
	printf("usage: %s [-h] [-v vcpus] [-b MiB] [-s backing] [-w percent] [-d pages] [-u ns]\n"
	       "          [-B MB/s] [-t us] [-c pages] [-p passes] [-g] [-r seed] [-S us]\n\n", name);
	printf(" -v: number of vCPUs (default: %d)\n", nr_vcpus);
	printf(" -b: MiB of memory, of which each vCPU works on its part (default: %lu)\n", size >> 20);
	printf(" -s: what backs it: anonymous (default) or anonymous_thp\n");
	printf(" -w: how many of 100 accesses are writes (default: %lu)\n", percent);
	printf(" -d: accesses are to each such page alone: 1 is dense (default: %lu)\n", stride);
	printf(" -u: ns that the computation of a unit of work takes (default: %lu)\n", unit_ns);
	printf(" -B: MB/s that can be sent (default: %lu, 25 Gb/s)\n", bandwidth);
	printf(" -t: us of downtime in which the rest is to be sent (default: a 70th of all memory's\n"
	       "     time, as 300 ms are of 64 GiB at 25 Gb/s)\n");
	printf(" -c: pages of a chunk whose log is cleared at once (default: a 64th of all, as QEMU's\n"
	       "     1 GiB is of 64 GiB)\n");
	printf(" -p: passes before the vCPUs are stopped, whatever is left (default: %lu)\n", nr_passes);
	printf(" -g: without KVM_DIRTY_LOG_INITIALLY_SET\n");
	printf(" -r: random seed (default: %lu)\n", seed);
	printf(" -S: us of a slice in which units are counted (default: %lu)\n", slice_us);
	exit(0);
}

static const char * const backings[] = { "anonymous", "anonymous_thp" };

static void parse_options(int argc, char *argv[])
{
	int opt;

	while ((opt = getopt(argc, argv, "hv:b:s:w:d:u:B:t:c:p:gr:S:")) != -1) {
		switch (opt) {
		case 'v':
			nr_vcpus = parse_number(optarg, 1, MAX_VCPUS);
			break;
		case 'b':
			size = parse_number(optarg, 2, 16384) << 20;
			break;
		case 's':
			huge = parse_name(optarg, backings, ARRAY_SIZE(backings));
			break;
		case 'w':
			percent = parse_number(optarg, 0, 100);
			break;
		case 'd':
			stride = parse_number(optarg, 1, 512);
			break;
		case 'u':
			unit_ns = parse_number(optarg, 100, 1000000);
			break;
		case 'B':
			bandwidth = parse_number(optarg, 1, 1000000);
			break;
		case 't':
			downtime_ns = parse_number(optarg, 1, 1000000) * 1000;
			break;
		case 'c':
			chunk = parse_number(optarg, 64, 1UL << 30);
			break;
		case 'p':
			nr_passes = parse_number(optarg, 1, 1000);
			break;
		case 'g':
			initially_set = false;
			break;
		case 'r':
			seed = parse_number(optarg, 0, 1UL << 32);
			break;
		case 'S':
			slice_us = parse_number(optarg, 50, 100000);
			break;
		case 'h':
			help(argv[0]);
		default:
			exit(1);
		}
	}
	if (optind < argc || size % BLOCK_SIZE || chunk % 64) {
		fprintf(stderr, "%s: -b is an even number, -c a multiple of 64, and there are options only, see -h\n",
			argv[0]);
		exit(1);
	}
}

int main(int argc, char *argv[])
{
	pthread_t threads[MAX_VCPUS];
	int i;

	parse_options(argc, argv);
	if (huge && thp_missing()) {
		print_skip("%s", thp_missing());
		return KSFT_SKIP;
	}
	page_size = getpagesize();
	nr_pages = size / page_size;
	if (nr_pages / nr_vcpus < stride) {
		fprintf(stderr, "%s: a vCPU has no page: -b has to be larger, or -d smaller\n", argv[0]);
		return 1;
	}
	if (!chunk)
		chunk = max(nr_pages / 64 / 64, 1UL) * 64;
	chunk = min(chunk, nr_pages);
	if (!downtime_ns)
		downtime_ns = nr_pages * page_size * 1000 / bandwidth / 70;
	if (sysconf(_SC_NPROCESSORS_ONLN) <= nr_vcpus)
		pr_info("vCPUs and the migration share %ld CPUs: what is lost is not KVM's alone\n",
			sysconf(_SC_NPROCESSORS_ONLN));
	kvm_keep_vm();
	setbuf(stdout, NULL);
	create_vm();

	pthread_barrier_init(&stopped, NULL, nr_vcpus + 1);
	for (i = 0; i < nr_vcpus; i++)
		pthread_create(&threads[i], NULL, vcpu_thread, vcpus[i]);
	migrate();
	for (i = 0; i < nr_vcpus; i++)
		pthread_join(threads[i], NULL);
	kvm_vm_free(vm);
	return 0;
}
