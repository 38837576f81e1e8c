/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DIRTY_H
#define DIRTY_H

#include "vm.h"

/* Note how far each vCPU is, at this moment. */
void dirty_note(const struct vm *vm, const struct options *options);

/* Different pages that were written between the first and the last note. */
uint64_t dirty_written(const struct vm *vm, const struct options *options);

/*
 * The same of the last `length` s before QEMU had measured a dirty rate, for the first time
 * in its trace (dirtyrate_calculate); 0 if the trace or the notes lack that. From the
 * command on it would be more: until its pages are tracked the guest is faster.
 */
uint64_t dirty_written_measured(const struct vm *vm, const struct options *options, double length);

/*
 * Print lines "dirty_counted PAGES" and "dirty_true PAGES": the pages dirtied from sync
 * to sync, summed up, as QEMU counted them and as the guest wrote them. QEMU's count is
 * what its dirty rate is made of (migration_bitmap_sync_end). The trace is read from
 * `from` on. Nothing is printed if it has no two syncs between the first and the last note.
 */
void dirty_print(const struct vm *vm, const struct options *options, long from);

#endif
