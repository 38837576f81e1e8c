/* SPDX-License-Identifier: GPL-2.0 */
/* arm64 of linux 7.3 and 6.12: the CPU, and the structures of KVM there. */
#define CONFIG_ARM64_4K_PAGES	1
#define CONFIG_HAVE_KVM_DIRTY_RING 1
#define __KVM_HAVE_ARCH_FLUSH_REMOTE_TLBS_RANGE
#define IS_ENABLED(c)		S2_ ## c
#define S2_CONFIG_KVM_ELIDE_TLB_FLUSH_IF_YOUNG 0
#define S2_CONFIG_ARM64_PA_BITS_52 0
#define S2_CONFIG_ARM64_4K_PAGES 1
#define S2_CONFIG_NUMA		0

typedef int8_t s8;
typedef int16_t s16;
typedef int64_t s64;
typedef u64 hpa_t;
#undef __always_inline
#define __always_inline		inline
#define __init
#define READ_ONCE_PLAIN(x)	(x)
#define UL(x)			x ## UL
#define BIT_ULL(n)		BIT(n)
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define round_down(x, y)	ALIGN_DOWN(x, y)
#define IS_ERR(p)		((unsigned long)(p) >= -4095UL)
#define ERR_PTR(e)		((void *)(long)(e))
#define PTR_ERR(p)		((long)(p))
#define static_assert		_Static_assert
#define data_race(x)		(x)
#undef S2_WORD
#define S2_WORD(p)		_Static_assert(sizeof(*(p)) == 8, "the checker knows words only")

/* The CPU, as in arm64.h. Whether it has TLB invalidation by range is the scenario's. */
#define ARM64_HW_PGTABLE_LEVEL_SHIFT(n)	((PAGE_SHIFT - 3) * (4 - (n)) + 3)
#define ARM64_HW_PGTABLE_LEVELS(va)	(((va) - 4) / (PAGE_SHIFT - 3))
#define VTCR_EL2_IPA(v)		(64 - ((v) & 0x3f))
#define VTCR_EL2_SL0_MASK	(3UL << 6)
#define VTCR_EL2_TGRAN_SL0_BASE	2UL
#define VTCR_EL2_LVLS(v)	3
#define system_supports_lpa2()	0
extern int s2_tlb_range;
#define system_supports_tlb_range() s2_tlb_range
#define MAX_TLBI_RANGE_PAGES	512UL
#define __flush_s2_tlb_range_op(op, a, n, s, l) ({ S2_AT; (void)(s); (void)(l); s2.tlbi(S2_r ## op, a, n); })
#define MT_S2_NORMAL		0xfUL
#define MT_S2_NORMAL_NC		0x5UL
#define MT_S2_DEVICE_nGnRE	0x1UL
#define MT_S2_AS_S1		0x7UL
#define PAGE_S2_MEMATTR(a, ...)	(MT_S2_ ## a << 2)
#define MT_NORMAL		0
#define MT_NORMAL_NC		3
#define MT_DEVICE_nGnRE		4
#define MT_DEVICE_nGnRnE	5
#define ARM64_HAS_STAGE2_FWB	1
#define ARM64_HAS_CACHE_DIC	1
#define ARM64_HAS_XNX		0
#define ARM64_KVM_HVHE		0
#define cpus_have_final_cap(c)	(c)
#define TLBI_TTL_UNKNOWN	0
#define dsb(x)			({ S2_AT; s2.dsb(S2_ ## x); })
#define isb()			((void)0)
#define __tlbi(op, ...)		({ S2_AT; s2.tlbi(S2_ ## op, (u64)(0, ## __VA_ARGS__), 0); })
#define __TLBI_VADDR(va, asid)	(va)
#define S2_vae2is		S2_vmalls12e1is
#define S2_vale2is		S2_vmalls12e1is
/* 6.12's takes what the instruction takes. */
#ifdef S2_ARM64_V6_12
#define __tlbi_level(op, a, l)	({ S2_AT; s2.tlbi(S2_ ## op, (u64)(a) << 12, l); })
#define VTCR_EL2_T0SZ(x)	(64 - (x))
#else
#define VTCR_EL2_T0SZ		0x3fUL
#define __tlbi_level(op, a, l)	({ S2_AT; s2.tlbi(S2_ ## op, (u64)(a), l); })
#endif
#define __tlbi_sync_s1ish_hyp()	dsb(ish)
#define noinline		__attribute__((noinline))
#define HCR_TGE			(1UL << 27)
#define HCR_HOST_VHE_FLAGS	HCR_TGE
/* What this CPU has in VTTBR_EL2: nothing, but where it has a vCPU. Without TGE that VMID is in use. */
#define __load_stage2(m, ...)	((void)(s2_loaded[s2.cpu()] = (m)))
#define read_sysreg(r)		HCR_TGE
#define write_sysreg(v, r)	write_sysreg_hcr(v)
#define write_sysreg_hcr(v)	s2.vmid(!((v) & HCR_TGE) && s2_loaded[s2.cpu()])
#define host_data_ptr(d)	(&s2_ ## d[s2.cpu()])
#define read_sysreg_el1(r)	0
#define write_sysreg_el1(v, r)	((void)(v))
#define TCR_EPD0_MASK		0
#define TCR_EPD1_MASK		0
#define SCTLR_ELx_M		0
/* Interrupts are off, which RCU waits for as it does for a read section. So it does for a CPU at EL2. */
#define local_irq_save(f)	((void)(f), rcu_read_lock())
#define local_irq_restore(f)	((void)(f), rcu_read_unlock())
#define ARM64_WORKAROUND_SPECULATIVE_AT 0
#define kvm_call_hyp(f, ...)	f(__VA_ARGS__)
#define kvm_call_hyp_nvhe(f, ...) ((void)0)

