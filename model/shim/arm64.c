// SPDX-License-Identifier: GPL-2.0
/*
 * arm64: what the functions that are cut out need, those functions (functions.inc), and what the
 * scenarios call. All objects are in the arena, where the checker sees each access.
 */
#include "kernel.h"
#include <asm/kvm_pgtable.h>

char s2_arena[S2_PAGES * 4096] __attribute__((aligned(4096)));
struct s2_ops s2;

#define S2_VCPUS 4
/* The first pages of the arena. */
struct s2_vm {
	struct kvm kvm;
	struct kvm_vcpu vcpus[S2_VCPUS] __attribute__((aligned(8)));
	struct page pages[S2_PAGES];
};
#define vm ((struct s2_vm *)s2_arena)
struct page *s2_page = ((struct s2_vm *)s2_arena)->pages;
const unsigned long s2_reserved = (sizeof(struct s2_vm) + 4095) / 4096;

enum { FSC_FAULT = 4, FSC_ACCESS = 8, FSC_PERM = 12 };
struct kvm_dirty_log { u32 slot; void *dirty_bitmap; };
struct kvm_clear_dirty_log { u32 slot, num_pages; u64 first_page; void *dirty_bitmap; };
#define KVM_MEM_READONLY	2
#define KVM_MEMSLOT_INVALID	(1UL << 16)
#define KVM_ADDRESS_SPACE_NUM	1
#define KVM_USER_MEM_SLOTS	1
#define KVM_PFN_ERR_HWPOISON	(~0UL)
#define __kvm_memslots(k, i)	(&(k)->slots)
#define kvm_memslots(k)		(&(k)->slots)
#define id_to_memslot(s, i)	(&(s)->memslots[i])
#define gfn_to_memslot(k, g)	(&(k)->slots.memslots[0])
#define kvm_for_each_memslot(m, s) for (m = (s)->memslots; m < (s)->memslots + (s)->used_slots; m++)
#define kvm_arch_sync_dirty_log(k, s) ((void)0)
#define kvm_arch_guest_memory_reclaimed(k) ((void)0)
/* The host's memory: one VMA of anonymous pages. mmap_lock excludes nobody, and orders nothing. */
struct vm_area_struct { unsigned long vm_flags; };
static struct vm_area_struct s2_vma;
#define VM_PFNMAP		1
#define mmap_read_lock(m)	((void)0)
#define mmap_read_unlock(m)	((void)0)
#define find_vma_intersection(m, s, e) (&s2_vma)
#define is_vm_hugetlb_page(v)	0
#define huge_page_shift(h)	PMD_SHIFT
#define kvm_mmu_cache_min_pages(k) 2
#define kvm_stage2_levels(k)	3
#define kvm_vcpu_trap_get_fault_level(v) ((v)->fault_level)
#define kvm_is_write_fault(v)	((v)->write)
#define kvm_vcpu_trap_is_exec_fault(v) false
#define gfn_to_pfn_prot(k, g, w, wr) ({ int _wr; u64 _pfn = s2.gup(g, w, &_wr); *(wr) = _wr; _pfn; })
#define kvm_send_hwpoison_signal(h, s) ((void)0)
#define is_error_noslot_pfn(p)	0
#define kvm_is_device_pfn(p)	0
#define kvm_is_transparent_hugepage(p) s2.thp(p)
#define stage2_host_is_huge(p, s) s2.thp(((p) & GENMASK(47, 12)) >> PAGE_SHIFT)
#define kvm_set_pfn_dirty(p)	((void)0)
#define kvm_set_pfn_accessed(p)	((void)0)
#define kvm_release_pfn_clean(p) ((void)0)
#define kvm_get_pfn(p)		((void)0)
#define clean_dcache_guest_page(p, s) ((void)0)
#define invalidate_icache_guest_page(p, s) ((void)0)
#define __pfn_to_phys(p)	((p) << PAGE_SHIFT)
#define trace_kvm_unmap_hva_range(...) ((void)0)
#define trace_kvm_set_spte_hva(...) ((void)0)
#define trace_kvm_age_hva(...)	((void)0)
#define trace_kvm_test_age_hva(...) ((void)0)
#define trace_kvm_access_fault(...) ((void)0)
/* For milestones before "aging" and "bounded". */
#define pte_young(p)		(!!((p).pte & BIT(10)))
#define stage2_pgd_addr_end(k, a, e) min(ALIGN_DOWN(a, PUD_SIZE) + PUD_SIZE, (u64)(e))
/* Less than the kernel's, so that the memslot is several chunks. */
#define STAGE2_CHUNK_WORK	64
#include "inlines.inc"
#ifdef S2_NO_COUNTS
/*
 * A milestone before the patches that count. The shims count what they see: faults that took no lock, or held it for read;
 * those that had to retry; pages found young.
 */
