// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much is done with mmu_lock held: kvm_pgtable_stage2_chunk_end(), cut out of the
 * patched kernel, on page tables of this program. Each range is gone over as
 * stage2_apply_range() does it. What a chunk costs is counted anew, from the tables,
 * entry by entry: a unit for each entry, or if data is cleaned, for each 4 KiB of it.
 *
 * It prints the number of holds and the longest one, and fails if a chunk does not go on,
 * leaves the range, takes more than it may, or is cut where nothing is to be bounded.
 */
#include "kernel.h"
#include "pgtable.inc"

/* As stage2_apply_range() has it */
#define WORK	512UL

#define WRITE_PROTECT	0
#define UNMAP		KVM_PGTABLE_CHUNK_CLEAN
#define FLUSH		(KVM_PGTABLE_CHUNK_CLEAN | KVM_PGTABLE_CHUNK_DIVIDE)

#define GIB	(1UL << 30)
#define TIB	(1UL << 40)

static struct kvm_pgtable pgt;

static kvm_pte_t *new_table(void)
{
	void *table = aligned_alloc(PAGE_SIZE, PAGE_SIZE);

	assert(table);
	return memset(table, 0, PAGE_SIZE);
}

static kvm_pte_t *entry(kvm_pte_t *table, u64 addr, u32 level)
{
	return &table[(addr >> kvm_granule_shift(level)) & (PTRS_PER_PTE - 1)];
}

/* Map the leaf of @addr at @level. */
static void map(u64 addr, u32 level)
{
	kvm_pte_t *table = pgt.pgd, *pte;
	u32 upper;

	for (upper = pgt.start_level; upper < level; upper++) {
		pte = entry(table, addr, upper);
		if (!*pte)
			*pte = (u64)(uintptr_t)new_table() | 3;
		table = kvm_pte_follow(*pte);
	}
	*entry(table, addr, level) = (addr & KVM_PTE_ADDR_MASK) | (level == 3 ? 3 : 1);
}

static void map_all(u64 addr, u64 count, u32 level)
{
	u64 i;

	for (i = 0; i < count; i++)
		map(addr + i * kvm_granule_size(level), level);
}

/* What the entry at @addr costs, of which the range has [addr, *next). */
static unsigned long cost_one(u64 addr, u64 end, int flags, u64 *next)
{
	bool clean = (flags & KVM_PGTABLE_CHUNK_CLEAN) && !fwb;
	u32 level = pgt.start_level;
	kvm_pte_t *table = pgt.pgd, pte;
	u64 granule;

	while (pte = *entry(table, addr, level), kvm_pte_table(pte, level)) {
		table = kvm_pte_follow(pte);
		level++;
	}

	granule = kvm_granule_size(level);
	*next = min(ALIGN_DOWN(addr, granule) + granule, end);
	if (level == 3)
		return clean ? PAGE_SIZE / SZ_4K : 1;
	if (!(pte & KVM_PTE_VALID) || !clean)
		return 1;
	return ((flags & KVM_PGTABLE_CHUNK_DIVIDE) ? *next - addr : granule) / SZ_4K;
}

static unsigned long cost(u64 addr, u64 end, int flags)
{
	unsigned long sum = 0;

	while (addr < end)
		sum += cost_one(addr, end, flags, &addr);
	return sum;
}

static u64 chunk(u64 addr, u64 end, int flags)
{
	u64 next = kvm_pgtable_stage2_chunk_end(&pgt, addr, end, WORK, flags);

	assert(next > addr && next <= end && !(next & ~PAGE_MASK));
	return next;
}

/* Go over [addr, end); no hold may be longer than @limit units. Returns their number. */
static unsigned long run(const char *what, u64 addr, u64 end, int flags, unsigned long limit)
{
	unsigned long holds = 0, worst = 0, units;
	u64 next;

	for (; addr < end; addr = next, holds++) {
		next = chunk(addr, end, flags);
		units = cost(addr, next, flags);
		worst = max(worst, units);
	}
	printf("%-44s %8lu holds, worst %7lu units\n", what, holds, worst);
	assert(worst <= limit);
	return holds;
}

