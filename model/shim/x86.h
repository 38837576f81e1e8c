/* SPDX-License-Identifier: GPL-2.0 */
/* x86: the CPU, and the structures of KVM there. */
#ifndef S2_X86_H
#define S2_X86_H
#include "list.h"
typedef u64 gva_t, hpa_t, hfn_t;
typedef int8_t s8; typedef int64_t s64; typedef unsigned long ulong; typedef unsigned int uint;
#define CONFIG_X86_64
#define __read_mostly
#undef __always_inline
#define __always_inline		inline __attribute__((__always_inline__))
#define module_param_named(...)
#define static_assert(...)	_Static_assert(__VA_ARGS__, "")
#define GENMASK_ULL(h, l)	GENMASK(h, l)
#define DECLARE_BITMAP(n, b)	unsigned long n[((b) + 63) / 64]
#define pr_err(...)		((void)0)
#define pr_err_ratelimited(...)	((void)0)
#define printk_once(...)	((void)0)
#define BUG()			s2.fail("BUG()", __FILE__, __LINE__)
#define ENOSPC			28
#define ENOTSUPP		524
#define hash_64(v, b)		((v) & ((1U << (b)) - 1))

/* Where the code reads something else than a word no other thread writes to it; it is an access without a mark. */
#undef READ_ONCE
#define READ_ONCE(x)		({ S2_AT; sizeof(x) == 8 ? (__typeof__(x))s2.load(&(x), S2_RELAXED) : (x); })
/*
 * The code is checked against the kernel's memory model. There is one place where it relies on x86's own, which keeps
 * stores in order: fast_page_fault() finds the struct page of a shadow page that is being linked.
 */
#undef WRITE_ONCE
#define WRITE_ONCE(x, v)	({ S2_AT; S2_WORD(&(x)); s2.store(&(x), (u64)(v), __builtin_strcmp(__func__, "__set_spte") ?	\
									 S2_RELAXED : S2_RELEASE); })
#undef smp_load_acquire
#define smp_load_acquire(p)	({ S2_AT; __typeof__(*(p)) _l; if (sizeof(_l) == 8) _l = (__typeof__(*(p)))s2.load(p, S2_ACQUIRE);	\
				   else { _l = *(p); s2.fence(S2_ACQUIRE); } _l; })
#define cmpxchg64(p, o, n)	cmpxchg(p, o, n)
/* <asm-generic/barrier.h>. On x86 it is an xchg(), which is no weaker. */
#define smp_store_mb(x, v)	({ WRITE_ONCE(x, v); smp_mb(); })
/* A bit that is set without a value returned has no order; with one it is fully ordered. */
#define set_bit(n, p)		((void)S2_RMW((u64 *)(p) + (n) / 64, S2_OR, 1UL << ((n) % 64), S2_RELAXED))
#define test_and_clear_bit(n, p) !!(S2_RMW((u64 *)(p) + (n) / 64, S2_ANDNOT, 1UL << ((n) % 64), S2_FULL) & 1UL << ((n) % 64))
#define s2_bit(n, p)		((p)[(n) / 64] >> ((n) % 64) & 1)
#define __test_and_set_bit(n, p) ({ bool _o = s2_bit(n, p); (p)[(n) / 64] |= 1UL << ((n) % 64); _o; })
#define __clear_bit(n, p)	((p)[(n) / 64] &= ~(1UL << ((n) % 64)))
#define for_each_set_bit(i, p, n) for ((i) = 0; (i) < (n); (i)++) if (!s2_bit(i, p)) {} else
typedef struct { int counter; } atomic_t;
#define atomic_set(p, v)	((void)((p)->counter = (v)))
#define preempt_disable()	((void)0)
#define preempt_enable()	((void)0)
/* A chain that is locked: the holder goes on first. */
#define cpu_relax()		s2.relax()
#define local_irq_disable()	({ S2_AT; s2.irq(S2_IRQ_OFF, 0); })
#define local_irq_enable()	({ S2_AT; s2.irq(S2_IRQ_ON, 0); })
#define spin_needbreak(l)	1
#define cond_resched_lock(l)	({ spin_unlock(l); spin_lock(l); 1; })
#define lockdep_assert_held(l)	((void)(l))

/* Page tables come from caches of pages that hold zeros. */
#undef clear_page
#define clear_page(p)		((void)(p))

