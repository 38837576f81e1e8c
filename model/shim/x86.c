// SPDX-License-Identifier: GPL-2.0
/*
 * x86: what the functions that are cut out need, those functions (functions.inc), and what the scenarios call. All
 * objects are in the arena, where the checker sees each access. spte.c, tdp_iter.c and tdp_mmu.c are compiled as
 * they are, next to this.
 */
#include "kernel.h"
#include "mmu_internal.h"
#include "spte.h"
#include "tdp_mmu.h"

char s2_arena[S2_PAGES * 4096] __attribute__((aligned(4096)));
struct s2_ops s2;
const int s2_x86 = 1;

#define S2_VCPUS 4
/* The first pages of the arena. */
struct s2_vm {
	struct kvm kvm;
	struct kvm_vcpu vcpus[S2_VCPUS] __attribute__((aligned(8)));
	struct kvm_rmap_head rmap[KVM_NR_PAGE_SIZES][S2_GFNS];
	struct kvm_rmap_head rmap_other[KVM_NR_PAGE_SIZES];
	struct kvm_lpage_info lpage[KVM_NR_PAGE_SIZES - 1][2];
	struct page pages[S2_PAGES];
	/* The guest's lowest page table, in a page of the guest's that nobody maps: GPT_GFN. */
	u64 guest_pt[512] __attribute__((aligned(4096)));
};
#define vm ((struct s2_vm *)s2_arena)
struct page *s2_page = ((struct s2_vm *)s2_arena)->pages;
const unsigned long s2_reserved = (sizeof(struct s2_vm) + 4095) / 4096;

/* How the VM is made: see s2_mode(). */
enum { MODE_TDP_MMU = 1, MODE_GUEST_PAGING = 2, MODE_NO_AD = 4, MODE_CLEAR_DIRTY = 8, MODE_PREFETCH = 16 };
static int mode, nr_vcpus;
#define GPT_GFN			(S2_BASE_GFN + 256)

bool tdp_enabled;
struct kmem_cache *mmu_page_header_cache;
static struct kmem_cache *pte_list_desc_cache;
struct s2_x86_ops kvm_x86_ops;
static unsigned long kvm_total_used_mmu_pages;
static const int max_huge_page_level = PG_LEVEL_2M;

struct kvm_dirty_log { u32 slot; void *dirty_bitmap; };
struct kvm_clear_dirty_log { u32 slot, num_pages; u64 first_page; void *dirty_bitmap; };
#define kvm_arch_sync_dirty_log(k, s) ((void)0)
#define kvm_arch_guest_memory_reclaimed(k) ((void)0)
#define kvm_arch_flush_remote_tlb(k) (-ENOTSUPP)
#define kvm_slot_page_track_add_page(...) ((void)0)
#define kvm_slot_page_track_remove_page(...) ((void)0)
#define kvm_page_track_is_active(...) false
#define set_mmio_spte(...)	false
#define get_mmio_spte_gfn(s)	0
#define mark_mmio_spte(...)	((void)0)
#define is_pae(v)		1
#define kvm_mmu_audit(v, p)	((void)0)
#define kvm_mtrr_check_gfn_range_consistency(...) true
#define vcpu_clear_mmio_info(...) ((void)0)
#define MMIO_GVA_ANY		0
#define handle_abnormal_pfn(...) false
#define try_async_pf(v, prefault, gfn, gpa, p, wr, map) ({ int _w; *(p) = s2.gup(gfn, wr, &_w); *(map) = _w; false; })
#define gfn_to_pfn_memslot_atomic(s, g) ({ int _w; s2.gup(g, 2, &_w); })
#define host_pfn_mapping_level(v, g, pfn, s) (s2.thp(pfn) ? PG_LEVEL_2M : PG_LEVEL_4K)
#undef get_page
#undef put_page
#define put_page(p)		((void)(p))
struct x86_exception { int unused; };
/* The guest's own fault. */
#define kvm_inject_emulated_page_fault(v, f) ((v)->guest_fault = true)
#define shadow_page_table_clear_flood(...) ((void)0)
#define is_write_protection(v)	1
#define kvm_read_cr4_bits(v, b)	0

