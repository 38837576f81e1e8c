// SPDX-License-Identifier: GPL-2.0
/*
 * arm64 of linux 7.3, and of 6.12 with S2_ARM64_V6_12: what the functions that are cut out need, those functions
 * (functions.inc), and what the scenarios call. All objects are in the arena, where the checker sees each access.
 */
#include "kernel.h"
#include <asm/kvm_pgtable.h>

char s2_arena[S2_PAGES * 4096] __attribute__((aligned(4096)));
struct s2_ops s2;

#define S2_VCPUS 4
#define S2_RING 64
/* The first pages of the arena. */
struct s2_vm {
	struct kvm kvm;
	struct kvm_vcpu vcpus[S2_VCPUS] __attribute__((aligned(8)));
	struct kvm_dirty_gfn rings[S2_VCPUS][S2_RING];
	struct page pages[S2_PAGES];
};
#define vm ((struct s2_vm *)s2_arena)
struct page *s2_page = ((struct s2_vm *)s2_arena)->pages;
const unsigned long s2_reserved = (sizeof(struct s2_vm) + 4095) / 4096;
/* Of each CPU: the vCPU that is loaded, and the stage 2. */
static struct { struct kvm_vcpu *__hyp_running_vcpu; } s2_host_ctxt[S2_VCPUS];
static struct kvm_s2_mmu *s2_loaded[S2_VCPUS];
/*
 * What the scenarios ask of the shims' own counts: faults that held the lock, those that had to retry, those that
 * mapped a block while other pages were being invalidated, those that took no lock; ranges that were unmapped in
 * parts; pages found young; agers that found no page table.
 */
static u64 s2_held, s2_retries, s2_blocks, s2_undone, s2_parts, s2_aged, s2_late;

struct kvm_dirty_log { u32 slot; void *dirty_bitmap; };
struct kvm_clear_dirty_log { u32 slot, num_pages; u64 first_page; void *dirty_bitmap; };
struct kvm_gfn_range { struct kvm_memory_slot *slot; gfn_t start, end; union kvm_mmu_notifier_arg arg; int attr_filter; bool may_block, lockless; };
typedef bool (*gfn_handler_t)(struct kvm *kvm, struct kvm_gfn_range *range);
typedef void (*on_lock_fn_t)(struct kvm *kvm);
typedef struct kvm_mmu_notifier_return { bool ret, found_memslot; } kvm_mn_ret_t;
struct kvm_s2_trans { int unused; };
struct s2_mm { int unused; };
struct vm_area_struct { unsigned long vm_start, vm_end, vm_flags; };
typedef unsigned long vm_flags_t;
static struct vm_area_struct s2_vma;
static struct { struct s2_mm *mm; } *current __attribute__((unused));

