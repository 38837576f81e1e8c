// SPDX-License-Identifier: GPL-2.0
/*
 * What mm/ksm.c needs. A struct page is a page of the guest's here, and its address the pfn: nobody looks
 * into it. Nobody else holds the page: KSM goes on.
 */
#include "kernel.h"

#undef get_page
#undef put_page
#undef page_count
#undef page_to_pfn
#undef is_zero_pfn
struct vm_area_struct { struct mm_struct *vm_mm; int vm_page_prot; pte_t *pte; u64 address; int flushes; };
struct page_vma_mapped_walk { struct page *page; struct vm_area_struct *vma; u64 address; pte_t *pte; };
typedef struct { int unused; } pmd_t, spinlock_t;
void s2_range_start(u64 start, u64 end, int flags);
void s2_range_end(u64 start, u64 end, int flags);
void s2_change_pte(u64 addr, u64 pte);

#define MMU_NOTIFY_CLEAR	0
#define PAGE_ALIGNED(a)		IS_ALIGNED(a, PAGE_SIZE)
#define page_to_pfn(p)		((u64)(p))
#define page_address_in_vma(p, v) ((v)->address)
#define PageTransCompound(p)	0
#define PageSwapCache(p)	0
#define page_mapcount(p)	1
#define page_count(p)		2
#define get_page(p)		((void)(p))
#define put_page(p)		s2.host(S2_GIVE_BACK, page_to_pfn(p))
#define set_page_dirty(p)	((void)(p))
#define flush_cache_page(v, a, p) ((void)0)
#define mm_tlb_flush_pending(m)	0
#define pte_none(p)		(!(p).pte)
#define pte_dirty(p)		pte_write(p)
#define pte_protnone(p)		0
#define pte_savedwrite(p)	0
#define pte_clear_savedwrite(p)	(p)
#define pte_mkclean(p)		(p)
#define pte_wrprotect(p)	__pte((p).pte & ~BIT(51))
#define pte_same(a, b)		((a).pte == (b).pte)
#define is_zero_pfn(p)		0
#define page_add_anon_rmap(p, v, a, c) ((void)0)
#define page_remove_rmap(p, c)	((void)0)
#define page_mapped(p)		1
#define try_to_free_swap(p)	((void)0)
#define pfn_pte(p, prot)	__pte((u64)(p) << PAGE_SHIFT | 1)
#define mk_pte(p, prot)		pfn_pte(page_to_pfn(p), prot)
#define pte_mkspecial(p)	(p)
#define dec_mm_counter(m, c)	((void)0)
#define mm_find_pmd(m, a)	((void)(m), (pmd_t *)1)
#define pte_offset_map_lock(m, p, a, ptl) (*(ptl) = NULL, s2.host(S2_PTL_LOCK, 0), vma->pte)
#define pte_unmap_unlock(p, ptl) ((void)(ptl), s2.host(S2_PTL_UNLOCK, 0))
#define mmu_notifier_range_init(r, e, f, v, m, s, n) (*(r) = (struct mmu_notifier_range) { s, n, f })
#define mmu_notifier_invalidate_range_start(r) s2_range_start((r)->start, (r)->end, (r)->flags | MMU_NOTIFIER_RANGE_BLOCKABLE)
#define mmu_notifier_invalidate_range_end(r) s2_range_end((r)->start, (r)->end, (r)->flags | MMU_NOTIFIER_RANGE_BLOCKABLE)
#define mmu_notifier_change_pte(m, a, p) ((void)(m), s2_change_pte(a, (p).pte))
#define set_pte_at(m, a, ptep, p) ((void)(m), WRITE_ONCE((ptep)->pte, (p).pte), s2.host(S2_PTE_SET, (a) >> PAGE_SHIFT))

/* A PTE that is PROT_NONE is not in the TLB, and not flushed: no barrier then. */
static pte_t ptep_clear_flush(struct vm_area_struct *vma, u64 addr, pte_t *ptep)
{
	pte_t old = { READ_ONCE(ptep->pte) };

	WRITE_ONCE(ptep->pte, 0);
	if (vma->flushes)
		smp_mb();
	return old;
}

static bool page_vma_mapped_walk(struct page_vma_mapped_walk *pvmw)
{
	s2.host(S2_PTL_LOCK, 0);
	pvmw->pte = pvmw->vma->pte;
	if (pte_valid(*pvmw->pte) && pte_pfn(*pvmw->pte) == page_to_pfn(pvmw->page))
		return true;
	s2.host(S2_PTL_UNLOCK, 0);
	return false;
}
#define page_vma_mapped_walk_done(p) s2.host(S2_PTL_UNLOCK, 0)

#include "mm.inc"

/* What try_to_merge_one_page() does: returns 0 if the page is write-protected, and the PTE then. */
int s2_ksm_protect(u64 address, pte_t *pte, u64 pfn, int flushes, u64 *now)
{
	struct vm_area_struct vma = { .pte = pte, .address = address, .flushes = flushes };
	pte_t orig = { 0 };
	int ret = write_protect_page(&vma, (struct page *)pfn, &orig);

	*now = orig.pte;
	return ret;
}

int s2_ksm_replace(u64 address, pte_t *pte, u64 pfn, u64 kpfn, int flushes, u64 orig)
{
	struct vm_area_struct vma = { .pte = pte, .address = address, .flushes = flushes };

	return replace_page(&vma, (struct page *)pfn, (struct page *)kpfn, __pte(orig));
}
