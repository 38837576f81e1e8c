/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What scenarios call of the code that both architectures share: the dirty log and the MMU notifiers. Included by
 * arm64.c and x86.c after functions.inc, for most of what it calls is static there.
 */

/* The guest's pages: see offset() in src/host.rs. */
static u64 s2_bits(const u64 *bits) { return (bits[0] & 0x3f) | bits[0] >> 63 << 6 | bits[7] >> 63 << 7; }

u64 s2_get_log(void)
{
	u64 bits[8] = { 0 };
	struct kvm_dirty_log log = { .dirty_bitmap = bits };

	WARN_ON(kvm_get_dirty_log_protect(&vm->kvm, &log));
	return s2_bits(bits);
}

void s2_clear_log(u64 mask)
{
	u64 bits[8] = { (mask & 0x3f) | (mask >> 6 & 1) << 63, [7] = mask >> 7 << 63 };
	struct kvm_clear_dirty_log log = { .dirty_bitmap = bits, .num_pages = S2_GFNS };

	WARN_ON(kvm_clear_dirty_log_protect(&vm->kvm, &log));
}

void s2_range_start(u64 start, u64 end, int flags)
{
	struct mmu_notifier_range range = { start, end, flags };

	kvm_mmu_notifier_invalidate_range_start(&vm->kvm.mmu_notifier, &range);
}

void s2_range_end(u64 start, u64 end, int flags)
{
	struct mmu_notifier_range range = { start, end, flags };

	kvm_mmu_notifier_invalidate_range_end(&vm->kvm.mmu_notifier, &range);
}

#ifndef S2_NO_CHANGE_PTE
void s2_change_pte(u64 addr, u64 pte)
{
	kvm_mmu_notifier_change_pte(&vm->kvm.mmu_notifier, NULL, addr, __pte(pte));
}
#endif

int s2_clear_flush_young(u64 start, u64 end)
{
	return kvm_mmu_notifier_clear_flush_young(&vm->kvm.mmu_notifier, NULL, start, end);
}

int s2_clear_young(u64 start, u64 end)
{
	return kvm_mmu_notifier_clear_young(&vm->kvm.mmu_notifier, NULL, start, end);
}

void s2_slot_flags(u32 flags) { s2_slot()->flags = flags; }
int s2_test_young(u64 addr) { return kvm_mmu_notifier_test_young(&vm->kvm.mmu_notifier, NULL, addr); }