bool is_nx_huge_page_enabled(void) { return false; }

/* get_user_pages_fast() of several pages: as many as are present and may be written to. */
static int gfn_to_page_many_atomic(struct kvm_memory_slot *slot, gfn_t gfn, struct page **pages, int nr)
{
	int i;

	for (i = 0; (mode & MODE_PREFETCH) && i < nr && gfn + i < S2_BASE_GFN + 2; i++) {
		u64 pfn = gfn_to_pfn_memslot_atomic(slot, gfn + i);

		if (is_error_pfn(pfn))
			break;
		pages[i] = pfn_to_page(pfn);
	}
	return i;
}

/* Reading the guest's page table. What leads to the lowest one never changes. */
static int kvm_vcpu_read_guest_atomic(struct kvm_vcpu *vcpu, gpa_t gpa, void *data, unsigned long len)
{
	unsigned long i;

	for (i = 0; i < len / 8; i++)
		((u64 *)data)[i] = gpa >> PAGE_SHIFT == GPT_GFN ? READ_ONCE(vm->guest_pt[gpa % PAGE_SIZE / 8 + i]) : 1;
	return 0;
}

/*
 * kvm_make_all_cpus_request(), as far as CPUs are concerned that are in the guest or read shadow pages. A CPU in the
 * guest leaves it, flushes and goes on: its TLB is emptied here, at once.
 */
static bool kvm_request_needs_ipi(struct kvm_vcpu *vcpu, unsigned req);
static inline void kvm_make_request(int req, struct kvm_vcpu *vcpu);
bool kvm_make_all_cpus_request(struct kvm *kvm, unsigned int req)
{
	for (int i = 0; i < nr_vcpus; i++) {
		if (req != KVM_REQ_TLB_FLUSH)
			kvm_make_request(req, &vm->vcpus[i]);
		if (kvm_request_needs_ipi(&vm->vcpus[i], req))
			s2.irq(S2_IRQ_KICK, i);
	}
	if (req == KVM_REQ_TLB_FLUSH) {
		S2_AT;
		s2.tlbi(S2_vmalls12e1is, 0, 0);
	}
	return true;
}

static void mark_unsync(u64 *spte);
static bool is_obsolete_sp(struct kvm *kvm, struct kvm_mmu_page *sp);
static bool kvm_mmu_prepare_zap_page(struct kvm *kvm, struct kvm_mmu_page *sp, struct list_head *invalid_list);
static void kvm_mmu_commit_zap_page(struct kvm *kvm, struct list_head *invalid_list);
typedef bool (*slot_level_handler) (struct kvm *kvm, struct kvm_rmap_head *rmap_head);

/* paging_tmpl.h for PTTYPE 64 */
#define PTTYPE			64
#define pt_element_t		u64
#define guest_walker		guest_walker64
#define FNAME(name)		paging64_##name
#define PT_LVL_ADDR_MASK(l)	PT64_BASE_ADDR_MASK
#define PT_MAX_FULL_LEVELS	PT64_ROOT_MAX_LEVEL
#define PT_GUEST_DIRTY_SHIFT	PT_DIRTY_SHIFT
#define PT_GUEST_DIRTY_MASK	PT_DIRTY_MASK
#define PT_GUEST_ACCESSED_MASK	PT_ACCESSED_MASK
#define PT_HAVE_ACCESSED_DIRTY(m) true
#define PTTYPE_EPT		18
#define gpte_to_gfn(pte)	gpte_to_gfn_lvl((pte), PG_LEVEL_4K)
static inline int paging64_is_present_gpte(unsigned long pte);
static inline unsigned paging64_gpte_access(u64 gpte);
#define paging64_is_rsvd_bits_set(...) false
struct guest_walker64;
static int paging64_walk_addr(struct guest_walker64 *walker, struct kvm_vcpu *vcpu, gpa_t addr, u32 access);