static u64 s2_undone, s2_shared, s2_retries, s2_aged;
#undef read_lock
#define read_lock(l)		({ s2_shared++; S2_AT; s2.mmu_lock(S2_READ); })
#define mmu_notifier_retry(k, s) ({ int _again = (mmu_notifier_retry)(k, s); s2_retries += _again && !(k)->mmu_notifier_count; _again; })
#define mmu_notifier_retry_range(k, s, a, b) ({ int _again = (mmu_notifier_retry_range)(k, s, a, b); s2_retries += _again && !(k)->mmu_notifier_count; _again; })
#define kvm_pgtable_stage2_undo_wrprotect(...) ({ int _ret = (kvm_pgtable_stage2_undo_wrprotect)(__VA_ARGS__); s2_undone += _ret >= 0; _ret; })
#define kvm_pgtable_stage2_mkold(...) ({ kvm_pte_t _old = (kvm_pgtable_stage2_mkold)(__VA_ARGS__); s2_aged += pte_young(__pte(_old)); _old; })
#define kvm_pgtable_stage2_age(...) ({ unsigned long _young = (kvm_pgtable_stage2_age)(__VA_ARGS__); s2_aged += _young; _young; })
#endif
#include "functions.inc"

static struct kvm_memory_slot *s2_slot(void) { return &vm->kvm.slots.memslots[0]; }

/* A VM with one memslot of 2 MiB and one of a page; with a log if there is a page for one. */
void s2_vm_init(unsigned long *bitmap, int manual)
{
	struct kvm *kvm = &vm->kvm;
	struct kvm_pgtable *pgt;

#ifdef S2_NO_COUNTS
	s2_undone = s2_shared = s2_retries = s2_aged = 0;
#endif
	kvm->arch.vtcr = (64 - 32) | 1UL << 6;		/* 32 bits from level 1: one page of pgd */
	kvm->slots.used_slots = 2;
	s2_slot()->npages = S2_GFNS;
	s2_slot()->base_gfn = S2_BASE_GFN;
	s2_slot()->userspace_addr = S2_HVA;
	s2_slot()->dirty_bitmap = bitmap;
	/* The first page is in another memslot, too; nobody accesses it there. */
	kvm->slots.memslots[1] = (struct kvm_memory_slot) { .base_gfn = 2 * S2_BASE_GFN, .npages = 1, .userspace_addr = S2_HVA };
	kvm->manual_dirty_log_protect = manual;
	/* As kvm_init_stage2_mmu(). */
	pgt = kzalloc(sizeof(*pgt), 0);
	kvm->arch.mmu.kvm = kvm;
	WARN_ON(kvm_pgtable_stage2_init(pgt, kvm));
	kvm->arch.mmu.pgd_phys = __pa(pgt->pgd);
	kvm->arch.mmu.pgt = pgt;
	for (int i = 0; i < S2_VCPUS; i++) {
		vm->vcpus[i].kvm = kvm;
		vm->vcpus[i].arch.hw_mmu = &kvm->arch.mmu;
	}
}

/* How a memslot begins to log: without write protection, which s2_wp_memslot() is for. */
void s2_log(unsigned long *bitmap) { s2_slot()->dirty_bitmap = bitmap; }
void s2_wp_memslot(void) { kvm_mmu_wp_memory_region(&vm->kvm, 0); }
#ifdef S2_HAS_KVM_PGTABLE_JOIN_MAX
void s2_join(void) { stage2_join_memslot(&vm->kvm, 0, PMD_SIZE); }
#endif
void s2_topup(int v) { WARN_ON(kvm_mmu_topup_memory_cache(&vm->vcpus[v].arch.mmu_page_cache, 2)); }
void s2_cache_free(int v) { kvm_mmu_free_memory_cache(&vm->vcpus[v].arch.mmu_page_cache); }