/* pages of the guest's: there is no struct page for them, see s2_page_live() */
#define pfn_to_page(n)		(s2_page + (n))
#define page_to_pfn(p)		((u64)((p) - s2_page))
#undef page_count
#define page_count(p)		s2.page_live(page_to_pfn(p))
#define PageReserved(p)		0
#define pfn_valid(p)		1
#define pfn_to_hpa(p)		((p) << PAGE_SHIFT)
#define is_zero_pfn(p)		0
#define pat_enabled()		0
#define pat_pfn_immune_to_uc_mtrr(p) 0
#define e820__mapped_raw_any(...) 1
#define E820_TYPE_RAM		1
#define VM_BUG_ON_PAGE(c, p)	WARN_ON(c)
#define gfn_to_gpa(g)		((g) << PAGE_SHIFT)
#define pte_huge(p)		0

/* the CPU: 40 bits of physical addresses, no L1TF */
static struct { u32 extended_cpuid_level; u8 x86_phys_bits, x86_cache_bits; } __attribute__((unused))
	boot_cpu_data = { 0x80000008, 40, 40 };
#define cpuid_eax(x)		40
#define X86_BUG_L1TF		0
#define boot_cpu_has_bug(x)	0
#define VMX_EPT_READABLE_MASK	0x1ull
#define VMX_EPT_WRITABLE_MASK	0x2ull
#define VMX_EPT_EXECUTABLE_MASK	0x4ull
#define VMX_EPT_RWX_MASK	7ull

/* KVM */
enum { OUTSIDE_GUEST_MODE, IN_GUEST_MODE, EXITING_GUEST_MODE, READING_SHADOW_PAGE_TABLES };
#define KVM_REQUEST_MASK	63
#define KVM_REQUEST_WAIT	BIT(9)
#define KVM_REQ_TLB_FLUSH	(0 | KVM_REQUEST_WAIT)
#define KVM_REQ_MMU_RELOAD	(1 | KVM_REQUEST_WAIT)
#define KVM_REQ_MMU_SYNC	17
#define KVM_REQ_TLB_FLUSH_CURRENT 26
#define PT64_ROOT_MAX_LEVEL	4
#define VALID_PAGE(x)		((x) != INVALID_PAGE)
#define INVALID_PAGE		(~(hpa_t)0)
#define KVM_MEM_READONLY	2
#define KVM_MEMSLOT_INVALID	(1UL << 16)
#define KVM_ADDRESS_SPACE_NUM	1
#define KVM_USER_MEM_SLOTS	1
#define KVM_MMU_HASH_SHIFT	4
#define KVM_PFN_ERR_FAULT	(~0UL)
#define is_error_pfn(p)		((p) == KVM_PFN_ERR_FAULT)
#define is_error_noslot_pfn(p)	is_error_pfn(p)
#define is_noslot_pfn(p)	0
#include "defines.inc"

struct kvm_rmap_head { unsigned long val; };
struct kvm_lpage_info { int disallow_lpage; };
struct kvm_memory_slot { gfn_t base_gfn; unsigned long npages; unsigned long *dirty_bitmap;
			 unsigned long userspace_addr; u32 flags; u8 as_id;
			 struct { struct kvm_rmap_head *rmap[KVM_NR_PAGE_SIZES];
				  struct kvm_lpage_info *lpage_info[KVM_NR_PAGE_SIZES - 1]; } arch; };