#include "functions.inc"

/* The guest has four levels. All but the lowest page table are as they are for ever. */
static int paging64_walk_addr(struct guest_walker64 *w, struct kvm_vcpu *vcpu, gpa_t addr, u32 access)
{
	w->level = PG_LEVEL_4K;
	w->max_level = 4;
	for (int i = 0; i < 4; i++) {
		w->table_gfn[i] = GPT_GFN + i;
		w->pte_gpa[i] = (GPT_GFN + i) * PAGE_SIZE + (addr >> (12 + 9 * i)) % 512 * 8;
		w->pt_access[i] = ACC_ALL;
		w->ptes[i] = 1;
	}
	w->ptes[0] = READ_ONCE(vm->guest_pt[(addr >> PAGE_SHIFT) % 512]);
	w->pte_access = paging64_gpte_access(w->ptes[0]);
	w->gfn = gpte_to_gfn(w->ptes[0]);
	return paging64_is_present_gpte(w->ptes[0]);
}

static struct kvm_memory_slot *s2_slot(void) { return &vm->kvm.slots.memslots[0]; }
static u64 s2_mt_mask(struct kvm_vcpu *vcpu, gfn_t gfn, bool is_mmio) { return 0; }

/* MODE_*, and how many vCPUs there are. */
void s2_mode(int m, int vcpus)
{
	mode = m;
	nr_vcpus = vcpus;
}

static void s2_masks(void)
{
	kvm_mmu_reset_all_pte_masks();
	if (mode & MODE_NO_AD)
		kvm_mmu_set_mask_ptes(VMX_EPT_READABLE_MASK, 0, 0, 0, VMX_EPT_EXECUTABLE_MASK, VMX_EPT_READABLE_MASK,
				      VMX_EPT_RWX_MASK, 0);
	else
		kvm_mmu_set_mask_ptes(PT_USER_MASK, PT_ACCESSED_MASK, PT_DIRTY_MASK, PT64_NX_MASK, 0, PT_PRESENT_MASK, 0, 0);
	tdp_enabled = !(mode & MODE_GUEST_PAGING);
	kvm_x86_ops.get_mt_mask = s2_mt_mask;
	kvm_x86_ops.enable_log_dirty_pt_masked = mode & MODE_CLEAR_DIRTY ? kvm_mmu_clear_dirty_pt_masked : NULL;
}

/* As kvm_mmu_create(), init_kvm_tdp_mmu() and kvm_mmu_load(). */
static void s2_vcpu_init(struct kvm_vcpu *vcpu)
{
	struct kvm_mmu *mmu = &vcpu->arch.root_mmu;

	vcpu->kvm = &vm->kvm;
	vcpu->arch.mmu = mmu;
	mmu->root_hpa = INVALID_PAGE;
	for (int i = 0; i < KVM_MMU_NUM_PREV_ROOTS; i++)
		mmu->prev_roots[i].hpa = INVALID_PAGE;
	mmu->shadow_root_level = mmu->root_level = PT64_ROOT_4LEVEL;
	mmu->direct_map = !(mode & MODE_GUEST_PAGING);
	mmu->sync_page = paging64_sync_page;
	mmu->mmu_role.base = (union kvm_mmu_page_role) { .level = 4, .direct = mmu->direct_map, .gpte_is_8_bytes = 1,
							 .access = ACC_ALL, .ad_disabled = !shadow_accessed_mask };
}

void s2_load(int v)
{
	struct kvm_vcpu *vcpu = &vm->vcpus[v];

	if (mode & MODE_GUEST_PAGING) {
		WARN_ON(mmu_topup_memory_caches(vcpu, true));
		vcpu->arch.mmu->root_hpa = mmu_alloc_root(vcpu, GPT_GFN + 3, 0, 4, false);
	} else {
		WARN_ON(mmu_topup_memory_caches(vcpu, false));
		WARN_ON(mmu_alloc_direct_roots(vcpu));
	}
}