#define KVM_MEM_LOG_DIRTY_PAGES	1
#define KVM_MEM_READONLY	2
#define KVM_MEM_GUEST_MEMFD	4
#define KVM_MEMSLOT_INVALID	(1UL << 16)
#define KVM_USER_MEM_SLOTS	1
#define KVM_FILTER_SHARED	1
#define KVM_PFN_ERR_HWPOISON	(~0UL)
#define KVM_DIRTY_GFN_F_DIRTY	1
#define KVM_DIRTY_GFN_F_RESET	2
#define KVM_DIRTY_LOG_INITIALLY_SET 2
#define KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE 1
#define KVM_NV_GUEST_MAP_SZ	(3UL << 55)
#define KVM_PGT_FN(f)		f
/* A table and a leaf. Less than the kernel's, so that the memslot is several parts, and a harvest two. */
#define STAGE2_BUDGET		(512 + 4)
#define STAGE2_AGE_SIZE		(64 * PAGE_SIZE)
#define stage2_apply_range_resched(mmu, start, end, fn) stage2_apply_range(mmu, start, end, fn, true)
#define KVM_DIRTY_LOG_BATCH	4
#define kvm_arch_nr_memslot_as_ids(k) 1
#define __kvm_memslots(k, i)	(&(k)->slots)
#define kvm_memslots(k)		(&(k)->slots)
#define id_to_memslot(s, i)	(&(s)->memslots[i])
#define gfn_to_memslot(k, g)	(&(k)->slots.memslots[0])
#define __gfn_to_memslot(s, g)	((void)(g), &(s)->memslots[0])
#define gfn_to_hva_memslot_prot(s, g, w) (*(w) = true, (s)->userspace_addr + ((g) - (s)->base_gfn) * PAGE_SIZE)
#define hva_to_gfn_memslot(h, s) ((s)->base_gfn + (((h) - (s)->userspace_addr) >> PAGE_SHIFT))
#define kvm_for_each_vcpu(i, v, k) for (i = 0; i < S2_VCPUS && ((v) = &vm->vcpus[i]); i++)
#define kvm_get_running_vcpu()	(&vm->vcpus[s2.cpu()])
#define kvm_arch_allow_write_without_running_vcpu(k) true
#define refcount_read(r)	1
#define kvm_make_request(r, v)	((void)0)
#define kvm_make_all_cpus_request(k, r) false
#define signal_pending(t)	false
#define fatal_signal_pending(t)	false
#define atomic_read(a)		((a)->counter)
#define trace_kvm_dirty_ring_reset(r) ((void)0)
#define trace_kvm_dirty_ring_push(...) ((void)0)
#define trace_kvm_unmap_hva_range(...) ((void)0)
#define trace_kvm_age_hva(...)	((void)0)
#define trace_kvm_test_age_hva(...) ((void)0)
#define trace_kvm_access_fault(...) ((void)0)
#define trace_kvm_guest_fault(...) ((void)0)
#define kvm_arch_sync_dirty_log_range(k, s, f, n) ((void)0)
#ifdef S2_HAS_kvm_arch_sync_dirty_log
void kvm_arch_sync_dirty_log(struct kvm *kvm, struct kvm_memory_slot *slot);
static void kvm_dbm_free(struct kvm *kvm, struct kvm_memory_slot *slot);
#else
#define kvm_arch_sync_dirty_log(k, s) ((void)0)
#endif
#define kvm_arch_guest_memory_reclaimed(k) ((void)0)
#define mmu_notifier_range_blockable(r) ((r)->flags & MMU_NOTIFIER_RANGE_BLOCKABLE)
#define ktime_get_ns()		1UL
#define KVM_STATS_LOG_HIST_UPDATE(h, v) ((void)0)
#define clean_dcache_guest_page	NULL
#define invalidate_icache_guest_page NULL
#define kvm_init_nested_s2_mmu(m) ((void)(m))
#define kvm_nested_s2_wp(k)	((void)0)
#define kvm_nested_s2_unmap(k, b) ((void)0)
#define kvm_nested_flush_remote_tlbs(k) ((void)0)
#define kvm_encode_nested_level(n) 0
#define adjust_nested_fault_perms(n, p) (p)
#define adjust_nested_exec_perms(k, n, p) (p)
#define kvm_s2_trans_output(n)	0UL
#define kvm_s2_trans_size(n)	PAGE_SIZE
#define kvm_s2_trans_esr(n)	0
#define kvm_walk_nested_s2(v, i, n) 0
#define kvm_s2_handle_perm_fault(v, n) 0
#define nested_stage2_enabled	pgd_phys
#define kvm_inject_s2_fault(v, e) ((void)(e))
/* The fault, as the CPU reports it. */
#define kvm_vcpu_abt_issea(v)	0
#define kvm_handle_guest_sea(...) 0
#define kvm_vcpu_get_fault_ipa(v) ((v)->fault_ipa)
#define kvm_vcpu_get_hfar(v)	((v)->fault_ipa)
#define kvm_vcpu_trap_is_iabt(v) 0
#define kvm_vcpu_trap_is_exec_fault(v) 0
#define kvm_vcpu_abt_iss1tw(v)	0
#define kvm_vcpu_dabt_is_cm(v)	0
#define kvm_vcpu_trap_get_class(v) 0
#define kvm_vcpu_trap_get_fault(v) ((v)->esr & ESR_ELx_FSC)
#define kvm_is_write_fault(v)	((v)->write)
#define get_kvm_ipa_limit()	32
#define FAR_TO_FIPA_OFFSET(f)	0
#define vcpu_pc(v)		((u64 *)NULL)
#define kvm_is_error_hva(h)	0
#define kvm_incr_pc(v)		((void)0)
#define io_mem_abort(v, i)	(-EFAULT)
#define pkvm_mem_abort(d)	(-EFAULT)
#define gmem_abort(d)		(-EFAULT)
#define kvm_slot_has_gmem(s)	0
#define kvm_phys_size(m)	(1UL << 32)
#define kvm_inject_size_fault(v) ((void)0)
#define kvm_inject_sea(...)	0
#define kvm_inject_pabt(...)	((void)0)
#define kvm_inject_dabt(...)	((void)0)
#define kvm_inject_vabt(v)	((void)0)
#define kvm_inject_sea_dabt(...) 0
#define kvm_inject_sea_iabt(...) 0
#define kvm_inject_dabt_excl_atomic(...) ((void)0)
#define topup_hyp_memcache(m, n) 0
#define kvm_mmu_cache_min_pages(m) 2
#define pkvm_pgtable_stage2_mkyoung(...) ((void)0)
#define pkvm_pgtable_stage2_test_clear_young(...) false
/* The host's memory: one VMA of anonymous pages. */
#define vma_lookup(m, h)	(&s2_vma)
#define is_vm_hugetlb_page(v)	0
#define huge_page_shift(h)	PMD_SHIFT
#define hstate_vma(v)		0
#define kvm_vma_mte_allowed(v)	0
#define kvm_vma_is_cacheable(v)	1
#define kvm_has_mte(k)		0
#define sanitise_mte_tags(k, p, s) ((void)0)
#define VM_PFNMAP		1
#define VM_MIXEDMAP		2
#define VM_ALLOW_ANY_UNCACHED	4
#define pfn_is_map_memory(p)	1
#define kvm_supports_cacheable_pfnmap() 1
#define kvm_send_hwpoison_signal(h, s) ((void)0)
#define is_error_noslot_pfn(p)	0
#define FOLL_WRITE		1
#define get_user_mapping_size(k, h) (s2.thp(pfn) ? (int)PMD_SIZE : (int)PAGE_SIZE)
#define __pfn_to_phys(p)	((p) << PAGE_SHIFT)
#define kvm_release_page_unused(p) ((void)(p))
/* mmu_lock is held: the page is the guest's. What may write to it marks it dirty, all of a folio. */
#define kvm_release_faultin_page(k, p, unused, dirty) ({ if (!(unused) && (dirty)) s2.host(S2_PFN_DIRTY, (u64)(p)); })
static kvm_pfn_t s2_faultin(gfn_t gfn, bool write, bool *writable)
{
	int may_write;
	kvm_pfn_t pfn, again;

	/* The reference is taken by an operation that is fully ordered; then the PTE is read again. */
	do {
		pfn = s2.gup(gfn, write, &may_write);
		smp_mb();
		again = s2.gup(gfn, write, &may_write);
	} while (pfn != again);
	*writable = may_write;
	return pfn;
}
/* Nobody looks into a struct page of the guest's: its pfn stands for it. */
#define __kvm_faultin_pfn(slot, gfn, foll, writable, page) ((kvm_pfn_t)(*(page) = (void *)s2_faultin(gfn, (foll) & FOLL_WRITE, writable)))
/* 6.12 has no page there, and marks it itself. */
#define __gfn_to_pfn_memslot(s, gfn, a, i, as, write, writable, hva) s2_faultin(gfn, write, writable)
#define kvm_set_pfn_dirty(pfn)	s2.host(S2_PFN_DIRTY, pfn)
#define kvm_set_pfn_accessed(pfn) ((void)(pfn))
#define kvm_release_pfn_clean(pfn) ((void)(pfn))
#define kvm_is_device_pfn(pfn)	0
#define kvm_s2_trans_writable(n) true
#define kvm_s2_trans_readable(n) true
#define kvm_s2_trans_executable(n) true

