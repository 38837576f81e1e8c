// SPDX-License-Identifier: GPL-2.0
/*
 * The TCG plugin: what is instrumented, and what becomes a line of the trace.
 *
 *	-plugin stage2-trace.so,out=FILE,code=FILE[,limit=LINES]
 *
 * `code` tells which functions of the guest's kernel are instrumented, in lines of a word, a name and
 * two hexadecimal addresses (the first, and the first behind): `store` for code that writes stage-2
 * page tables, `op` for operations that begin and end, `destroy` for what frees a whole page table.
 * TLBIs, DSBs and writes to registers of EL2 are known by their opcodes.
 *
 * A lock is held from before each store until its line is written, so the order of the lines is the
 * order of the stores.  A store-exclusive that fails tells nothing: the next instruction releases it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "aarch64.h"

#define MAX_CODE 256
#define VTCR_DS (1ULL << 32)
#define AF (1ULL << 10)

EXPORT int qemu_plugin_version = QEMU_API_VERSION;

enum role { STORES, OPERATION, DESTROY };
static struct code {
	enum role role;
	char name[64];
	uint64_t from, to;
} code[MAX_CODE];
static int codes;

static struct cpu {
	uint64_t hcr, vtcr, vttbr;
	uint64_t dsb[16];		/* `changes` when it last did a DSB of this option */
	bool locked;			/* it has the lock, for its store */
} cpus[MAXCPU];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static uint64_t lines, limit = 20000000;
/* Stores and TLBIs so far; a DSB that comes after none is of no interest. */
static _Atomic uint64_t changes;
/* Virtual minus physical address of the linear map, once a store has shown it. */
static uint64_t linear;

static __attribute__((format(printf, 1, 2))) void emit(const char *format, ...)
{
	va_list list;

	if (lines == limit)
		fputs("cut\n", out);
	if (lines++ >= limit)
		return;
	va_start(list, format);
	vfprintf(out, format, list);
	va_end(list);
}

/* The task that runs: linux keeps the address of its struct in SP_EL0. */
static uint64_t task(unsigned int cpu)
{
	return read_named(cpu);
}

static bool read_memory(uint64_t address, void *to, size_t size)
{
	static _Thread_local GByteArray *bytes;
	bool good;

	if (!bytes)
		bytes = g_byte_array_new();
	good = qemu_plugin_read_memory_vaddr(address, bytes, size) && bytes->len >= size;
	if (good)
		memcpy(to, bytes->data, size);
	return good;
}

/* The field of a line for what is in a table: index:value, with +stride*count for a row of such. */
static void emit_entries(const uint64_t *entry)
{
	int i, count, total = tables_entries();
	bool any = false;

	if (lines > limit)
		return;
	for (i = 0; i < total; i += count) {
		uint64_t stride = i + 1 < total ? entry[i + 1] - entry[i] : 0;

		for (count = 1; entry[i] && i + count < total &&
				entry[i + count] == entry[i] + count * stride; count++)
			;
		if (!entry[i])
			continue;
		if (count < 3)
			count = 1;
		fprintf(out, "%s%d:%" PRIx64, any ? "," : " ", i, entry[i]);
		if (count > 1)
			fprintf(out, "+%" PRIx64 "*%d", stride, count);
		any = true;
	}
	fputs(any ? "\n" : " -\n", out);
}

/* Compare `table` with memory: entries that no line has told of. */
static void verify(unsigned int cpu, struct table *table, uint64_t but)
{
	uint64_t now[8192];
	int i;

	table->seen = true;
	if (!read_memory(table->address + linear, now, tables_entries() * 8))
		return;
	for (i = 0; i < tables_entries(); i++) {
		if (table->address + i * 8 == but || !((now[i] ^ table->entry[i]) & ~AF))
			continue;
		emit("missed %u %" PRIx64 " %d %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", cpu, table->root,
		     table->level, table->ipa + ((uint64_t)i << tables_shift(table)), table->entry[i], now[i]);
	}
}