/* Not in a page table of stage 2: of the hypervisor's own, or of a VTCR that is computed. */
#define VTCR_EL2_FLAGS		0
#define VTCR_EL2_LVLS_TO_SL0(x)	0
#define VTCR_EL2_HA		(1UL << 21)
#define cpu_has_hw_af()		1
#define VTCR_EL2_DS		0
#define VTCR_EL2_VS		0
#define VTCR_EL2_VS_8BIT	0
#define VTCR_EL2_VS_16BIT	0
#define id_aa64mmfr0_parange_to_phys_shift(p) 48
#define has_vhe()		1
struct module;
#define VTCR_EL2_PS_SHIFT	16
#define VTCR_EL2_PS		(7UL << VTCR_EL2_PS_SHIFT)
#define stage2_pgtable_levels(x) 3
#define get_vmid_bits(x)	16
#define ARM64_WORKAROUND_AMPERE_AC03_CPU_38 0
#define ID_AA64MMFR0_EL1_PARANGE_48 5
#define ID_AA64MMFR0_EL1_PARANGE_52 6
#define ID_AA64MMFR0_EL1_PARANGE_SHIFT 0
#define cpuid_feature_extract_unsigned_field(r, s) 0
#define system_supports_bti_kernel() 0
#define system_supports_bti()	0
#define PTE_SHARED		0
#define is_kernel_in_hyp_mode()	1
#define VTCR_EL2_EPD1_MASK	0

/* RCU. A pointer in a register is none that the checker has to see. */
#define rcu_dereference_check(p, c) ({ WARN_ON(!(c) && !rcu_read_lock_held()); (p); })
#define rcu_dereference_raw(p)	(p)
#define rcu_access_pointer(p)	READ_ONCE(p)

#undef rcu_dereference_protected
#define rcu_dereference_protected(p, c) ({ WARN_ON(!(c)); (p); })
#undef lockdep_is_held
#define lockdep_is_held(l)	((void)(l), s2.held(S2_HELD_ANY))
#define try_cmpxchg(p, o, n)	({ __typeof__(*(p)) _want = *(o), _is = cmpxchg(p, _want, n); *(o) = _is; _is == _want; })