static struct interval_tree_node *s2_slot_from(struct kvm_memslots *slots, int i, unsigned long start, unsigned long last)
{
	for (; i < slots->used_slots; i++)
		if (slots->memslots[i].hva_node[0].start <= last && start <= slots->memslots[i].hva_node[0].last)
			return &slots->memslots[i].hva_node[0];
	return NULL;
}
#define interval_tree_iter_first(t, s, l) s2_slot_from(&vm->kvm.slots, 0, s, l)
#define interval_tree_iter_next(n, s, l) \
	s2_slot_from(&vm->kvm.slots, container_of(n, struct kvm_memory_slot, hva_node[0]) - vm->kvm.slots.memslots + 1, s, l)

bool kvm_mmu_lock_needbreak(struct kvm *kvm);
void kvm_mmu_lock_cond_resched(struct kvm *kvm);
int kvm_arch_flush_remote_tlbs(struct kvm *kvm);
int kvm_arch_flush_remote_tlbs_range(struct kvm *kvm, gfn_t gfn, u64 nr_pages);
void kvm_arch_mmu_enable_log_dirty_pt_masked(struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t gfn_offset, unsigned long mask);
int __kvm_mmu_topup_memory_cache(struct kvm_mmu_memory_cache *mc, int capacity, int min);
int kvm_mmu_topup_memory_cache(struct kvm_mmu_memory_cache *mc, int min);
void kvm_dirty_ring_push(struct kvm_vcpu *vcpu, u32 slot, u64 offset);
bool kvm_use_dirty_bitmap(struct kvm *kvm);
void kvm_arch_flush_dirty_ring_tlbs(struct kvm *kvm);
void kvm_free_stage2_pgd(struct kvm_s2_mmu *mmu);
void kvm_uninit_stage2_mmu(struct kvm *kvm);
bool kvm_unmap_gfn_range(struct kvm *kvm, struct kvm_gfn_range *range);
bool kvm_age_gfn(struct kvm *kvm, struct kvm_gfn_range *range);
bool kvm_test_age_gfn(struct kvm *kvm, struct kvm_gfn_range *range);
void kvm_arch_dirty_log_hold_begin(struct kvm *kvm);
void kvm_arch_dirty_log_hold_end(struct kvm *kvm);
void kvm_arch_dirty_log_cond_resched(struct kvm *kvm);
static struct kvm_pgtable_mm_ops kvm_s2_mm_ops;
#include "inlines.inc"
/* A fault asks once with the lock held. */
#define S2_RETRY(again)		({ int _again = again; s2_held++; s2_retries += _again; _again; })
#define mmu_invalidate_retry_gfn(k, s, g) S2_RETRY((mmu_invalidate_retry_gfn)(k, s, g))
#define mmu_invalidate_retry(k, s) S2_RETRY((mmu_invalidate_retry)(k, s))
#define kvm_pgtable_stage2_map(p, a, size, ...) ({ s2_blocks += (size) > PAGE_SIZE && vm->kvm.mmu_invalidate_in_progress; \
	(kvm_pgtable_stage2_map)(p, a, size, __VA_ARGS__); })
