/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A QEMU for tests of the plugins for arm64: it has four CPUs and memory at 40000000, mapped linearly, and does what
 * the lines of its input say:
 *	x CPU NUMBER VALUE		set a register (31: the one that the plugin has named)
 *	mem ADDRESS VALUE		set memory, unseen by the plugin
 *	run CPU PC OPCODE		execute this instruction.  A NOP follows in the block, or with `only` nothing
 *	run CPU PC OPCODE ADDRESS	the same, with an access to this virtual address
 *	run CPU PC OPCODE ADDRESS VALUE	the same, with a store of VALUE to this physical address
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "qemu_api.h"

#define LINEAR 0xffff000000000000ull
#define START 0x40000000ull
static uint8_t ram[1 << 20];
static uint64_t regs[4][32], now_address;
static unsigned int now_cpu;
static qemu_plugin_vcpu_simple_cb_t on_cpu;
static qemu_plugin_vcpu_tb_trans_cb_t on_translate;
static qemu_plugin_udata_cb_t on_end;
struct qemu_plugin_insn { uint64_t pc; uint32_t op; };
static struct qemu_plugin_insn block[2];
static int n_block, n_after;
static struct { qemu_plugin_vcpu_udata_cb_t f; void *data; } execs[8], after[8];
static struct { qemu_plugin_vcpu_mem_cb_t f; void *data; } mems[8];
static int n_exec, n_mem;

EXPORT void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t f) { on_cpu = f; }
EXPORT void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t f) { on_translate = f; }
EXPORT void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb_t f, void *d) { on_end = f; }
EXPORT void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *i, qemu_plugin_vcpu_udata_cb_t f,
						   enum qemu_plugin_cb_flags g, void *d)
{
	if (i == &block[1]) {
		after[n_after].f = f;
		after[n_after++].data = d;
	} else {
		execs[n_exec].f = f;
		execs[n_exec++].data = d;
	}
}
EXPORT void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *i, qemu_plugin_vcpu_mem_cb_t f,
					     enum qemu_plugin_cb_flags g, enum qemu_plugin_mem_rw rw, void *d)
{ mems[n_mem].f = f; mems[n_mem++].data = d; }
EXPORT size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb) { return n_block; }
EXPORT struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i) { return &block[i]; }
EXPORT size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *i, void *to, size_t n) { memcpy(to, &i->op, 4); return 4; }
EXPORT uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *i) { return i->pc; }
EXPORT struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t m, uint64_t v) { return (void *)&now_address; }
EXPORT bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *a) { return false; }
EXPORT uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *a) { return now_address; }
EXPORT GByteArray *g_byte_array_new(void) { return calloc(1, sizeof(GByteArray)); }
EXPORT GByteArray *g_byte_array_set_size(GByteArray *a, unsigned int n)
{ a->data = realloc(a->data, n + 1); a->len = n; return a; }
EXPORT GArray *qemu_plugin_get_registers(void)
{
	static char names[33][8] = { [31] = "SP_EL0", [32] = "ESR_EL2" };
	static qemu_plugin_reg_descriptor all[33];
	static GArray list = { (char *)all, 33 };
	int i;

	for (i = 0; i < 33; i++) {
		if (i < 31)
			sprintf(names[i], "x%d", i);
		all[i].name = names[i];
		all[i].handle = (void *)(uintptr_t)(i < 31 ? i + 1 : 32);
	}
	return &list;
}
EXPORT int qemu_plugin_read_register(struct qemu_plugin_register *h, GByteArray *to)
{
	g_byte_array_set_size(to, 8);
	memcpy(to->data, &regs[now_cpu][(uintptr_t)h - 1], 8);
	return 8;
}
EXPORT bool qemu_plugin_read_memory_vaddr(uint64_t a, GByteArray *to, size_t n)
{
	if (a - LINEAR + n > sizeof(ram))
		return false;
	g_byte_array_set_size(to, n);
	memcpy(to->data, ram + (a - LINEAR), n);
	return true;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv);

int main(int argc, char **argv)
{
	qemu_info_t info = { .target_name = getenv("TARGET"), .version = { 4, atoi(getenv("VERSION")) } };
	unsigned long long a, b, c, address, value;
	char line[200];
	int i, count;

	if (qemu_plugin_install(1, &info, argc - 1, argv + 1))
		return 1;
	for (i = 0; i < 4; i++)
		on_cpu(1, i);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "x %llx %llu %llx", &a, &b, &c) == 3)
			regs[a][b] = c;
		else if (sscanf(line, "mem %llx %llx", &a, &b) == 2)
			memcpy(ram + (a - START), &b, 8);
		count = sscanf(line, "run %llx %llx %llx %llx %llx", &a, &b, &c, &address, &value);
		if (count < 3)
			continue;
		block[0] = (struct qemu_plugin_insn){ b, c };
		block[1] = (struct qemu_plugin_insn){ b + 4, 0xd503201f };
		n_block = strstr(line, "only") ? 1 : 2;
		now_cpu = a;
		n_exec = n_after = n_mem = 0;
		on_translate(1, NULL);
		for (i = 0; i < n_exec; i++)
			execs[i].f(a, execs[i].data);
		if (count == 5) {
			memcpy(ram + (address - START), &value, 8);
			now_address = address;
			address += LINEAR - START;
		}
		for (i = 0; count > 3 && i < n_mem; i++)
			mems[i].f(a, 0, address, mems[i].data);
		for (i = 0; i < n_after; i++)
			after[i].f(a, after[i].data);
	}
	on_end(1, NULL);
	return 0;
}
