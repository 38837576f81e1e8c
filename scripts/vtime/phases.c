// SPDX-License-Identifier: GPL-2.0
/*
 * Counters by phase of the test that runs in the guest.  The guest takes no notice: a phase ends when
 * a line that names one is written to a terminal in the guest.  The kernel's symbols ("marks": lines of
 * a name and a hexadecimal address) say where the kernel leaves and enters a nested guest, handles
 * faults and writes to terminals.
 *
 * The file gets a line of JSON for each phase.  Instructions are counted from the exit to the next
 * entry of a nested guest on the same CPU, for exits that are stage-2 (nested page) faults; of all
 * of a phase the median is kept, as some are interrupted, and a thread may have moved in between.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vtime.h"

#define LINE 512

enum mark { WRITE, EXIT, ENTER, FAULT, MARKS };
enum fault { PERMISSION, TRANSLATION, ACCESS, OTHER, FAULTS };

/* The field's names, and what a guest's kernel calls the places. */
static const char * const fault_names[FAULTS] = { "permission", "translation", "access", "other" };
static const char * const symbols[2][MARKS] = {
	{ "n_tty_write", "__guest_exit", "__guest_enter", "kvm_handle_guest_abort" },
	{ "n_tty_write", NULL, NULL, "kvm_mmu_page_fault" },
};
/* The third and fourth argument of a function, and the syndrome. */
enum { THIRD, FOURTH, SYNDROME, REGISTERS };
static const char * const registers[2][REGISTERS] = {
	{ "x2", "x3", "ESR_EL2" }, { "rdx", "rcx", NULL },
};
/* A line of output that contains one of these ends a phase. */
static const char * const ends[] = {
	"@@ begin ", "@@ end ", " time: ", "guest physical test memory",
};

static struct nested {
	uint64_t exit_insns;		/* at the last exit */
	bool outside, faulting;
	struct qemu_plugin_register *reg[REGISTERS];
} nested[MAXCPU];

/* Instructions of the faults of this phase; beyond the last place faults are only counted. */
static uint32_t insns[1 << 20];

static struct total {
	uint64_t faults[FAULTS], handled;
	uint64_t score[6];		/* insns, exceptions, tlbi_local, tlbi_broadcast, dsb, dc */
	uint64_t atomics, foreign, accesses, inversions, forced;
	uint64_t turns, passes, strays;
	int64_t clock;
} now, last;

static bool x86;
static uint64_t marks[MARKS];
static FILE *out;
static char text[LINE];
static size_t length;

static bool read_marks(const char *file)
{
	char name[128];
	unsigned long long address;
	FILE *f = fopen(file, "r");
	int i;

	if (!f)
		return false;
	while (fscanf(f, "%127s %llx", name, &address) == 2)
		for (i = 0; i < MARKS; i++)
			if (symbols[x86][i] && !strcmp(name, symbols[x86][i]))
				marks[i] = address;
	fclose(f);
	return true;
}

/* Counters go to `file`; `names` is the file of marks, NULL for a guest without. */
bool phases_open(const char *file, const char *names, const char *target)
{
	x86 = !strcmp(target, "x86_64");
	if (names && !read_marks(names)) {
		fprintf(stderr, "vtime: %s: %s\n", names, strerror(errno));
		return false;
	}
	out = fopen(file, "w");
	if (!out)
		fprintf(stderr, "vtime: %s: %s\n", file, strerror(errno));
	return out;
}

/* With the lock, in the thread of the CPU. */
void phases_cpu(int cpu)
{
	GArray *list = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *all = (const void *)list->data;
	unsigned int i, k;

	for (i = 0; i < list->len; i++)
		for (k = 0; k < REGISTERS; k++)
			if (registers[x86][k] && !strcmp(all[i].name, registers[x86][k]))
				nested[cpu].reg[k] = all[i].handle;
}