static int s2_unmap_some(struct kvm_pgtable *pgt, u64 addr, u64 *size, u64 budget)
{
	u64 all = *size;
	int ret = kvm_pgtable_stage2_unmap_some(pgt, addr, size, budget);

	s2_parts += *size < all;
	return ret;
}
#define kvm_pgtable_stage2_unmap_some s2_unmap_some
#define kvm_pgtable_stage2_undo_wrprotect(p, a) ({ int _ret = (kvm_pgtable_stage2_undo_wrprotect)(p, a); s2_undone += _ret >= 0; _ret; })
#define kvm_pgtable_stage2_test_clear_young(...) ({ bool _young = (kvm_pgtable_stage2_test_clear_young)(__VA_ARGS__); s2_aged += _young; _young; })
#define kvm_s2_mmu_pgt_rcu(m)	({ struct kvm_pgtable *_pgt = (kvm_s2_mmu_pgt_rcu)(m); s2_late += !_pgt; _pgt; })
#include "functions.inc"

static struct kvm_memory_slot *s2_slot(void) { return &vm->kvm.slots.memslots[0]; }
static void s2_slot_init(int i, struct kvm_memory_slot slot)
{
	slot.hva_node[0] = (struct interval_tree_node) { slot.userspace_addr, slot.userspace_addr + slot.npages * PAGE_SIZE - 1 };
	vm->kvm.slots.memslots[i] = slot;
}

