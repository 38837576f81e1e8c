// SPDX-License-Identifier: GPL-2.0
/*
 * The TCG plugin: puts into translated code what moves the clocks.
 *
 *	-plugin vtime.so,insn=PS,line=PS,...[,slice=PS][,counters=FILE[,marks=FILE]]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libc.h"
#include "vtime.h"

EXPORT int qemu_plugin_version = QEMU_API_VERSION;

static struct qemu_plugin_scoreboard *board;
static enum kind (*kind_of)(const uint8_t *code, size_t size);

/* What a callback is told: the kind of its instruction, and the ps of its block still to come. */
#define KIND_BITS 8
#define PACK(kind, rest) ((void *)((uintptr_t)(rest) << KIND_BITS | (kind)))
#define KIND(data) ((enum kind)((uintptr_t)(data) & ((1 << KIND_BITS) - 1)))
#define REST(data) ((int64_t)((uintptr_t)(data) >> KIND_BITS))

static qemu_plugin_u64 entry(size_t offset)
{
	return (qemu_plugin_u64){ board, offset };
}

#define ENTRY(field) entry(offsetof(struct score, field))

static void on_slice(unsigned int cpu, void *data)
{
	order(cpu, REST(data));
}

/* Before an instruction that others can see. */
static void on_visible(unsigned int cpu, void *data)
{
	order(cpu, REST(data));
	if (KIND(data) == SEV) {
		lock();
		send_event(cpus[cpu].clock);
		unlock();
	}
}

static void on_wfe(unsigned int cpu, void *data)
{
	wait_for_event(cpu, REST(data));
}

static void on_dsb(unsigned int cpu, void *data)
{
	struct cpu *c = &cpus[cpu];

	if (!c->score->pending) {
		c->score->ps += costs.dsb;
		return;
	}
	order(cpu, REST(data));
	lock();
	c->score->pending = 0;
	tick(cpu, REST(data));
	c->clock = dvm_sync(c->clock);
	unlock();
	/*
	 * That may be far ahead.  Wait for the others here, not at the next access: if QEMU stops
	 * all CPUs meanwhile, this one must go on to the end of its block, and an ISB is near.
	 */
	order(cpu, REST(data));
}

/* After an access of an instruction that moves cache lines. */
static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	const struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);
	enum kind kind = KIND(data);

	if (!address || qemu_plugin_hwaddr_is_io(address))
		return;
	lock();
	tick(cpu, REST(data));
	access_memory(cpu, qemu_plugin_hwaddr_phys_addr(address),
		      kind == LOAD_EXCLUSIVE ? SHARED :
		      kind == RELEASE ? POSTED :
		      kind == STORE ? STORED : EXCLUSIVE);
	unlock();
}

static void add(struct qemu_plugin_insn *insn, size_t field, uint64_t value)
{
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							    entry(field), value);
}

static void set(struct qemu_plugin_insn *insn, size_t field)
{
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_STORE_U64,
							    entry(field), 1);
}

static void count(struct qemu_plugin_insn *insn, size_t counter, int64_t cost)
{
	add(insn, counter, 1);
	if (cost)
		add(insn, offsetof(struct score, ps), cost);
}

static void call(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t function,
		 enum kind kind, int64_t rest)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, function, QEMU_PLUGIN_CB_NO_REGS,
					       PACK(kind, rest));
}

