// SPDX-License-Identifier: GPL-2.0
/*
 * Test that no write of a guest to logged memory is lost when the memory is
 * swapped out.
 *
 * The guest reads memory that was swapped out. Then the host has pages that it
 * lets the guest write to, but that are clean, because they are as they are on
 * swap. They stay in the swap cache. With the dirty log on, the guest writes to
 * them. If the host does not learn that they are dirty, it drops them the next
 * time, and the guest reads what they were before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>

#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/loop.h>
#include <linux/sizes.h>

#include "compat.h"
#include "metric.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif

#define TEST_SLOT	1
#define TEST_GVA	0xc0000000ul

/* An entry of /proc/<pid>/pagemap. */
#define PAGEMAP_SWAP	BIT_ULL(62)

#define HOW_TO_SWAP	"try -d FILE, with FILE in a file system that is not on such a device"

/* Pages of the host. */
static u64 nr_pages;

/* Read and written by the guest. */
static u64 guest_nr_pages;
static u64 guest_stride;
static u64 guest_round;
static bool guest_writes;

static u64 value_of(u64 page, u64 round)
{
	return (round << 32) + page;
}

static void guest_code(void)
{
	u64 page, nr_wrong, first;

	for (;;) {
		u64 round = READ_ONCE(guest_round);

		nr_wrong = 0;
		first = 0;
		for (page = 0; page < guest_nr_pages; page++) {
			u64 *p = (u64 *)(TEST_GVA + page * guest_stride);

			if (READ_ONCE(guest_writes))
				WRITE_ONCE(*p, value_of(page, round));
			else if (READ_ONCE(*p) != value_of(page, round) && !nr_wrong++)
				first = page;
		}
		GUEST_SYNC_ARGS(round, nr_wrong, first,
				READ_ONCE(*(u64 *)(TEST_GVA + first * guest_stride)), 0);
	}
}

static void run_guest(struct kvm_vcpu *vcpu, bool writes, u64 round)
{
	struct ucall uc;

	guest_writes = writes;
	guest_round = round;
	sync_global_to_guest(vcpu->vm, guest_writes);
	sync_global_to_guest(vcpu->vm, guest_round);

	vcpu_run(vcpu);
	TEST_ASSERT(get_ucall(vcpu, &uc) == UCALL_SYNC, "unexpected exit: %s",
		    exit_reason_str(vcpu->run->exit_reason));
	TEST_ASSERT(!uc.args[2],
		    "%lu of %lu pages are not as round %lu wrote them; page %lu has what round %lu wrote",
		    (unsigned long)uc.args[2], (unsigned long)nr_pages,
		    (unsigned long)round, (unsigned long)uc.args[3],
		    (unsigned long)(uc.args[4] >> 32));
}

/* The number in kB that a line of /proc/meminfo has. */
static u64 host_memory(const char *name)
{
	size_t length = strlen(name);
	unsigned long value = 0;
	char line[128];
	FILE *f;

	f = fopen("/proc/meminfo", "r");
	TEST_ASSERT(f, "cannot read /proc/meminfo");
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, length) && line[length] == ':')
			value = strtoul(line + length + 1, NULL, 10);
	}
	fclose(f);
	return value;
}

static u64 nr_swapped(void *hva)
{
	u64 entry, page, count = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	TEST_ASSERT(fd >= 0, "cannot read /proc/self/pagemap");
	for (page = 0; page < nr_pages; page++) {
		u64 index = (uintptr_t)hva / getpagesize() + page;

		TEST_ASSERT(pread(fd, &entry, 8, 8 * index) == 8, "pagemap ends");
		count += !!(entry & PAGEMAP_SWAP);
	}
	close(fd);
	return count;
}