#ifdef S2_HAS_kvm_arch_sync_dirty_log
/* As kvm_dbm_alloc() and kvm_dbm_free(), without memory: only who has slots_lock looks at it. */
static unsigned long s2_open, s2_written[S2_GFNS / 64];
static struct kvm_dbm_unit s2_unit;
static struct kvm_dbm_log s2_dbm = { .nr_units = 1, .open = &s2_open, .written = s2_written, .units = &s2_unit };
static void kvm_dbm_free(struct kvm *kvm, struct kvm_memory_slot *slot)
{
	kvm_dbm_count_units(kvm, -(long)s2_open);
	slot->arch.dbm = NULL;
}
static void s2_dbm_begin(void)
{
	s2_open = 0;
	s2_unit = (struct kvm_dbm_unit) { 0 };
	__builtin_memset(s2_written, kvm_dirty_log_manual_protect_and_init_set(&vm->kvm) ? 0 : -1, sizeof(s2_written));
	s2_slot()->arch.dbm = &s2_dbm;
}
static void s2_dbm_end(void) { kvm_dbm_end(&vm->kvm, s2_slot()); }
const int s2_rfc = 1;
#else
#define s2_dbm_begin()
#define s2_dbm_end()
#endif

static void s2_logging(unsigned long *bitmap)
{
	s2_slot()->dirty_bitmap = bitmap;
	s2_slot()->flags &= ~KVM_MEM_LOG_DIRTY_PAGES;
	if (bitmap) {
		s2_slot()->flags |= KVM_MEM_LOG_DIRTY_PAGES;
		s2_dbm_begin();
	}
}