/* A store has linked the table at `address`, and maybe with it others. */
static void link_table(unsigned int cpu, const struct table *parent, uint64_t address, uint64_t ipa)
{
	struct table *table = tables_add(parent, address, ipa);
	int i;

	table->seen = true;
	if (!read_memory(address + linear, table->entry, tables_entries() * 8))
		fprintf(stderr, "stage2-trace: cannot read the table at %" PRIx64 "\n", address);
	emit("table %u %" PRIx64 " %d %" PRIx64 " %" PRIx64, cpu, table->root, table->level, ipa, address);
	emit_entries(table->entry);
	for (i = 0; i < tables_entries(); i++)
		if (tables_is_table(table->level, table->entry[i]))
			link_table(cpu, table, tables_output(table->entry[i]),
				   ipa + ((uint64_t)i << tables_shift(table)));
}

static void unlink_table(unsigned int cpu, uint64_t address)
{
	struct table *table = tables_find(address);

	if (!table)
		return;
	verify(cpu, table, 0);
	tables_remove(address);
}

/* With the lock: what is at `physical` has been stored to by `who`. */
static void stored(unsigned int cpu, uint64_t physical, uint64_t address, const struct code *who)
{
	struct table *table = tables_find(physical);
	uint64_t old, new, ipa, *entry;

	if (!table)
		return;
	entry = &table->entry[(physical - table->address) / 8];
	ipa = table->ipa + ((uint64_t)(entry - table->entry) << tables_shift(table));
	old = *entry;
	linear = address - physical;
	if (!read_memory(address, &new, sizeof(new)) || new == old)
		return;
	if (!table->seen)
		verify(cpu, table, physical);
	if (tables_is_table(table->level, new))
		link_table(cpu, table, tables_output(new), ipa);
	emit("store %u %" PRIx64 " %" PRIx64 " %d %" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n", cpu, task(cpu),
	     table->root, table->level, ipa, old, new, who->name);
	*entry = new;
	if (tables_is_table(table->level, old) && tables_output(old) != tables_output(new))
		unlink_table(cpu, tables_output(old));
	changes++;
}

static void before_store(unsigned int cpu, void *data)
{
	(void)data;
	if (!cpus[cpu].locked) {
		pthread_mutex_lock(&mutex);
		cpus[cpu].locked = true;
	}
}

static void release(unsigned int cpu, void *data)
{
	(void)data;
	if (cpus[cpu].locked) {
		cpus[cpu].locked = false;
		pthread_mutex_unlock(&mutex);
	}
}

static void after_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	const struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);

	if (!cpus[cpu].locked)
		pthread_mutex_lock(&mutex);
	if (address && !qemu_plugin_hwaddr_is_io(address))
		stored(cpu, qemu_plugin_hwaddr_phys_addr(address), vaddr, data);
	cpus[cpu].locked = true;
	release(cpu, NULL);
}

/* Opcodes are what callbacks are told. */
#define OP(data) ((uint32_t)(uintptr_t)(data))

static void on_tlbi(unsigned int cpu, void *data)
{
	struct cpu *c = &cpus[cpu];
	bool has_address, stage1, nxs = (OP(data) >> 12 & 15) == 9;
	const char *name = arm64_tlbi(OP(data), &has_address, &stage1);
	char argument[20] = "-";

	/* The host's own: with TGE it is about EL2, and without a VTTBR about no guest. */
	if (stage1 && (c->hcr & HCR_TGE || !c->vttbr))
		return;
	pthread_mutex_lock(&mutex);
	if (tables_next_root(NULL)) {
		changes++;
		if (has_address)
			snprintf(argument, sizeof(argument), "%" PRIx64, read_x(cpu, OP(data) & 31));
		emit("tlbi %u %" PRIx64 " %s%s %" PRIx64 " %s\n", cpu, task(cpu), name, nxs ? "nxs" : "",
		     c->vttbr >> 48, argument);
	}
	pthread_mutex_unlock(&mutex);
}

static void on_dsb(unsigned int cpu, void *data)
{
	uint64_t now = changes, *last = &cpus[cpu].dsb[OP(data) >> 8 & 15];

	if (*last == now)
		return;
	*last = now;
	pthread_mutex_lock(&mutex);
	emit("dsb %u %" PRIx64 " %s\n", cpu, task(cpu), arm64_dsb(OP(data)));
	pthread_mutex_unlock(&mutex);
}