struct kvm_memslots { int used_slots; u64 generation; struct kvm_memory_slot memslots[2]; };
struct kvm {
	int mmu_lock, srcu, slots_lock;
	struct mmu_notifier mmu_notifier;
	unsigned long mmu_notifier_seq;
	long mmu_notifier_count;
	unsigned long mmu_notifier_range_start, mmu_notifier_range_end;
	bool manual_dirty_log_protect;
	struct kvm_memslots slots;
	struct {
		bool tdp_mmu_enabled;
		u8 mmu_valid_gen;
		unsigned long n_used_mmu_pages, n_max_mmu_pages, indirect_shadow_pages;
		struct list_head tdp_mmu_roots, tdp_mmu_pages, active_mmu_pages, zapped_obsolete_pages,
				 lpage_disallowed_mmu_pages;
		struct hlist_head mmu_page_hash[1 << KVM_MMU_HASH_SHIFT];
	} arch;
	struct { u64 remote_tlb_flush, mmu_cache_miss, mmu_shadow_zapped, mmu_recycled, mmu_unsync, lpages,
		     nx_lpage_splits, max_mmu_page_hash_collisions, change_pte[8], mmu_ages_lost, mmu_ages_waited; } stat;
};
struct kvm_mmu_page;
struct kvm_mmu_root_info { u64 pgd, hpa; };
struct kvm_mmu {
	int (*sync_page)(struct kvm_vcpu *vcpu, struct kvm_mmu_page *sp);
	hpa_t root_hpa;
	u64 root_pgd;
	struct { union kvm_mmu_page_role base; } mmu_role;
	u8 root_level, shadow_root_level;
	bool direct_map;
	struct kvm_mmu_root_info prev_roots[KVM_MMU_NUM_PREV_ROOTS];
	u64 *pae_root;
};
struct kvm_vcpu {
	struct kvm *kvm;
	u64 mode, requests;
	struct {
		struct kvm_mmu *mmu, root_mmu, guest_mmu;
		struct kvm_mmu_memory_cache mmu_pte_list_desc_cache, mmu_shadow_page_cache, mmu_gfn_array_cache,
					    mmu_page_header_cache;
		bool write_fault_to_shadow_pgtable;
	} arch;
	bool guest_fault;
	struct { u64 pf_fixed, mmu_seq_retries, fast, spurious; } stat;
};
struct kvm_tlb_range { u64 start_gfn, pages; };
extern struct s2_x86_ops {
	int (*tlb_remote_flush_with_range)(struct kvm *kvm, struct kvm_tlb_range *range);
	void (*enable_log_dirty_pt_masked)(struct kvm *kvm, struct kvm_memory_slot *slot, gfn_t offset, unsigned long mask);
	u64 (*get_mt_mask)(struct kvm_vcpu *vcpu, gfn_t gfn, bool is_mmio);
} kvm_x86_ops;

#define kvm_set_pfn_dirty(p)	s2.host(S2_PFN_DIRTY, p)
#define kvm_set_pfn_accessed(p)	s2.host(S2_PFN_ACCESSED, p)
#define kvm_release_pfn_clean(p) ((void)(p))
#define kvm_is_reserved_pfn(p)	0
#define kvm_is_zone_device_pfn(p) 0
#define PageCompound(p)		s2.thp(page_to_pfn(p))
#define __kvm_memslots(k, i)	(&(k)->slots)
#define kvm_memslots(k)		(&(k)->slots)
#define kvm_vcpu_memslots(v)	(&(v)->kvm->slots)
#define kvm_memslots_for_spte_role(k, r) (&(k)->slots)
#define id_to_memslot(s, i)	(&(s)->memslots[i])
#define __gfn_to_memslot(s, g)	((void)(g), &(s)->memslots[0])
#define gfn_to_memslot(k, g)	__gfn_to_memslot(&(k)->slots, g)
#define kvm_vcpu_gfn_to_memslot(v, g) gfn_to_memslot((v)->kvm, g)
#define kvm_for_each_memslot(m, s) for (m = (s)->memslots; m < (s)->memslots + (s)->used_slots; m++)
#define trace_kvm_mmu_get_page(...) ((void)0)
#define trace_kvm_mmu_spte_requested(...) ((void)0)
#define trace_kvm_mmu_set_spte(...) ((void)0)
#define trace_kvm_mmu_sync_page(...) ((void)0)
#define trace_kvm_mmu_unsync_page(...) ((void)0)
#define trace_kvm_mmu_prepare_zap_page(...) ((void)0)
#define trace_kvm_mmu_zap_all_fast(...) ((void)0)
#define trace_kvm_age_page(...)	((void)0)
#define trace_mark_mmio_spte(...) ((void)0)
/* enum RET_PF_*: fixed, spurious */
#define trace_fast_page_fault(v, g, e, p, o, r) ((v)->stat.fast += (r) == RET_PF_FIXED, (v)->stat.spurious += (r) == RET_PF_SPURIOUS)

extern struct kmem_cache *mmu_page_header_cache;
extern bool tdp_enabled;
void kvm_flush_remote_tlbs(struct kvm *kvm);
void mark_page_dirty_in_slot(struct kvm_memory_slot *memslot, gfn_t gfn);
void kvm_mmu_set_mask_ptes(u64 user_mask, u64 accessed_mask, u64 dirty_mask, u64 nx_mask, u64 x_mask, u64 p_mask,
			   u64 acc_track_mask, u64 me_mask);
#include "inlines.inc"
#endif