/* A VM with one memslot of 2 MiB and one of a page; with a log if there is a page for one. */
void s2_vm_init(unsigned long *bitmap, int manual)
{
	struct kvm *kvm = &vm->kvm;
	struct kvm_s2_mmu *mmu = &kvm->arch.mmu;
	struct kvm_pgtable *pgt;

	s2_held = s2_retries = s2_blocks = s2_undone = s2_parts = s2_aged = s2_late = 0;
	__builtin_memset(s2_host_ctxt, 0, sizeof(s2_host_ctxt));
	__builtin_memset(s2_loaded, 0, sizeof(s2_loaded));
	kvm->slots.used_slots = 2;
	s2_slot_init(0, (struct kvm_memory_slot) { .base_gfn = S2_BASE_GFN, .npages = S2_GFNS, .userspace_addr = S2_HVA });
	/* The first page is in another memslot, too; nobody accesses it there. */
	s2_slot_init(1, (struct kvm_memory_slot) { .base_gfn = 2 * S2_BASE_GFN, .npages = 1, .userspace_addr = S2_HVA });
	kvm->manual_dirty_log_protect = manual ? KVM_DIRTY_LOG_MANUAL_PROTECT_ENABLE | KVM_DIRTY_LOG_INITIALLY_SET : 0;
	s2_logging(bitmap);
	/* As kvm_init_stage2_mmu(). */
	mmu->vtcr = (64 - 32) | 1UL << 6 | VTCR_EL2_HA;	/* 32 bits from level 1: one page of pgd */
	mmu->arch = &kvm->arch;
	pgt = kzalloc(sizeof(*pgt), 0);
	WARN_ON(kvm_pgtable_stage2_init(pgt, mmu, &kvm_s2_mm_ops));
	mmu->pgd_phys = __pa(pgt->pgd);
	mmu->pgt = pgt;
	for (int i = 0; i < S2_VCPUS; i++) {
		vm->vcpus[i].kvm = kvm;
		vm->vcpus[i].arch.hw_mmu = mmu;
		vm->vcpus[i].dirty_ring = (struct kvm_dirty_ring) { .size = S2_RING, .soft_limit = S2_RING, .dirty_gfns = vm->rings[i] };
	}
}

/* From now on the log is in rings; KVM has the bitmap for writes by no vCPU. */
void s2_use_rings(void)
{
	vm->kvm.dirty_ring_size = S2_RING * sizeof(struct kvm_dirty_gfn);
	vm->kvm.dirty_ring_with_bitmap = true;
}

/* The scenario has CPUs with TLB invalidation by range. */
int s2_tlb_range;
void s2_use_tlb_range(int yes) { s2_tlb_range = yes; }

/* Blocks are split when the log is turned on, or cleared for the first time. */
void s2_eager_split(void) { vm->kvm.arch.mmu.split_page_chunk_size = PMD_SIZE; }

/* How a memslot begins to log: without write protection, which s2_wp_memslot() is for. */
void s2_log(unsigned long *bitmap)
{
	if (!bitmap)
		s2_dbm_end();
	s2_logging(bitmap);
}
void s2_wp_memslot(void)
{
	/* As kvm_arch_commit_memory_region(). */
	kvm_mmu_wp_memory_region(&vm->kvm, 0);
	kvm_mmu_split_memory_region(&vm->kvm, 0);
}
#ifndef S2_ARM64_V6_12
/* By somebody else than the log. 6.12 has no such function. */
void s2_protect(u64 ipa)
{
	write_lock(&vm->kvm.mmu_lock);
	WARN_ON(kvm_pgtable_stage2_wrprotect(vm->kvm.arch.mmu.pgt, ipa, PAGE_SIZE));
	write_unlock(&vm->kvm.mmu_lock);
	kvm_flush_remote_tlbs(&vm->kvm);
}
#endif
void s2_topup(int v) { WARN_ON(kvm_mmu_topup_memory_cache(&vm->vcpus[v].arch.mmu_page_cache, 2)); }
void s2_cache_free(int v) { kvm_mmu_free_memory_cache(&vm->vcpus[v].arch.mmu_page_cache); }

int s2_fault(int v, u64 ipa, int type, int write, int level)
{
	struct kvm_vcpu *vcpu = &vm->vcpus[v];
	int ret;

	vcpu->write = write;
	vcpu->esr = type + level;
	vcpu->fault_ipa = ipa;
	s2_host_ctxt[s2.cpu()].__hyp_running_vcpu = vcpu;
	s2_loaded[s2.cpu()] = vcpu->arch.hw_mmu;
	ret = kvm_handle_guest_abort(vcpu);
	s2_host_ctxt[s2.cpu()].__hyp_running_vcpu = NULL;
	s2_loaded[s2.cpu()] = NULL;
	return ret == 1 ? 0 : ret ?: -EINVAL;
}

#define S2_NO_CHANGE_PTE
#define s2_get_log s2_get_bitmap
#include "generic.h"
#undef s2_get_log