/* `rest`: ps of the block from this instruction on. */
static void instrument(struct qemu_plugin_insn *insn, enum kind kind, int64_t rest)
{
	switch (kind) {
	case PLAIN:
		break;
	case EXCEPTION:
	case ENTER_GUEST:
		count(insn, offsetof(struct score, exceptions), costs.exception);
		break;
	case LOAD_EXCLUSIVE:
	case ATOMIC:
	case RELEASE:
	case STORE:
		call(insn, on_visible, kind, rest);
		qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
						 kind == LOAD_EXCLUSIVE ? QEMU_PLUGIN_MEM_R
									: QEMU_PLUGIN_MEM_W,
						 PACK(kind, rest - costs.insn));
		break;
	case TLBI_BROADCAST:
		set(insn, offsetof(struct score, pending));
		count(insn, offsetof(struct score, tlbi_broadcast), costs.tlbi);
		break;
	case TLBI_LOCAL:
		count(insn, offsetof(struct score, tlbi_local), costs.tlbi);
		break;
	case DSB:
		count(insn, offsetof(struct score, dsb), 0);
		call(insn, on_dsb, kind, rest);
		break;
	case DSB_OTHER:
		count(insn, offsetof(struct score, dsb), costs.dsb);
		break;
	case DC:
		count(insn, offsetof(struct score, dc), costs.dc);
		break;
	case WFE:
		call(insn, on_wfe, kind, rest);
		break;
	case SEVL:
		set(insn, offsetof(struct score, event));
		break;
	case SEV:
	case CLOCK:
		call(insn, on_visible, kind, rest);
		break;
	case PAUSE:
		add(insn, offsetof(struct score, ps), costs.pause);
		call(insn, on_visible, kind, rest);
		break;
	}
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t total = qemu_plugin_tb_n_insns(tb), i;
	int64_t rest = total * costs.insn;

	(void)id;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, ENTRY(ps),
							  rest);
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_slice, QEMU_PLUGIN_CB_NO_REGS,
						  QEMU_PLUGIN_COND_GE, ENTRY(ps), slice + rest,
						  PACK(PLAIN, rest));
	for (i = 0; i < total; i++, rest -= costs.insn) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t code[16];
		enum kind kind = kind_of(code, qemu_plugin_insn_data(insn, code, sizeof(code)));
		bool tables = tables_code(qemu_plugin_insn_vaddr(insn));

		/* A plain store counts where page tables are written, and a release as one there. */
		if (kind == STORE && !tables)
			kind = PLAIN;
		if (kind == RELEASE && tables)
			kind = STORE;

		/* One by one: a block may be left in the middle, and its rest is a block again. */
		add(insn, offsetof(struct score, insns), 1);
		phases_translate(insn, kind, rest);
		instrument(insn, kind, rest);
	}
}

static void on_cpu(qemu_plugin_id_t id, unsigned int cpu)
{
	int i;

	(void)id;
	if (cpu >= MAXCPU)
		die("more than %d CPUs", MAXCPU);
	lock();
	/* The scoreboard may move when it grows: look every pointer up again. */
	if ((int)cpu >= ncpu)
		ncpu = cpu + 1;
	for (i = 0; i < ncpu; i++)
		cpus[i].score = qemu_plugin_scoreboard_find(board, i);
	start_cpu(cpu);
	phases_cpu(cpu);
	unlock();
}

static void on_idle(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	me = cpu;
	idling = true;
}

static void on_resume(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	me = cpu;
	idling = false;
}

static void on_end(qemu_plugin_id_t id, void *data)
{
	(void)id, (void)data;
	phases_close();
	clocks_end();
}

static bool set_option(char *option, const char **counters, const char **marks)
{
	char *value = strchr(option, '='), *end;
	long long ps;

	if (!value)
		return false;
	*value++ = '\0';
	if (!strcmp(option, "counters"))
		return (*counters = value);
	if (!strcmp(option, "marks"))
		return (*marks = value);
	ps = strtoll(value, &end, 10);
	return *value && !*end && ps >= 0 && ps < 1000000000000 && costs_option(option, ps);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *counters = NULL, *marks = NULL;
	int i;

	if (info->version.cur > QEMU_API_NEWEST) {
		fprintf(stderr, "vtime: this QEMU's plugin interface is %d, known are %d to %d\n",
			info->version.cur, QEMU_API_VERSION, QEMU_API_NEWEST);
		return -1;
	}
	if (!strcmp(info->target_name, "aarch64")) {
		kind_of = arm64_kind;
	} else if (!strcmp(info->target_name, "x86_64")) {
		kind_of = x86_64_kind;
	} else {
		fprintf(stderr, "vtime: no model for %s\n", info->target_name);
		return -1;
	}
	for (i = 0; i < argc; i++) {
		char *option = strdup(argv[i]);

		if (!option || !set_option(option, &counters, &marks)) {
			fprintf(stderr, "vtime: bad option %s\n", argv[i]);
			return -1;
		}
	}
	if (!costs.insn || !slice || costs.dvm_busy > costs.dvm_sync) {
		fputs("vtime: insn and slice must not be 0, nor dvm_busy above dvm_sync\n", stderr);
		return -1;
	}
	if (!dlsym(RTLD_DEFAULT, "vtime_preloaded")) {
		fputs("vtime: must be preloaded, too: LD_PRELOAD=.../vtime.so\n", stderr);
		return -1;
	}
	if (marks && !tables_open(marks))
		return -1;
	if (counters && !phases_open(counters, marks, info->target_name))
		return -1;
	if (kind_of == x86_64_kind && !libc_trap_tsc()) {
		perror("vtime: PR_SET_TSC");
		return -1;
	}
	board = qemu_plugin_scoreboard_new(sizeof(struct score));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	qemu_plugin_register_vcpu_resume_cb(id, on_resume);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	clocks_begin();
	return 0;
}
