/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What arch/arm64/kvm/hyp/pgtable.c and the functions cut out of other files need of the
 * kernel. All that another thread may race with is a call of the checker (struct s2_ops); the
 * rest is as small as it can be. README.md says of each barrier how strong it is here.
 */
#ifndef S2_KERNEL_H
#define S2_KERNEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t u64; typedef uint32_t u32; typedef uint16_t u16; typedef uint8_t u8;
typedef u64 phys_addr_t, gpa_t, gfn_t, hva_t, kvm_pfn_t;
typedef int gfp_t;

/* Where an access is in the source. */
struct s2_site { const char *file, *func; int line; };

enum { S2_RELAXED, S2_ACQUIRE, S2_RELEASE, S2_FULL };
enum { S2_XCHG, S2_OR, S2_ANDNOT, S2_ADD };
enum { S2_READ, S2_READ_UNLOCK, S2_WRITE, S2_WRITE_UNLOCK };
enum { S2_ishst, S2_ish, S2_nsh, S2_nshst };
enum { S2_ipas2e1is, S2_ipas2e1, S2_vmalle1is, S2_vmalle1, S2_vmalls12e1is, S2_flush_local, S2_vaale1is, S2_vaale1, S2_ripas2e1is };
enum { S2_HELD_WRITE, S2_HELD_RCU, S2_HELD_ANY };
enum { S2_PTL_LOCK, S2_PTL_UNLOCK, S2_GIVE_BACK, S2_PTE_SET, S2_PFN_DIRTY, S2_PFN_ACCESSED, S2_MN_LOCK, S2_MN_UNLOCK };
enum { S2_IRQ_OFF, S2_IRQ_ON, S2_IRQ_KICK };

/* The checker binds these when it has loaded the code. */
extern struct s2_ops {
	u64 (*load)(const volatile void *p, int order);
	void (*store)(volatile void *p, u64 v, int order);
	u64 (*cas)(volatile void *p, u64 old, u64 new, int order);
	u64 (*rmw)(volatile void *p, int op, u64 v, int order);	/* returns the old value */
	void (*fence)(int order);
	void (*plain)(const void *p, u64 size, int write);	/* before an access without a mark */
	void (*dsb)(int type);
	void (*tlbi)(int op, u64 ipa, u32 level);
	void (*vmid)(int guest);
	void (*rcu_read)(int lock);
	void (*call_rcu)(void *head, void (*func)(void *));
	void (*synchronize_rcu)(void);
	void (*mmu_lock)(int op);
	int (*held)(int what);
	void *(*alloc)(u64 pages);
	void (*free)(const void *p, u64 pages);
	u64 (*gup)(u64 gfn, int write, int *writable);	/* the pfn that the primary MMU maps; write 2: without sleeping, for write */
	int (*thp)(u64 pfn);
	void (*host)(int what, u64 arg);
	void (*irq)(int what, int cpu);			/* x86: interrupts of this CPU; an IPI to another */
	void (*relax)(void);
	long (*page_live)(u64 pfn);
	void (*fail)(const char *what, const char *file, int line);
	int (*cpu)(void);				/* which CPU this is, and so which vCPU */
	const struct s2_site *site;
} s2;
#define S2_AT			({ static const struct s2_site s2_here = { __FILE__, __func__, __LINE__ }; \
				   s2.site = &s2_here; })
#define S2_WORD(p)		_Static_assert(sizeof(*(p)) == 8, "the checker knows words only")