/* Locks. That of mn_active_invalidate_count is not mmu_lock, which arm64 has as an rwlock. */
#undef spin_lock
#undef spin_unlock
#define spin_lock(l)		({ S2_AT; s2.host(S2_MN_LOCK, 0); })
#define spin_unlock(l)		s2.host(S2_MN_UNLOCK, 0)
#define mutex_lock(l)		((void)(l))
#define mutex_unlock(l)		((void)(l))
#define lockdep_assert_held(l)	((void)(l))
#define rwlock_needbreak(l)	1
#define __might_resched(f, l, o) ((void)0)
#define cpu_relax()		((void)0)
#define cond_resched_rwlock_write(l) ({ write_unlock(l); write_lock(l); })
/* A release, and no more: README.md, "mmap_read_unlock()". */
#define mmap_read_lock(m)	((void)0)
#define mmap_read_unlock(m)	smp_wmb()
#define rcuwait_wake_up(w)	((void)0)

/* A scope that holds something: not left, but given up, if the execution has failed (sync.rs looks). */
#define guard(what)		S2_GUARD_ ## what
#define S2_GUARD_AT(n)		s2_guard_ ## n
#define S2_GUARD(n, leave, enter) int S2_GUARD_AT(n) __attribute__((cleanup(leave), unused)) = (enter, 0)
#define S2_GUARD_rcu()		S2_GUARD(__LINE__, s2_leave_rcu, rcu_read_lock())
#define S2_GUARD_read_lock(l)	S2_GUARD(__LINE__, s2_leave_read, read_lock(l))
#define S2_GUARD_write_lock(l)	S2_GUARD(__LINE__, s2_leave_write, write_lock(l))
static inline void s2_leave_rcu(int *g) { rcu_read_unlock(); }
static inline void s2_leave_read(int *g) { read_unlock(g); }
static inline void s2_leave_write(int *g) { write_unlock(g); }

/* Pages. The last reference frees. */
#undef get_page
#undef put_page
#undef page_count
#undef free_pages_exact
extern struct page *s2_page;
static inline void get_page(struct page *pg) { S2_RMW(&pg->count, S2_ADD, 1, S2_RELAXED); }
static inline void put_page(struct page *pg)
{
	if (S2_RMW(&pg->count, S2_ADD, -1, S2_RELAXED) == 1)
		free_page(page_address(pg));
}
static inline void free_pages_exact(void *p, size_t size) { S2_AT; s2.free(p, size >> PAGE_SHIFT); }
static inline long page_count(struct page *pg) { return READ_ONCE(pg->count); }
#define page_to_virt(pg)	page_address(pg)
#define __phys_to_pfn(p)	((p) >> PAGE_SHIFT)
#define gfn_to_gpa(g)		((gpa_t)(g) << PAGE_SHIFT)
#define gpa_to_gfn(g)		((gfn_t)((g) >> PAGE_SHIFT))
#define INVALID_GPA		(~0UL)
#define KVM_BUG_ON(c, k)	WARN_ON(c)
#define kvm_account_pgtable_pages(v, n) ((void)(v))
#define VM_WARN_ON_ONCE_VMA	VM_WARN_ON_ONCE
#define EIO			5
#define EINTR			4
#define ENXIO			6
#define INT_MAX			0x7fffffff
#define UINT_MAX		(~0U)
#define U64_MAX			(~0ULL)
#define BUILD_BUG_ON_MSG(c, m)	_Static_assert(!(c), m)

/* Bits of the RFC in patches/v7.3/rfc-hw-dirty, which slots_lock protects. */
#define test_and_set_bit(n, p)	({ u64 _bit = 1UL << ((n) % 64), *_at = (u64 *)(p) + (n) / 64, _was = *_at; *_at |= _bit; !!(_was & _bit); })
#define clear_bit(n, p)		((void)(((u64 *)(p))[(n) / 64] &= ~(1UL << ((n) % 64))))
#define for_each_set_bit(i, p, n) for (i = 0; i < (n); i++) if ((p)[i / 64] >> i % 64 & 1)
#define bitmap_empty(p, n)	(!*(p))
#define hweight_long(x)		__builtin_popcountl(x)
#define atomic_long_read(a)	READ_ONCE((a)->counter)
#define atomic_long_or(m, p)	((void)S2_RMW(&(p)->counter, S2_OR, m, S2_RELAXED))
#define atomic_long_fetch_or(m, p) S2_RMW(&(p)->counter, S2_OR, m, S2_FULL)