/* As kvm_handle_guest_abort() on memory that a memslot has. */
int s2_fault(int v, u64 ipa, int type, int write, int level)
{
	struct kvm_vcpu *vcpu = &vm->vcpus[v];

	vcpu->write = write;
	vcpu->fault_level = level;
	if (type == FSC_ACCESS) {
		handle_access_fault(vcpu, ipa);
		return 0;
	}
	return user_mem_abort(vcpu, ipa, s2_slot(), ipa - S2_BASE_GFN * PAGE_SIZE + S2_HVA, type);
}

#include "generic.h"

void s2_free_pgd(void) { kvm_free_stage2_pgd(&vm->kvm.arch.mmu); }
void *s2_pgd(void) { return vm->kvm.arch.mmu.pgt ? vm->kvm.arch.mmu.pgt->pgd : NULL; }
void *s2_pgt(void) { return vm->kvm.arch.mmu.pgt; }
int s2_ioremap(u64 ipa, u64 pa) { return kvm_phys_addr_ioremap(&vm->kvm, ipa, pa, PAGE_SIZE, true); }
long s2_notifier_count(void) { return vm->kvm.mmu_notifier_count; }
u64 s2_page_count(u64 n) { return vm->pages[n].count; }
void s2_page_init(u64 n) { s2_page[n].count = 1; s2_page[n].private = 0; }

/* Which arms of the code were reached. */
#ifdef S2_NO_COUNTS
const int s2_no_counts = 1;
#ifndef S2_HAS_KVM_INVALID_PTE_LOCKED
/* What is not valid keeps its other bits, and nothing is ever locked. */
const int s2_invalid_keeps_bits = 1;
#endif
/* What a milestone lacks is no arm of it. Before `parallel` only faults of the dirty log hold the lock for read. */
const char *const s2_arm_names[] = {
	"seq_retries", "age_done",
#ifdef S2_HAS_KVM_PTE_LEAF_ATTR_HI_S2_SW_WRITABLE
	"faults_lockless",
#endif
#ifdef S2_HAS_KVM_INVALID_PTE_LOCKED
	"faults_parallel",
#elif defined(S2_SHARED_FAULTS)
	"faults_lockless",
#endif
	NULL };
void s2_arms(u64 *to)
{
	*to++ = s2_retries;
	*to++ = s2_aged;
#ifdef S2_HAS_KVM_PTE_LEAF_ATTR_HI_S2_SW_WRITABLE
	*to++ = s2_undone;
#endif
	*to = s2_shared;
}
#else
const char *const s2_arm_names[] = {
	"faults_lockless", "faults_parallel", "seq_retries", "blocks_split", "tables_collapsed", "races_lost", "entries_locked",
	"change_replaced", "change_protected", "change_unmapped", "change_overlapped",
	"age_done", "age_lost", "age_unmapped", "age_replaced", "age_late", NULL };
void s2_arms(u64 *to)
{
	memcpy(to, (u64 [7]) { 0 }, 56);
	for (int i = 0; i < S2_VCPUS; i++) {
		to[0] += vm->vcpus[i].stat.stage2_faults_lockless;
		to[1] += vm->vcpus[i].stat.stage2_faults_parallel;
		to[2] += vm->vcpus[i].stat.mmu_seq_retries;
		to[3] += vm->vcpus[i].stat.stage2_blocks_split;
		to[4] += vm->vcpus[i].stat.stage2_tables_collapsed;
		to[5] += vm->vcpus[i].stat.stage2_races_lost;
		to[6] += vm->vcpus[i].stat.stage2_entries_locked;
	}
	for (int i = 0; i < 4; i++)
		to[7 + i] = vm->kvm.stat.change_pte[i];
	for (int i = 0; i < 5; i++)
		to[11 + i] = vm->kvm.stat.stage2_ages[i];
}
#endif

/* What is at an address of the arena's first pages; NULL if it has no name. */
const char *s2_name(const void *p)
{
	struct kvm *kvm = &vm->kvm;

	if (p == &kvm->mmu_notifier_seq) return "mmu_notifier_seq";
	if (p == &kvm->mmu_notifier_count) return "mmu_notifier_count";
	if (p == &kvm->arch.mmu.pgt) return "mmu.pgt";
	if (p == &kvm->arch.mmu.pgd_phys) return "mmu.pgd_phys";
	for (int i = 0; i < S2_PAGES; i++)
		if (p == &vm->pages[i].count) return "page_count()";
	return NULL;
}
