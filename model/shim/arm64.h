/* SPDX-License-Identifier: GPL-2.0 */
/* arm64: the CPU, and the structures of KVM there. */
#define ARM64_HW_PGTABLE_LEVEL_SHIFT(n)	((PAGE_SHIFT - 3) * (4 - (n)) + 3)
#define ARM64_HW_PGTABLE_LEVELS(va)	(((va) - 4) / (PAGE_SHIFT - 3))
#define VTCR_EL2_IPA(v)		(64 - ((v) & 0x3f))
#define VTCR_EL2_SL0_MASK	(3UL << 6)
#define VTCR_EL2_TGRAN_SL0_BASE	2UL
#define MT_NORMAL		0
#define MT_DEVICE_nGnRE		5
#define MT_S2_NORMAL		0xfUL
#define MT_S2_DEVICE_nGnRE	0x1UL
#define PAGE_S2_MEMATTR(a)	(MT_S2_ ## a << 2)
/* A CPU with FWB and DIC: no cache maintenance, pages may always be executed. */
#define ARM64_HAS_STAGE2_FWB	0
#define ARM64_HAS_CACHE_DIC	1
#define cpus_have_const_cap(c)	1
#define __flush_dcache_area(p, s) ((void)(p), (void)(s))
#define dsb(x)			({ S2_AT; s2.dsb(S2_ ## x); })
#define isb()			((void)0)
#define __tlbi(op)		({ S2_AT; s2.tlbi(S2_ ## op, 0, 0); })
#define __tlbi_level(op, a, l)	({ S2_AT; s2.tlbi(S2_ ## op, (u64)(a) << 12, l); })
#define __tlbi_sync_s1ish_hyp()	dsb(ish)
struct tlb_inv_context { int unused; };
#define __tlb_switch_to_guest(m, c) ((void)(m), (void)(c), s2.vmid(1))
#define __tlb_switch_to_host(c)	s2.vmid(0)
#define kvm_call_hyp(f, ...)	f(__VA_ARGS__)

#include "defines.inc"
struct kvm_pgtable;
void kvm_mmu_memory_cache_put(struct kvm_mmu_memory_cache *mc, void *obj);
struct kvm_s2_mmu { struct kvm_pgtable *pgt; struct kvm *kvm; phys_addr_t pgd_phys; int *last_vcpu_ran; };
struct kvm_memory_slot { gfn_t base_gfn; unsigned long npages; unsigned long *dirty_bitmap;
			 unsigned long userspace_addr; u32 flags; };
struct kvm_memslots { int used_slots; struct kvm_memory_slot memslots[2]; };
struct kvm {
	int mmu_lock, srcu;
	struct mmu_notifier mmu_notifier;
	unsigned long mmu_notifier_seq;
	long mmu_notifier_count;
	unsigned long mmu_notifier_range_start, mmu_notifier_range_end;
	bool manual_dirty_log_protect;
	struct kvm_memslots slots;
	struct { struct kvm_s2_mmu mmu; u64 vtcr; } arch;
	struct { unsigned long change_pte[8]; u64 stage2_ages[8]; } stat;
};
struct kvm_vcpu {
	struct kvm *kvm;
	int mutex;
	bool write; unsigned long fault_level;	/* the syndrome */
	struct { struct kvm_s2_mmu *hw_mmu; struct kvm_mmu_memory_cache mmu_page_cache;
		 unsigned int idle_perm_faults; gfn_t idle_perm_gfn; } arch;
	struct { u64 stage2_faults_lockless, stage2_faults_parallel, stage2_faults_repeated, mmu_seq_retries, stage2_blocks_split,
		     stage2_tables_collapsed, stage2_races_lost, stage2_entries_locked; } stat;
};
void __kvm_tlb_flush_vmid_ipa(struct kvm_s2_mmu *mmu, phys_addr_t ipa, int level);
void __kvm_tlb_flush_vmid_ipa_local(struct kvm_s2_mmu *mmu, phys_addr_t ipa, int level);
void __kvm_tlb_flush_vmid(struct kvm_s2_mmu *mmu);