/* Userspace takes what is in the rings, has KVM reset them, and knows what to copy. */
static u64 s2_get_rings(void)
{
	u64 found = 0;

	for (int v = 0; v < S2_VCPUS; v++) {
		struct kvm_dirty_ring *ring = &vm->vcpus[v].dirty_ring;

		for (u64 i = ring->reset_index; ; i++) {
			struct kvm_dirty_gfn *entry = &ring->dirty_gfns[i % S2_RING];

			if (!(smp_load_acquire(&entry->flags) & KVM_DIRTY_GFN_F_DIRTY))
				break;
			{
				u64 bits[8] = { 0 };

				bits[entry->offset / 64] = 1UL << entry->offset % 64;
				found |= s2_bits(bits);
			}
			smp_store_release(&entry->flags, KVM_DIRTY_GFN_F_RESET);
		}
	}
	kvm_vm_ioctl_reset_dirty_pages(&vm->kvm);
	return found;
}
u64 s2_get_log(void) { return vm->kvm.dirty_ring_size ? s2_get_rings() : s2_get_bitmap(); }

/* Nothing of 7.3 is told of a change of a PTE: there is no scenario that calls it. */
void s2_free_pgd(void) { kvm_arch_flush_shadow_all(&vm->kvm); }
void *s2_pgt(void) { return vm->kvm.arch.mmu.pgt; }
/* As VTTBR_EL2 has it. */
void *s2_pgd(void)
{
	phys_addr_t phys = vm->kvm.arch.mmu.pgd_phys;

	return phys ? __va(phys) : NULL;
}
int s2_ioremap(u64 ipa, u64 pa) { return kvm_phys_addr_ioremap(&vm->kvm, ipa, pa, PAGE_SIZE, true); }
long s2_notifier_count(void) { return vm->kvm.mmu_invalidate_in_progress; }
u64 s2_page_count(u64 n) { return vm->pages[n].count; }
void s2_page_init(u64 n) { s2_page[n].count = 1; s2_page[n].private = 0; }

const char *const s2_arm_names[] = {
	"faults_parallel", "seq_retries", "age_done", "blocks_beside", "unmapped_in_parts",
#ifdef S2_HAS_age_gfn_range
	"age_late",
#endif
#ifdef S2_HAS_kvm_s2_undo_wrprotect
	"faults_lockless",
#endif
	NULL };
void s2_arms(u64 *to)
{
	*to++ = s2_held;
	*to++ = s2_retries;
	*to++ = s2_aged;
	*to++ = s2_blocks;
	*to++ = s2_parts;
#ifdef S2_HAS_age_gfn_range
	*to++ = s2_late;
#endif
#ifdef S2_HAS_kvm_s2_undo_wrprotect
	*to++ = s2_undone;
#endif
}

/* What is at an address of the arena's first pages; NULL if it has no name. */
const char *s2_name(const void *p)
{
	struct kvm *kvm = &vm->kvm;

	if (p == &kvm->mmu_invalidate_seq) return "mmu_invalidate_seq";
	if (p == &kvm->mmu_invalidate_in_progress) return "mmu_invalidate_in_progress";
	if (p == &kvm->mmu_invalidate_range_start) return "mmu_invalidate_range_start";
	if (p == &kvm->mmu_invalidate_range_end) return "mmu_invalidate_range_end";
	if (p == &kvm->arch.mmu.pgt) return "mmu.pgt";
	if (p == &kvm->arch.mmu.pgd_phys) return "mmu.pgd_phys";
	for (int i = 0; i < S2_PAGES; i++)
		if (p == &vm->pages[i].count) return "page_count()";
	if (p >= (void *)vm->rings && p < (void *)(vm->rings + S2_VCPUS)) return "dirty ring";
	return NULL;
}
const int s2_v7_3 = 1;
#ifdef S2_ARM64_V6_12
const int s2_v6_12 = 1;
#endif
