/* SPDX-License-Identifier: GPL-2.0 */
#ifndef VM_H
#define VM_H

#include <stdbool.h>
#include <sys/types.h>

#include "layout.h"
#include "options.h"
#include "qmp.h"

/* One QEMU with its guest. */
struct vm {
	const char *name;
	pid_t pid;
	struct qmp qmp;
	unsigned char *ram;	/* the guest's RAM, read-only */
	size_t size;
	char *trace;		/* path of the log with the trace events */
};

/*
 * Start a QEMU; with `incoming` one that waits for a migration and stays stopped
 * after it.
 */
void vm_start(struct vm *vm, const struct options *options, const char *name, const char *incoming);

/* Kill it and remove what it left. */
void vm_end(struct vm *vm);

/* status of query-status: "running", "paused", ... */
const char *vm_status(struct vm *vm);

/* Wait until it has this status; false if it has not within `limit` seconds. */
bool vm_wait_status(struct vm *vm, const char *status, double limit);

/* Size in bytes of its log of trace events. */
long vm_trace_size(struct vm *vm);

static inline const volatile struct state *vm_state(const struct vm *vm, uint64_t vcpu)
{
	return (const void *)(vm->ram + GUEST_STATE - GUEST_RAM + vcpu * PAGE);
}

static inline const volatile struct window *vm_windows(const struct vm *vm, uint64_t vcpu)
{
	return (const struct window *)(vm->ram + GUEST_WINDOWS - GUEST_RAM) + vcpu * WINDOWS;
}

#endif
