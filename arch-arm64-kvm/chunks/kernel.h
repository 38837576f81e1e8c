/* SPDX-License-Identifier: GPL-2.0-only */
/* What the page-table walker needs of the kernel, in user space. Page tables are the program's own. */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef u64 kvm_pte_t;
struct kvm_s2_mmu;

#define PAGE_SIZE		(1UL << PAGE_SHIFT)
#define PAGE_MASK		(~(PAGE_SIZE - 1))
#define SZ_4K			4096UL
#define BIT(n)			(1UL << (n))
#define GENMASK(h, l)		(((~0UL) << (l)) & (~0UL >> (63 - (h))))
#define ALIGN_DOWN(x, a)	((x) & ~((u64)(a) - 1))
#define PAGE_ALIGN(x)		(((x) + PAGE_SIZE - 1) & PAGE_MASK)
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define READ_ONCE(x)		(x)
#define FIELD_GET(mask, value)	(((value) & (mask)) / ((mask) & -(mask)))
#define WARN_ON_ONCE(x)		({ int was = !!(x); assert(!was); was; })
#define RCU_LOCKDEP_WARN(x, what)
#define rcu_read_lock()
#define rcu_read_unlock()
#define __va(x)			((kvm_pte_t *)(uintptr_t)(x))

#define PTRS_PER_PTE		(PAGE_SIZE / 8)
#define KVM_PGTABLE_MAX_LEVELS	4U
#define KVM_PTE_VALID		1UL
#define KVM_PTE_TYPE		2UL
#define KVM_PTE_TYPE_TABLE	1
#define KVM_PTE_ADDR_MASK	GENMASK(47, PAGE_SHIFT)
#define KVM_PTE_ADDR_51_48	GENMASK(15, 12)
#define ARM64_HW_PGTABLE_LEVEL_SHIFT(n)	((PAGE_SHIFT - 3) * (4 - (n)) + 3)

#define ARM64_HAS_STAGE2_FWB	0
#define cpus_have_const_cap(x)	fwb

static bool fwb;
