/* SPDX-License-Identifier: GPL-2.0 */
/* What QEMU's command line, and what the guest writes to, have of the architecture. */
#ifndef ARCH_H
#define ARCH_H

#include <string.h>

#include "layout.h"
#include "util.h"

#if defined(__aarch64__)

#define PROGRAM		"qemu-system-aarch64"
#define LOADER		"ld-linux-aarch64.so.1"
#define MACHINE		"virt,gic-version=3"
/* Where the machine has its RAM. */
#define RAM_START	GUEST_RAM
/* Pages of its own that a vCPU writes to all the time: its state, and a window. */
#define OWN_PAGES	2
#define SHARED_PAGES	0
/* Of QEMU's human monitor: what is of interest of a vCPU that does not work any more. */
#define ASKED_OF_STUCK	"info registers"

/* Add what starts the guest to a command line of `count` words; returns their new number. */
static inline int boot(char **line, int count, const char *guest)
{
	line[count++] = (char *)"-kernel";
	line[count++] = (char *)guest;
	return count;
}

#elif defined(__x86_64__)

#define PROGRAM		"qemu-system-x86_64"
#define LOADER		"ld-linux-x86-64.so.2"
#define MACHINE		"q35"
#define RAM_START	0UL
/* The same, and its stack. */
#define OWN_PAGES	3
/* The two page tables: a CPU that walks them counts as one that writes to them, by AMD's nested paging. */
#define SHARED_PAGES	2
#define ASKED_OF_STUCK	"info registers", "info lapic"

static inline int boot(char **line, int count, const char *guest)
{
	const char *name = strrchr(guest, '/');

	/* In the place of a firmware. */
	line[count++] = (char *)"-bios";
	line[count++] = text("%.*sreset.bin", name ? (int)(name + 1 - guest) : 0, guest);
	/* A ROM that comes with a firmware. */
	line[count++] = (char *)"-global";
	line[count++] = (char *)"apic-common.vapic=off";
	line[count++] = (char *)"-device";
	line[count++] = text("loader,file=%s", guest);
	return count;
}

#else
#error "neither arm64 nor x86-64"
#endif

#endif