/* compiler, bits */
#define __user
#define __rcu
#define likely(c)		(c)
#define unlikely(c)		(c)
#define fallthrough		__attribute__((__fallthrough__))
#define EXPORT_SYMBOL_GPL(f)
#define BIT(n)			(1UL << (n))
#define GENMASK(h, l)		(((~0UL) << (l)) & (~0UL >> (63 - (h))))
#define FIELD_GET(m, v)		(((v) & (m)) >> __builtin_ctzl(m))
#define FIELD_PREP(m, v)	(((u64)(v) << __builtin_ctzl(m)) & (m))
#define ALIGN(x, a)		(((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define ALIGN_DOWN(x, a)	((x) & ~((u64)(a) - 1))
#define IS_ALIGNED(x, a)	(!((x) & ((u64)(a) - 1)))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define ARRAY_SIZE(a)		((int)(sizeof(a) / sizeof((a)[0])))
#define min(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define container_of(p, t, m)	((t *)((char *)(p) - offsetof(t, m)))
#define __ffs(x)		((unsigned long)__builtin_ctzl(x))
#define __fls(x)		((unsigned long)(63 - __builtin_clzl(x)))
#define BITS_PER_LONG		64
#define BUILD_BUG_ON(c)		_Static_assert(!(c), #c)
#define WARN_ON(c)		({ bool _w = !!(c); if (_w) s2.fail(#c, __FILE__, __LINE__); _w; })
#define WARN_ON_ONCE		WARN_ON
#define VM_WARN_ON_ONCE		WARN_ON
#define VM_BUG_ON		WARN_ON
#define BUG_ON			WARN_ON
#define WARN_ONCE(c, ...)	WARN_ON(c)
#define RCU_LOCKDEP_WARN(c, s)	WARN_ON(c)
#define kvm_err(...)		s2.fail("kvm_err", __FILE__, __LINE__)
#define lockdep_assert_held_write(l) ((void)(l), (void)WARN_ON(!s2.held(S2_HELD_WRITE)))
#define lockdep_is_held(l)	1
enum { EPERM = 1, ENOENT = 2, E2BIG = 7, ENOEXEC = 8, EAGAIN = 11, ENOMEM = 12, EFAULT = 14,
       EBUSY = 16, EINVAL = 22, ERANGE = 34 };

/* Memory order. A full barrier is a fence that is sequentially consistent, on each side. */
#define READ_ONCE(x)		({ S2_AT; S2_WORD(&(x)); (__typeof__(x))s2.load(&(x), S2_RELAXED); })
#define WRITE_ONCE(x, v)	({ S2_AT; S2_WORD(&(x)); s2.store(&(x), (u64)(v), S2_RELAXED); })
#define smp_load_acquire(p)	({ S2_AT; S2_WORD(p); (__typeof__(*(p)))s2.load(p, S2_ACQUIRE); })
#define smp_store_release(p, v)	({ S2_AT; S2_WORD(p); s2.store(p, (u64)(v), S2_RELEASE); })
#define S2_CMPXCHG(p, o, n, m)	({ S2_AT; S2_WORD(p); (__typeof__(*(p)))s2.cas(p, (u64)(o), (u64)(n), m); })
#define cmpxchg_relaxed(p, o, n) S2_CMPXCHG(p, o, n, S2_RELAXED)
#define cmpxchg_acquire(p, o, n) S2_CMPXCHG(p, o, n, S2_ACQUIRE)
#define cmpxchg_release(p, o, n) S2_CMPXCHG(p, o, n, S2_RELEASE)
#define cmpxchg(p, o, n)	S2_CMPXCHG(p, o, n, S2_FULL)
#define S2_RMW(p, op, v, m)	({ S2_AT; S2_WORD(p); s2.rmw(p, op, (u64)(v), m); })
#define xchg_relaxed(p, n)	S2_RMW(p, S2_XCHG, n, S2_RELAXED)
#define xchg_release(p, n)	S2_RMW(p, S2_XCHG, n, S2_RELEASE)
#define xchg(p, n)		S2_RMW(p, S2_XCHG, n, S2_FULL)
typedef struct { long counter; } atomic_long_t, atomic64_t;
#define atomic_long_fetch_andnot(m, p) S2_RMW(&(p)->counter, S2_ANDNOT, m, S2_FULL)
#define atomic_long_fetch_andnot_relaxed(m, p) S2_RMW(&(p)->counter, S2_ANDNOT, m, S2_RELAXED)
/* Without a value returned it has no order. */
#define atomic64_andnot(m, p)	((void)S2_RMW(&(p)->counter, S2_ANDNOT, m, S2_RELAXED))
#define smp_mb()		({ S2_AT; s2.fence(S2_FULL); })
#define smp_mb__before_atomic()	smp_mb()
#define smp_mb__after_atomic()	smp_mb()
#define smp_rmb()		({ S2_AT; s2.fence(S2_ACQUIRE); })
#define smp_wmb()		({ S2_AT; s2.fence(S2_RELEASE); })
#define set_bit_le(n, p)	((void)S2_RMW((u64 *)(p) + (n) / 64, S2_OR, 1UL << ((n) % 64), S2_RELAXED))
#define S2_COPY(d, s, n)	({ s2.plain(s, n, 0); s2.plain(d, n, 1); memcpy(d, s, n); 0; })
#define copy_to_user		S2_COPY
#define copy_from_user		S2_COPY
#define memset(p, v, n)		({ s2.plain(p, n, 1); __builtin_memset(p, v, n); })