static uint64_t read_register(unsigned int cpu, int which)
{
	static _Thread_local GByteArray *bytes;
	uint64_t value = 0;

	if (!nested[cpu].reg[which])
		return 0;
	if (!bytes)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	qemu_plugin_read_register(nested[cpu].reg[which], bytes);
	memcpy(&value, bytes->data, bytes->len > 8 ? 8 : bytes->len);
	return value;
}

static void collect(void)
{
	int i;

	memset(now.score, 0, sizeof(now.score));
	now.atomics = now.foreign = 0;
	now.accesses = stats.accesses;
	now.inversions = stats.inversions;
	now.forced = stats.forced;
	now.turns = stats.turns;
	now.passes = stats.passes;
	now.strays = stats.strays;
	for (i = 0; i < ncpu; i++) {
		const struct score *s = cpus[i].score;

		now.score[0] += s->insns;
		now.score[1] += s->exceptions;
		now.score[2] += s->tlbi_local;
		now.score[3] += s->tlbi_broadcast;
		now.score[4] += s->dsb;
		now.score[5] += s->dc;
		now.atomics += cpus[i].atomics;
		now.foreign += cpus[i].foreign;
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Median of the phase's instructions a fault; 0 if there was none. */
static uint32_t median_insns(void)
{
	size_t count = now.handled - last.handled;

	if (count > sizeof(insns) / sizeof(insns[0]))
		count = sizeof(insns) / sizeof(insns[0]);
	qsort(insns, count, sizeof(insns[0]), compare);
	return count ? insns[(count - 1) / 2] : 0;
}

static void emit(unsigned int cpu, const char *line)
{
	static const char * const names[] = {
		"instructions", "exceptions", "tlbi_local", "tlbi_broadcast", "dsb", "dc",
	};
	int i;

	collect();
	now.clock = cpus[cpu].clock;
	fputs("{\"line\": \"", out);
	for (; *line; line++)
		if (isprint((unsigned char)*line) && *line != '"' && *line != '\\')
			fputc(*line, out);
	fprintf(out, "\", \"ps\": %lld", (long long)(now.clock - last.clock));
	for (i = 0; i < 6; i++)
		fprintf(out, ", \"%s\": %llu", names[i],
			(unsigned long long)(now.score[i] - last.score[i]));
	fprintf(out, ", \"atomics\": %llu, \"foreign_atomics\": %llu",
		(unsigned long long)(now.atomics - last.atomics),
		(unsigned long long)(now.foreign - last.foreign));
	fprintf(out, ", \"accesses\": %llu, \"inversions\": %llu, \"forced\": %llu",
		(unsigned long long)(now.accesses - last.accesses),
		(unsigned long long)(now.inversions - last.inversions),
		(unsigned long long)(now.forced - last.forced));
	fprintf(out, ", \"turns\": %llu, \"passes\": %llu, \"strays\": %llu",
		(unsigned long long)(now.turns - last.turns),
		(unsigned long long)(now.passes - last.passes),
		(unsigned long long)(now.strays - last.strays));
	for (i = 0; i < FAULTS; i++)
		fprintf(out, ", \"faults_%s\": %llu", fault_names[i],
			(unsigned long long)(now.faults[i] - last.faults[i]));
	fprintf(out, ", \"faults_handled\": %llu, \"instructions_per_fault\": %lu}\n",
		(unsigned long long)(now.handled - last.handled), (unsigned long)median_insns());
	fflush(out);
	last = now;
}

static void output(unsigned int cpu, const uint8_t *bytes, size_t count)
{
	size_t i;

	for (; count; bytes++, count--) {
		if (*bytes != '\n') {
			if (length < LINE - 1)
				text[length++] = *bytes;
			continue;
		}
		text[length] = '\0';
		length = 0;
		/* lockphase's counts quote the line that ended their phase. */
		if (!strncmp(text, "@@ lock", 7))
			continue;
		for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
			if (strstr(text, ends[i])) {
				emit(cpu, text);
				break;
			}
	}
}

/* n_tty_write(tty, file, buffer, count): here what was written is in the kernel's own memory. */
static void on_write(unsigned int cpu, void *rest)
{
	uint64_t count = read_register(cpu, FOURTH);
	GByteArray *bytes;

	if (!count || count > 65536)
		return;
	bytes = g_byte_array_new();
	lock();
	tick(cpu, (intptr_t)rest);
	if (qemu_plugin_read_memory_vaddr(read_register(cpu, THIRD), bytes, count))
		output(cpu, bytes->data, count);
	unlock();
	g_byte_array_free(bytes, 1);
}

static void on_exit_guest(unsigned int cpu, void *rest)
{
	(void)rest;
	nested[cpu].exit_insns = cpus[cpu].score->insns;
	nested[cpu].outside = true;
	nested[cpu].faulting = false;
}

static void on_enter_guest(unsigned int cpu, void *rest)
{
	struct nested *n = &nested[cpu];

	(void)rest;
	if (n->outside && n->faulting) {
		lock();
		if (now.handled - last.handled < sizeof(insns) / sizeof(insns[0]))
			insns[now.handled - last.handled] = cpus[cpu].score->insns - n->exit_insns;
		now.handled++;
		unlock();
	}
	n->outside = false;
}

/* Arm: ESR_EL2.xFSC (DDI 0487, D19.2.37).  x86: the error code, an argument of the handler. */
static enum fault fault_kind(unsigned int cpu)
{
	uint64_t code = read_register(cpu, x86 ? THIRD : SYNDROME);

	if (x86)
		return code & 1 ? PERMISSION : TRANSLATION;
	switch (code >> 2 & 15) {
	case 1:
		return TRANSLATION;
	case 2:
		return ACCESS;
	case 3:
		return PERMISSION;
	}
	return OTHER;
}

static void on_fault(unsigned int cpu, void *rest)
{
	enum fault kind = fault_kind(cpu);

	(void)rest;
	nested[cpu].faulting = true;
	lock();
	now.faults[kind]++;
	unlock();
}

/* `insn` is translated; `rest`: ps of its block from it on. */
void phases_translate(struct qemu_plugin_insn *insn, enum kind kind, uint64_t rest)
{
	static const qemu_plugin_vcpu_udata_cb_t calls[MARKS] = {
		on_write, on_exit_guest, on_enter_guest, on_fault,
	};
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	int i;

	if (!out)
		return;
	if (kind == ENTER_GUEST) {
		/* The guest exits to what follows. */
		marks[EXIT] = address + qemu_plugin_insn_size(insn);
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_enter_guest,
						       QEMU_PLUGIN_CB_NO_REGS, (void *)rest);
	}
	for (i = 0; i < MARKS; i++)
		if (marks[i] && marks[i] == address)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, calls[i],
							       QEMU_PLUGIN_CB_R_REGS,
							       (void *)rest);
}

/* How it went, as the last line. */
void phases_close(void)
{
	if (!out)
		return;
	collect();
	fprintf(out, "{\"end\": true, \"ps\": %lld, \"instructions\": %llu, \"turns\": %llu, "
		"\"blocks\": %llu, \"passes\": %llu, \"exclusive\": %llu, \"jumps\": %llu, "
		"\"late\": %llu, \"accesses\": %llu, \"inversions\": %llu, \"inverted_ps\": %lld, "
		"\"polls\": %llu, \"reads\": %llu}\n",
		(long long)now_ps(), (unsigned long long)now.score[0],
		(unsigned long long)stats.turns, (unsigned long long)stats.blocks,
		(unsigned long long)stats.passes, (unsigned long long)stats.exclusive,
		(unsigned long long)stats.jumps, (unsigned long long)stats.late,
		(unsigned long long)stats.accesses, (unsigned long long)stats.inversions,
		(long long)stats.inverted, (unsigned long long)stats.polls,
		(unsigned long long)stats.reads);
	fclose(out);
	out = NULL;
}