static void on_hcr(unsigned int cpu, void *data)
{
	cpus[cpu].hcr = read_x(cpu, OP(data) & 31);
}

static void on_vtcr(unsigned int cpu, void *data)
{
	cpus[cpu].vtcr = read_x(cpu, OP(data) & 31);
}

static void on_vttbr(unsigned int cpu, void *data)
{
	uint64_t value = read_x(cpu, OP(data) & 31), root = value & 0xfffffffffffeULL, vmid = value >> 48;
	struct geometry geometry;
	struct table *table;

	cpus[cpu].vttbr = value;
	if (root && cpus[cpu].vtcr & VTCR_DS) {
		fputs("stage2-trace: VTCR_EL2.DS is set: the entries and range TLBIs of FEAT_LPA2 are not "
		      "known; use a CPU without it\n", stderr);
		exit(1);
	}
	if (!root || !tables_geometry(cpus[cpu].vtcr, &geometry))
		return;
	pthread_mutex_lock(&mutex);
	table = tables_find(root);
	if (!table || table->root != root || table->address != root) {
		tables_add_root(root, &geometry);
		table = tables_find(root);
		table->vmid = ~vmid;
	}
	if (table->vmid != vmid) {
		table->vmid = vmid;
		emit("root %u %" PRIx64 " %" PRIx64 " %d %d %d\n", cpu, root, vmid, geometry.level,
		     geometry.ipa_bits, geometry.page_shift);
	}
	pthread_mutex_unlock(&mutex);
}

static void on_begin(unsigned int cpu, void *data)
{
	const struct code *which = data;

	pthread_mutex_lock(&mutex);
	emit("begin %u %" PRIx64 " %s %" PRIx64 " %" PRIx64 "\n", cpu, task(cpu), which->name, read_x(cpu, 1),
	     read_x(cpu, 2));
	pthread_mutex_unlock(&mutex);
}

static void on_end(unsigned int cpu, void *data)
{
	const struct code *which = data;

	pthread_mutex_lock(&mutex);
	emit("end %u %" PRIx64 " %s %" PRIx64 "\n", cpu, task(cpu), which->name, read_x(cpu, 0));
	pthread_mutex_unlock(&mutex);
}

static bool is_loaded(uint64_t root)
{
	int i;

	for (i = 0; i < MAXCPU; i++)
		if ((cpus[i].vttbr & 0xfffffffffffeULL) == root)
			return true;
	return false;
}

/* destroy(pgt): one of the first words of *pgt is the address of the root. */
static void on_destroy(unsigned int cpu, void *data)
{
	struct table *table, *next;
	uint64_t words[8];
	bool match;
	int i;

	(void)data;
	if (!read_memory(read_x(cpu, 0), words, sizeof(words)))
		return;
	pthread_mutex_lock(&mutex);
	for (table = tables_next_root(NULL); table; table = next) {
		next = tables_next_root(table);
		/* Before the first store of all, no table has anything in it. */
		match = !linear && !is_loaded(table->root);
		for (i = 0; linear && i < 8; i++)
			match |= words[i] == table->root + linear;
		if (!match)
			continue;
		emit("gone %u %" PRIx64 "\n", cpu, table->root);
		tables_remove(table->root);
		/* Removing may have freed `next`. */
		next = tables_next_root(NULL);
	}
	pthread_mutex_unlock(&mutex);
}

static void call(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t function, const void *data)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, function, QEMU_PLUGIN_CB_R_REGS, (void *)data);
}

/*
 * `next`: the next instruction of the block, NULL for none.  QEMU may stop CPUs between blocks, and a
 * CPU that has the lock must not be stopped: then a store-exclusive is not held under it.
 */
static void instrument_store(struct qemu_plugin_insn *insn, struct qemu_plugin_insn *next, enum kind kind,
			     const struct code *who)
{
	if (kind == STORE || next)
		call(insn, before_store, NULL);
	if (kind == STORE_EXCLUSIVE && next)
		call(next, release, NULL);
	qemu_plugin_register_vcpu_mem_cb(insn, after_store, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_MEM_W,
					 (void *)who);
}