/* Have the host swap memory out, nearly all of it. */
static void swap_out(void *hva)
{
	u64 count = 0;
	int i;

	for (i = 0; i < 100 && count < nr_pages / 10 * 9; i++) {
		if (i)
			usleep(100000);
		TEST_ASSERT(!madvise(hva, nr_pages * getpagesize(), MADV_PAGEOUT),
			    "MADV_PAGEOUT failed");
		count = nr_swapped(hva);
	}
	TEST_ASSERT(count >= nr_pages / 10 * 9, "Only %lu of %lu pages were swapped out",
		    (unsigned long)count, (unsigned long)nr_pages);
	pr_info("%lu of %lu pages are on swap\n", (unsigned long)count,
		(unsigned long)nr_pages);
	metric("swapped", count, "pages");
}

/* Wait until pages that go to swap are there: they are clean then. */
static void wait_for_writeback(void)
{
	int i;

	for (i = 0; i < 100 && host_memory("Writeback") > SZ_1M / 1024; i++)
		usleep(100000);
}

static char loop_dev[32];
static const char *loop_file;

static void remove_loop(void)
{
	if (loop_dev[0] && swapoff(loop_dev) && errno != EINVAL)
		printf("swapoff(%s): %s\n", loop_dev, strerror(errno));
	/* The device goes with its last user. */
	if (loop_file)
		unlink(loop_file);
}

#define REQUIRE_LOOP(cond, what)							\
	__TEST_REQUIRE(cond, "-d: " what ": %s (it takes root and CONFIG_BLK_DEV_LOOP)",	\
		       strerror(errno))

/* Swap on a loop device over a new file. */
static void make_swap(const char *file, u64 size)
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	size_t page_size = getpagesize();
	u32 *header = calloc(1, page_size);
	int control, loop, number;

	config.fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0600);
	__TEST_REQUIRE(config.fd >= 0, "-d: cannot make the file %s: %s", file, strerror(errno));
	loop_file = file;
	atexit(remove_loop);

	/* Version, last page, number of bad pages */
	header[1024 / 4] = 1;
	header[1024 / 4 + 1] = size / page_size - 1;
	memcpy((char *)header + page_size - 10, "SWAPSPACE2", 10);
	__TEST_REQUIRE(!ftruncate(config.fd, size) &&
		       pwrite(config.fd, header, page_size, 0) == page_size,
		       "-d: cannot write to %s: %s", file, strerror(errno));
	free(header);

	control = open("/dev/loop-control", O_RDWR);
	REQUIRE_LOOP(control >= 0, "/dev/loop-control");
	number = ioctl(control, LOOP_CTL_GET_FREE);
	REQUIRE_LOOP(number >= 0, "LOOP_CTL_GET_FREE");
	snprintf(loop_dev, sizeof(loop_dev), "/dev/loop%d", number);
	loop = open(loop_dev, O_RDWR);
	REQUIRE_LOOP(loop >= 0, "the loop device");
	REQUIRE_LOOP(!ioctl(loop, LOOP_CONFIGURE, &config), "LOOP_CONFIGURE");
	REQUIRE_LOOP(!swapon(loop_dev, SWAP_FLAG_PREFER | 100), "swapon()");
	close(loop);
	close(control);
	close(config.fd);
}

/*
 * On a device that is as fast as memory, the kernel keeps no clean pages in the
 * swap cache: there is nothing to test.
 */
static void require_swap(u64 size)
{
	u64 total = host_memory("SwapTotal") * 1024, free = host_memory("SwapFree") * 1024;
	char name[256], line[512];
	FILE *f;

	f = fopen("/proc/swaps", "r");
	__TEST_REQUIRE(f && fgets(line, sizeof(line), f) && total,
		       "no swap: try -d FILE, which makes swap on FILE");
	while (!loop_file && fgets(line, sizeof(line), f)) {
		const char *base;

		if (sscanf(line, "%255s", name) != 1)
			continue;
		base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
		__TEST_REQUIRE(strncmp(base, "zram", 4) && strncmp(base, "ram", 3) &&
			       strncmp(base, "pmem", 4),
			       "swap on %s: " HOW_TO_SWAP, name);
	}
	fclose(f);

	/* A page leaves the swap cache when it is read, if swap is half full. */
	__TEST_REQUIRE(free >= total / 2 + 2 * size,
		       "%lu of %lu MiB of swap are free, and more than half have to be when the test uses %lu: %s",
		       (unsigned long)(free / SZ_1M), (unsigned long)(total / SZ_1M),
		       (unsigned long)(size / SZ_1M), HOW_TO_SWAP);
}