/* RCU, SRCU. Memslots do not change here, which is what SRCU is for. */
#define rcu_read_lock()		({ S2_AT; s2.rcu_read(1); })
#define rcu_read_unlock()	({ S2_AT; s2.rcu_read(0); })
#define rcu_read_lock_held()	s2.held(S2_HELD_RCU)
#define rcu_dereference(p)	({ S2_AT; WARN_ON(!rcu_read_lock_held()); (__typeof__(p))s2.load(&(p), S2_ACQUIRE); })
#define rcu_dereference_protected(p, c)	(p)
#define RCU_INIT_POINTER(p, v)	WRITE_ONCE(p, v)
#define rcu_assign_pointer(p, v) smp_store_release(&(p), v)
#define call_rcu(h, f)		({ S2_AT; s2.call_rcu(h, (void (*)(void *))(f)); })
#define call_rcu_hurry(h, f)	call_rcu(h, f)
#define synchronize_rcu()	({ S2_AT; s2.synchronize_rcu(); })
/* What it promises is the same. */
#define synchronize_rcu_expedited()	synchronize_rcu()
#define srcu_read_lock(s)	0
#define srcu_read_unlock(s, i)	((void)(i))
struct rcu_head { void (*func)(struct rcu_head *); };

/* mmu_lock */
#define write_lock(l)		({ S2_AT; s2.mmu_lock(S2_WRITE); })
#define write_unlock(l)		({ S2_AT; s2.mmu_lock(S2_WRITE_UNLOCK); })
#define read_lock(l)		({ S2_AT; s2.mmu_lock(S2_READ); })
#define read_unlock(l)		({ S2_AT; s2.mmu_lock(S2_READ_UNLOCK); })
#define rwlock_init(l)		((void)(l))
#define spin_lock_init(l)	((void)(l))
#define spin_lock(l)		write_lock(l)
#define spin_unlock(l)		write_unlock(l)
#define cond_resched()		0
/* Somebody always waits: so the lock is released wherever it may be. */
#define rwlock_is_contended(l)	1
#define need_resched()		0