/* What depends on where the instruction is. */
static void instrument_code(struct qemu_plugin_insn *insn, struct qemu_plugin_insn *next, enum kind kind,
			    uint64_t address)
{
	int i;

	for (i = 0; i < codes; i++) {
		if (address < code[i].from || address >= code[i].to)
			continue;
		if (code[i].role == STORES && (kind == STORE || kind == STORE_EXCLUSIVE))
			instrument_store(insn, next, kind, &code[i]);
		if (code[i].role == OPERATION && address == code[i].from)
			call(insn, on_begin, &code[i]);
		if (code[i].role == OPERATION && kind == RET)
			call(insn, on_end, &code[i]);
		if (code[i].role == DESTROY && address == code[i].from)
			call(insn, on_destroy, NULL);
	}
}

static void instrument(struct qemu_plugin_insn *insn, struct qemu_plugin_insn *next)
{
	static const qemu_plugin_vcpu_udata_cb_t calls[] = {
		[TLBI] = on_tlbi, [DSB] = on_dsb, [SET_HCR] = on_hcr, [SET_VTCR] = on_vtcr,
		[SET_VTTBR] = on_vttbr,
	};
	enum kind kind;
	uint32_t op;

	if (qemu_plugin_insn_data(insn, &op, sizeof(op)) != sizeof(op))
		return;
	kind = arm64_kind(op);
	instrument_code(insn, next, kind, qemu_plugin_insn_vaddr(insn));
	if (kind < sizeof(calls) / sizeof(calls[0]) && calls[kind])
		call(insn, calls[kind], (void *)(uintptr_t)op);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, total = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (i = 0; i < total; i++)
		instrument(qemu_plugin_tb_get_insn(tb, i),
			   i + 1 < total ? qemu_plugin_tb_get_insn(tb, i + 1) : NULL);
}

static void on_cpu(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	find_registers("stage2-trace", cpu, "SP_EL0");
}

static void on_exit_qemu(qemu_plugin_id_t id, void *data)
{
	(void)id, (void)data;
	pthread_mutex_lock(&mutex);
	fprintf(out, "done %" PRIu64 "\n", lines < limit ? lines : limit);
	fclose(out);
	/* Whoever comes now waits for the end of QEMU. */
}

static bool read_code(const char *file)
{
	static const char * const roles[] = { "store", "op", "destroy" };
	FILE *f = fopen(file, "r");
	bool good = f;
	char role[16];
	int i;

	while (good && fscanf(f, "%15s %63s %" SCNx64 " %" SCNx64, role, code[codes].name, &code[codes].from,
			      &code[codes].to) == 4) {
		for (i = 0; i < 3 && strcmp(role, roles[i]); i++)
			;
		code[codes].role = i;
		good = i < 3 && code[codes].from < code[codes].to && ++codes < MAX_CODE;
	}
	if (f) {
		good = good && feof(f) && codes;
		fclose(f);
	}
	if (!good)
		fprintf(stderr, "stage2-trace: cannot use %s as the list of code\n", file);
	return good;
}

static bool set_option(const char *option)
{
	if (!strncmp(option, "out=", 4))
		return (out = open_output("stage2-trace", option + 4));
	if (!strncmp(option, "code=", 5))
		return read_code(option + 5);
	if (!strncmp(option, "limit=", 6))
		return (limit = strtoull(option + 6, NULL, 10));
	fprintf(stderr, "stage2-trace: bad option %s\n", option);
	return false;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	int i;

	if (!is_known("stage2-trace", info))
		return -1;
	for (i = 0; i < argc; i++)
		if (!set_option(argv[i]))
			return -1;
	if (!out || !codes) {
		fputs("stage2-trace: needs out=FILE and code=FILE\n", stderr);
		return -1;
	}
	setvbuf(out, NULL, _IOFBF, 1 << 20);
	emit("stage2-trace 1\n");
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_atexit_cb(id, on_exit_qemu, NULL);
	return 0;
}