/* A VM with one memslot of 2 MiB and one of a page; with a log if there is a page for one. */
void s2_vm_init(unsigned long *bitmap, int manual)
{
	struct kvm *kvm = &vm->kvm;

	s2_masks();
	kvm->slots.used_slots = 2;
	s2_slot()->npages = S2_GFNS;
	s2_slot()->base_gfn = S2_BASE_GFN;
	s2_slot()->userspace_addr = S2_HVA;
	s2_slot()->dirty_bitmap = bitmap;
	for (int i = 0; i < KVM_NR_PAGE_SIZES; i++)
		s2_slot()->arch.rmap[i] = vm->rmap[i];
	for (int i = 0; i < KVM_NR_PAGE_SIZES - 1; i++)
		s2_slot()->arch.lpage_info[i] = vm->lpage[i];
	vm->lpage[1][0].disallow_lpage = 1;
	/* The first page is in another memslot, too; nobody accesses it there. */
	kvm->slots.memslots[1] = (struct kvm_memory_slot) { .base_gfn = 2 * S2_GFNS, .npages = 1, .userspace_addr = S2_HVA,
		.arch = { .rmap = { vm->rmap_other, vm->rmap_other + 1, vm->rmap_other + 2 } } };
	BUILD_BUG_ON(S2_BASE_GFN + S2_GFNS > 2 * S2_GFNS);
	kvm->manual_dirty_log_protect = manual;
	kvm->arch.n_max_mmu_pages = 64;
	INIT_LIST_HEAD(&kvm->arch.active_mmu_pages);
	INIT_LIST_HEAD(&kvm->arch.zapped_obsolete_pages);
	INIT_LIST_HEAD(&kvm->arch.lpage_disallowed_mmu_pages);
	INIT_LIST_HEAD(&kvm->arch.tdp_mmu_roots);
	INIT_LIST_HEAD(&kvm->arch.tdp_mmu_pages);
	kvm->arch.tdp_mmu_enabled = mode & MODE_TDP_MMU;
	for (int i = 0; i < S2_GFNS; i++)
		vm->guest_pt[i] = i < 6 || i == 63 || i == S2_GFNS - 1 ? (u64)(S2_BASE_GFN + i) << PAGE_SHIFT | PT_PRESENT_MASK | PT_WRITABLE_MASK | PT_USER_MASK |
					  PT_ACCESSED_MASK | PT_DIRTY_MASK : 0;
	for (int i = 0; i < nr_vcpus; i++) {
		s2_vcpu_init(&vm->vcpus[i]);
		s2_load(i);
	}
}

void s2_log(unsigned long *bitmap) { s2_slot()->dirty_bitmap = bitmap; }

/* Logging begins, as in kvm_mmu_slot_apply_flags(): the slot is write-protected, then the TLBs are flushed. */
void s2_wp_memslot(void)
{
	kvm_mmu_slot_remove_write_access(&vm->kvm, s2_slot(), PG_LEVEL_4K);
	kvm_arch_flush_remote_tlbs_memslot(&vm->kvm, s2_slot());
}

void s2_topup(int v) { WARN_ON(mmu_topup_memory_caches(&vm->vcpus[v], mode & MODE_GUEST_PAGING)); }
void s2_cache_free(int v) { mmu_free_memory_caches(&vm->vcpus[v]); }

/* KVM_REQ_* before the guest is entered: see vcpu_enter_guest(). */
void s2_enter(int v)
{
	struct kvm_vcpu *vcpu = &vm->vcpus[v];
	u64 requests = READ_ONCE(vcpu->requests);

	if (!requests)
		return;
	requests = xchg(&vcpu->requests, 0);
	if (requests & BIT(KVM_REQ_MMU_RELOAD & KVM_REQUEST_MASK)) {
		kvm_mmu_free_roots(vcpu, vcpu->arch.mmu, KVM_MMU_ROOTS_ALL);
		s2_load(v);
	}
	if (requests & BIT(KVM_REQ_MMU_SYNC))
		kvm_mmu_sync_roots(vcpu);
	if (requests & BIT(KVM_REQ_TLB_FLUSH_CURRENT)) {
		S2_AT;
		s2.tlbi(S2_flush_local, 0, 0);
	}
}