/* pages: an arena at physical address 0, and a struct page for each */
#define PAGE_SHIFT		12
#define PAGE_SIZE		(1UL << PAGE_SHIFT)
#define PAGE_MASK		(~(PAGE_SIZE - 1))
#define PAGE_ALIGN(x)		ALIGN_DOWN((x) + PAGE_SIZE - 1, PAGE_SIZE)
#define offset_in_page(a)	((a) & ~PAGE_MASK)
#define PTRS_PER_PTE		512
#define PTRS_PER_PMD		512
#define SZ_4K			4096UL
#define PMD_SHIFT		21
#define PMD_SIZE		(1UL << PMD_SHIFT)
#define PMD_MASK		(~(PMD_SIZE - 1))
#define PUD_SHIFT		30
#define PUD_SIZE		(1UL << PUD_SHIFT)
#define CONT_PTE_SHIFT		16
#define CONT_PMD_SHIFT		25
#define GFP_KERNEL		0
#define GFP_ATOMIC		0
#define GFP_KERNEL_ACCOUNT	0
#define __GFP_ACCOUNT		0
#define __GFP_ZERO		0
struct page { u64 count; unsigned long private; struct rcu_head rcu_head; };
#define S2_PAGES		160
/* Where the memslot is, for the guest and for the process: neither at 0; and its pages. */
#define S2_BASE_GFN		512
#define S2_HVA			(1UL << 30)
#define S2_GFNS			512
extern char s2_arena[S2_PAGES * 4096];
#define __pa(p)			((u64)((char *)(p) - s2_arena))
#define __va(pa)		((void *)(s2_arena + (pa)))
#define virt_to_page(p)		(&s2_page[__pa(p) >> PAGE_SHIFT])
#define page_address(pg)	((void *)(s2_arena + ((pg) - s2_page) * PAGE_SIZE))
/* get_page() has no order. put_page() is fully ordered, if it tests for zero: not so here. */
#define get_page(pg)		((void)S2_RMW(&(pg)->count, S2_ADD, 1, S2_RELAXED))
#define put_page(pg)		((void)S2_RMW(&(pg)->count, S2_ADD, -1, S2_RELAXED))
#define page_ref_add(pg, n)	((void)S2_RMW(&(pg)->count, S2_ADD, n, S2_RELAXED))
#define page_ref_sub(pg, n)	((void)S2_RMW(&(pg)->count, S2_ADD, -(u64)(n), S2_RELAXED))
#define page_count(pg)		((long)READ_ONCE((pg)->count))
#define set_page_private(pg, v)	((pg)->private = (v))
#define page_private(pg)	((pg)->private)
#define clear_page(p)		memset(p, 0, PAGE_SIZE)
#define alloc_pages_exact(s, f)	({ S2_AT; s2.alloc((s) >> PAGE_SHIFT); })
#define free_pages_exact(p, s)	({ S2_AT; s2.free(p, (s) >> PAGE_SHIFT); })
#define get_zeroed_page(f)	((unsigned long)s2.alloc(1))
#define __get_free_page(f)	get_zeroed_page(f)
#define free_page(p)		({ S2_AT; s2.free((void *)(p), 1); })
#define kzalloc(s, f)		({ S2_AT; s2.alloc(1); })
#define kfree(p)		({ S2_AT; s2.free(p, 1); })
#define kmem_cache_alloc(c, f)	s2.alloc(1)
#define kmem_cache_free(c, p)	free_page(p)
#define free_percpu(p)		((void)0)
#define percpu_counter_add(c, n) ((void)(*(c) += (n)))

/* The primary MMU's entries: the page, whether it may be written to. */
typedef struct { u64 pte; } pte_t;
#define __pte(v)		((pte_t) { v })
#define pte_valid(p)		((p).pte & 1)
#define pte_write(p)		(!!((p).pte & BIT(51)))
#define pte_pfn(p)		(((p).pte & GENMASK(47, 12)) >> PAGE_SHIFT)

/* KVM */
struct kvm; struct kvm_vcpu;
struct mmu_notifier { int unused; };
struct mm_struct;
struct mmu_notifier_range { unsigned long start, end; unsigned int flags; };
#define MMU_NOTIFIER_RANGE_BLOCKABLE	1
#define MMU_NOTIFIER_RANGE_CHANGE_PTE	2
#if !defined(S2_ARM64_V7_3) && !defined(S2_ARM64_V6_12)
#define KVM_ARCH_NR_OBJS_PER_MEMORY_CACHE 3
struct kvm_mmu_memory_cache { int nobjs; gfp_t gfp_zero; void *kmem_cache;
			      void *objects[KVM_ARCH_NR_OBJS_PER_MEMORY_CACHE]; };
#endif
struct kvm_mmu_memory_cache;
int kvm_mmu_memory_cache_nr_free_objects(struct kvm_mmu_memory_cache *mc);
void *kvm_mmu_memory_cache_alloc(struct kvm_mmu_memory_cache *mc);
extern struct page *s2_page;
#if defined(S2_X86)
#include "x86.h"
#elif defined(S2_ARM64_V7_3) || defined(S2_ARM64_V6_12)
#include "arm64-v7.3.h"
#else
#include "arm64.h"
#endif
#endif