static struct kvm_vm *create_vm(struct kvm_vcpu **vcpu, void **hva)
{
	u64 nr_guest_pages, gpa, align;
	struct kvm_vm *vm;

	vm = __vm_create_with_one_vcpu(vcpu, nr_pages * 2, guest_code);

	guest_nr_pages = nr_pages;
	guest_stride = getpagesize();
	nr_guest_pages = vm_num_guest_pages(vm->mode, nr_pages);
	align = getpagesize() > vm->page_size ? getpagesize() : vm->page_size;
	gpa = (vm->max_gfn - nr_guest_pages) * vm->page_size & ~(align - 1);
	vm_userspace_mem_region_add(vm, VM_MEM_SRC_ANONYMOUS, gpa, TEST_SLOT,
				    nr_guest_pages, 0);
	virt_map(vm, TEST_GVA, gpa, nr_guest_pages);
	*hva = addr_gpa2hva(vm, gpa);

	sync_global_to_guest(vm, guest_nr_pages);
	sync_global_to_guest(vm, guest_stride);
	return vm;
}

static void run_test(void)
{
	u64 cached, nr_guest_pages, page, nr_logged = 0;
	unsigned long *log;
	struct kvm_vcpu *vcpu;
	struct kvm_vm *vm;
	void *hva;

	vm = create_vm(&vcpu, &hva);
	nr_guest_pages = vm_num_guest_pages(vm->mode, nr_pages);
	log = bitmap_zalloc(nr_guest_pages);

	run_guest(vcpu, true, 1);
	swap_out(hva);
	wait_for_writeback();

	cached = host_memory("SwapCached");
	run_guest(vcpu, false, 1);
	cached = host_memory("SwapCached") * 1024 / getpagesize();
	TEST_ASSERT(cached >= nr_pages / 2,
		    "%lu pages are in the swap cache after %lu were read: nothing is tested",
		    (unsigned long)cached, (unsigned long)nr_pages);
	pr_info("%lu pages are in the swap cache\n", (unsigned long)cached);
	metric("cached", cached, "pages");

	vm_mem_region_set_flags(vm, TEST_SLOT, KVM_MEM_LOG_DIRTY_PAGES);
	run_guest(vcpu, true, 2);
	kvm_vm_get_dirty_log(vm, TEST_SLOT, log);
	for (page = 0; page < nr_guest_pages; page++)
		nr_logged += test_bit(page, log);
	TEST_ASSERT(nr_logged >= nr_pages, "%lu of %lu pages are in the dirty log",
		    (unsigned long)nr_logged, (unsigned long)nr_pages);
	metric("logged", nr_logged, "pages");

	swap_out(hva);
	run_guest(vcpu, false, 2);

	kvm_vm_free(vm);
	free(log);
}

static void show_options(char *name)
{
	printf("usage: %s [-h] [-b memory] [-d file]\n", name);
	printf(" -h: show this text\n"
	       " -b: how much memory is swapped out, e.g. 10M (default: 64M)\n"
	       " -d: make swap for the test: a loop device on a new file of 8 times -b,\n"
	       "     of which -b is written. It is removed at the end. Without it, the\n"
	       "     host's swap is used\n");
}

int main(int argc, char *argv[])
{
	const char *file = NULL;
	u64 size = SZ_64M;
	int opt;

	while ((opt = getopt(argc, argv, "hb:d:")) != -1) {
		switch (opt) {
		case 'b':
			size = parse_size(optarg);
			break;
		case 'd':
			file = optarg;
			break;
		case 'h':
			show_options(argv[0]);
			return 0;
		default:
			show_options(argv[0]);
			return 1;
		}
	}
	nr_pages = size / getpagesize();
	if (optind != argc || nr_pages < 16) {
		show_options(argv[0]);
		return 1;
	}

	if (file)
		make_swap(file, 8 * size);
	require_swap(size);
	run_test();
	pr_info("No write was lost\n");
	return 0;
}