/* A fault of the guest's on `ipa`. 0: the access is replayed; -1: it is the guest's to handle; others: an error. */
int s2_fault(int v, u64 ipa, int type, int write, int level)
{
	struct kvm_vcpu *vcpu = &vm->vcpus[v];
	u32 error = PFERR_USER_MASK | (write ? PFERR_WRITE_MASK : 0) | (type == 12 ? PFERR_PRESENT_MASK : 0);
	int r;

	vcpu->guest_fault = false;
	if (mode & MODE_GUEST_PAGING)
		r = paging64_page_fault(vcpu, ipa, error, false);
	else
		r = kvm_tdp_page_fault(vcpu, ipa, error, false);
	if (vcpu->guest_fault)
		return -1;
	return r == RET_PF_EMULATE ? 1 : r < 0 ? r - 100 : 0;
}

#include "generic.h"

/* kvm_mmu_zap_all_fast(), as when a memslot is deleted. */
void s2_zap_all_fast(void) { kvm_mmu_zap_all_fast(&vm->kvm); }
void s2_zap_range(u64 start, u64 end) { kvm_zap_gfn_range(&vm->kvm, start, end); }

/* The vCPU's root goes, and it gets another one: as when CR0, CR4 or EFER change. */
void s2_unload(int v) { kvm_mmu_free_roots(&vm->vcpus[v], vm->vcpus[v].arch.mmu, KVM_MMU_ROOTS_ALL); }

/* The guest's page table: the guest changes an entry; INVLPG; a flush of its TLB, for which KVM syncs. */
void s2_set_gpte(u64 n, u64 gpte) { WRITE_ONCE(vm->guest_pt[n], gpte); }
void s2_invlpg(int v, u64 gva) { paging64_invlpg(&vm->vcpus[v], gva, vm->vcpus[v].arch.mmu->root_hpa); }
void s2_sync(int v) { kvm_mmu_sync_roots(&vm->vcpus[v]); }

/* The lowest shadow page is out of sync, as when the guest has made its page table writable. */
void s2_unsync(void)
{
	struct kvm_mmu_page *sp;

	list_for_each_entry(sp, &vm->kvm.arch.active_mmu_pages, link)
		if (sp->role.level == PG_LEVEL_4K && !sp->unsync)
			kvm_unsync_page(&vm->vcpus[0], sp);
}

/* The VM goes: the notifier's release(), then the vCPUs. */
void s2_zap_all(void) { kvm_mmu_zap_all(&vm->kvm); }
void s2_free_pgd(void)
{
	kvm_mmu_zap_all(&vm->kvm);
	for (int i = 0; i < nr_vcpus; i++)
		s2_unload(i);
}

/* The table that the CPU's walk begins in, NULL for none. */
void *s2_root(int v)
{
	u64 root = v < nr_vcpus ? vm->vcpus[v].arch.mmu->root_hpa : INVALID_PAGE;

	return root == INVALID_PAGE ? NULL : __va(root & PT64_BASE_ADDR_MASK);
}
void *s2_pgd(void) { return s2_root(0); }
u64 s2_page_count(u64 n) { return s2_page[n].count; }
long s2_notifier_count(void) { return vm->kvm.mmu_notifier_count; }
void s2_page_init(u64 n) { s2_page[n].count = 1; s2_page[n].private = 0; }