/* Ranges that begin and end anywhere among what is mapped. */
static void run_random(void)
{
	static const int flags[] = { WRITE_PROTECT, UNMAP, FLUSH };
	u64 block = kvm_granule_size(2), addr, end, next;
	unsigned long units, limit;
	int i, steps, what;

	srand(1);
	for (i = 0; i < 20000; i++) {
		what = flags[rand() % 3];
		limit = WORK + (what == UNMAP && !fwb ? block / SZ_4K : 0);
		addr = ((rand() % 4000) * block / 3) & PAGE_MASK;
		end = addr + PAGE_SIZE + (rand() % 100000) * PAGE_SIZE;
		for (steps = 0; addr < end && steps < 300; steps++, addr = next) {
			next = chunk(addr, end, what);
			units = cost(addr, next, what);
			assert(units <= limit);
			/* Nothing is left over but what the next entry takes. */
			assert(next == end || what != WRITE_PROTECT ||
			       units >= WORK - 2 * PAGE_SIZE / SZ_4K);
		}
	}
}

static void run_all(void)
{
	u64 block = kvm_granule_size(2), blocks = 2UL << 32, pages = (3UL << 40) + 7 * PAGE_SIZE;
	unsigned long block_units = fwb ? 0 : block / SZ_4K;

	printf("pages of %lu KiB, %s\n", PAGE_SIZE >> 10, fwb ? "FWB" : "no FWB");
	/* What is not mapped takes no hold of its own. */
	assert(run("1 TiB, nothing mapped: unmap", 0, TIB, UNMAP, WORK) == 1);
	map(5 * block, 3);
	map(5 * block + PAGE_SIZE, 3);
	run("1 TiB, one table of pages: unmap", 0, TIB, UNMAP, WORK);

	if (PAGE_SHIFT == 12) {
		map(GIB, 1);
		run("1 TiB, one 1 GiB block: unmap", 0, TIB, UNMAP, WORK + (fwb ? 0 : GIB / SZ_4K));
		run("the same: flush", 0, TIB, FLUSH, WORK);
		run("part of the block: flush", GIB + SZ_4K, GIB + (9UL << 20), FLUSH, WORK);
		*entry(kvm_pte_follow(*entry(pgt.pgd, GIB, 0)), GIB, 1) = 0;
	}

	map_all(blocks, 1024, 2);
	run("1024 blocks: unmap", blocks, blocks + 1024 * block, UNMAP, WORK + block_units);
	run("1024 blocks: write-protect", blocks, blocks + 1024 * block, WRITE_PROTECT, WORK);
	run("1024 blocks: flush", blocks, blocks + 1024 * block, FLUSH, WORK);

	map_all(pages, 8 * PTRS_PER_PTE, 3);
	run("8 tables' worth of pages, unaligned: unmap", pages, pages + 8 * block, UNMAP, WORK);
	run("the same: write-protect", pages, pages + 8 * block, WRITE_PROTECT, WORK);
	/* A word of the dirty bitmap is not split over two holds. */
	pages = (3UL << 40) + block;
	assert(run("64 pages across two tables: write-protect", pages - 32 * PAGE_SIZE, pages + 32 * PAGE_SIZE,
		   WRITE_PROTECT, WORK) == 1);
	run_random();
}

int main(void)
{
	pgt.start_level = PAGE_SHIFT == 16 ? 1 : 0;
	pgt.ia_bits = PAGE_SHIFT == 16 ? 42 : 48;
	pgt.mmu = (void *)1;

	for (fwb = false;; fwb = true) {
		pgt.pgd = new_table();
		run_all();
		if (fwb)
			return 0;
	}
}