#include "list.h"
#include "defines.inc"
struct kvm_pgtable;
struct rb_root_cached { int unused; };
struct interval_tree_node { unsigned long start, last; };
/* As many objects as a fault needs, or a block that is split ahead of faults. */
#define KVM_ARCH_NR_OBJS_PER_MEMORY_CACHE 3
struct kvm_mmu_memory_cache { gfp_t gfp_zero, gfp_custom; u64 init_value; void *kmem_cache; int capacity, nobjs; void **objects;
			      void *store[KVM_ARCH_NR_OBJS_PER_MEMORY_CACHE]; };
#define kvmalloc_array(n, s, g)	(mc->store)
#define kvfree(p)		((void)(p))
#define memset64(p, v, n)	((void)0)
struct kvm_arch;
struct kvm_s2_mmu { struct kvm_pgtable *pgt; phys_addr_t pgd_phys; u64 vtcr; int *last_vcpu_ran; struct kvm_arch *arch;
		    struct kvm_mmu_memory_cache split_page_cache; u64 split_page_chunk_size; atomic_long_t refcnt;
		    unsigned long dbm_units; };
struct kvm_memory_slot { struct interval_tree_node hva_node[2]; gfn_t base_gfn; unsigned long npages; unsigned long *dirty_bitmap;
			 unsigned long userspace_addr; u32 flags; short id; u16 as_id; struct { struct kvm_dbm_log *dbm; } arch; };
struct kvm_memslots { struct { int unused; } hva_tree; int node_idx, used_slots; struct kvm_memory_slot memslots[2]; };
struct kvm_arch { struct kvm_s2_mmu mmu; struct kvm_s2_mmu *nested_mmus[2]; int nested_mmus_size; u64 dirty_log_hold_start; };
struct kvm {
	int mmu_lock, srcu, slots_lock, mn_invalidate_lock, mn_memslots_update_rcuwait;
	struct mmu_notifier mmu_notifier;
	unsigned long mmu_invalidate_seq;
	bool vm_dead;
	long mmu_invalidate_in_progress;
	gfn_t mmu_invalidate_range_start, mmu_invalidate_range_end;
	u64 mn_active_invalidate_count, gpc_invalidate_seq;
	u64 manual_dirty_log_protect;
	u32 dirty_ring_size;
	bool dirty_ring_with_bitmap;
	struct kvm_memslots slots;
	struct kvm_arch arch;
	struct { struct { u64 remote_tlb_flush_requests, remote_tlb_flush; } generic; u64 dirty_log_hold_max_ns, dirty_log_hold_hist, dirty_log_hw_pages, dirty_log_hw_units; } stat;
};
struct kvm_dirty_gfn { u64 flags, slot, offset; };
struct kvm_dirty_ring { u64 dirty_index, reset_index; u32 size, soft_limit; struct kvm_dirty_gfn *dirty_gfns; int index; };
struct kvm_run { int exit_reason; };
struct kvm_vcpu {
	struct kvm *kvm;
	int mutex;
	struct kvm_run *run;
	u64 esr, fault_ipa;		/* the syndrome */
	bool write;
	struct kvm_dirty_ring dirty_ring;
	struct { struct kvm_s2_mmu *hw_mmu; struct kvm_mmu_memory_cache mmu_page_cache, pkvm_memcache; } arch;
	struct { u64 pf_taken, pf_fixed, pf_spurious, pf_fast; } stat;
};
struct kvm_gfn_range;
union kvm_mmu_notifier_arg { unsigned long attributes; };
#define kvm_vcpu_get_esr(v)	((v)->esr)
#define kvm_vcpu_trap_get_fault_type(v) ((v)->esr & ESR_ELx_FSC_TYPE)
#define kvm_s2_mmu_to_kvm(m)	container_of((m)->arch, struct kvm, arch)
#define is_protected_kvm_enabled() 0
#define kvm_vm_is_protected(k)	0
void __kvm_tlb_flush_vmid_ipa(struct kvm_s2_mmu *mmu, phys_addr_t ipa, int level);
/* Before the milestone "relax" it has three arguments: its own declaration, in functions.inc, says how many. */
void __kvm_tlb_flush_vmid_ipa_nsh();
void __kvm_tlb_flush_vmid(struct kvm_s2_mmu *mmu);
void __kvm_tlb_flush_vmid_range(struct kvm_s2_mmu *mmu, phys_addr_t start, unsigned long pages);