/* The leaves of a table and of what it leads to. */
static int s2_leaves(u64 *table, int level)
{
	int n = 0;

	for (int i = 0; i < PT64_ENT_PER_PAGE; i++) {
		if (!is_shadow_present_pte(table[i]))
			continue;
		if (is_last_spte(table[i], level))
			n++;
		else
			n += s2_leaves(__va(table[i] & PT64_BASE_ADDR_MASK), level - 1);
	}
	return n;
}

/*
 * The chains and the shadow pages agree: NULL, or what is wrong. In the end each leaf of a shadow page is in the chain
 * of its gfn, once, and nothing else is; no chain is locked. The TDP MMU's leaves are in no chain.
 */
const char *s2_check(void)
{
	struct kvm_mmu_page *sp;
	struct rmap_iterator iter;
	int leaves = 0, linked = 0;

	list_for_each_entry(sp, &vm->kvm.arch.active_mmu_pages, link)
		for (int i = 0; i < PT64_ENT_PER_PAGE; i++)
			leaves += is_shadow_present_pte(sp->spt[i]) && is_last_spte(sp->spt[i], sp->role.level);
	for (int level = 0; level < KVM_NR_PAGE_SIZES; level++)
		for (int gfn = 0; gfn < (level ? 2 : S2_GFNS); gfn++) {
			if (vm->rmap[level][gfn].val & PTE_LIST_LOCKED)
				return "a chain is left locked";
			for (u64 *sptep = pte_list_first(vm->rmap[level][gfn].val, &iter); sptep; sptep = pte_list_next(&iter)) {
				if (!is_shadow_present_pte(*sptep))
					return "a chain has an SPTE that is not present";
				linked++;
			}
		}
	if (leaves != linked)
		return leaves > linked ? "a leaf is in no chain" : "a chain has an SPTE too many";
	list_for_each_entry(sp, &vm->kvm.arch.tdp_mmu_roots, link)
		if (!sp->root_count)
			return "a root without users is on the list";
	if (vm->kvm.arch.n_used_mmu_pages > 64)
		return "n_used_mmu_pages is wrong";
	return NULL;
}

/* Which arms of the code were reached. */
#ifdef S2_NO_COUNTS
const int s2_no_counts = 1;
#endif
const char *const s2_arm_names[] = {
	"fast_fixed", "fast_spurious", "faults_fixed", "shadow_zapped",
#ifndef S2_NO_COUNTS
	"seq_retries", "age_lost", "age_waited", "change_replaced", "change_protected", "change_unmapped", "change_overlapped",
#endif
	NULL };
void s2_arms(u64 *to)
{
	memcpy(to, (u64 [5]) { 0 }, 40);
	for (int i = 0; i < S2_VCPUS; i++) {
		to[0] += vm->vcpus[i].stat.fast;
		to[1] += vm->vcpus[i].stat.spurious;
		to[2] += vm->vcpus[i].stat.pf_fixed;
		to[4] += vm->vcpus[i].stat.mmu_seq_retries;
	}
	to[3] = vm->kvm.stat.mmu_shadow_zapped;
	to[5] = vm->kvm.stat.mmu_ages_lost;
	to[6] = vm->kvm.stat.mmu_ages_waited;
	for (int i = 0; i < 4; i++)
		to[7 + i] = vm->kvm.stat.change_pte[i];
}

/* What is at an address of the arena's first pages; NULL if it has no name. */
const char *s2_name(const void *p)
{
	struct kvm *kvm = &vm->kvm;

	if (p == &kvm->mmu_notifier_seq) return "mmu_notifier_seq";
	if (p == &kvm->mmu_notifier_count) return "mmu_notifier_count";
	for (int i = 0; i < S2_VCPUS; i++) {
		if (p == &vm->vcpus[i].mode) return "vcpu->mode";
		if (p == &vm->vcpus[i].requests) return "vcpu->requests";
	}
	if (p >= (void *)vm->rmap[0] && p < (void *)vm->rmap[1]) return "rmap of a page";
	if (p >= (void *)vm->guest_pt && p < (void *)(vm->guest_pt + 512)) return "the guest's page table";
	return NULL;
}
