// SPDX-License-Identifier: GPL-2.0
/*
 * The TCG plugin: what is instrumented and counted.
 *
 *	-plugin tlb-refills.so,out=FILE,marks=FILE[,block=ADDRESS]
 *
 * `block` is the hexadecimal address of 2 MiB that one block of the guest's stage 1 maps.
 *
 * `marks` has lines of a name and two hexadecimal addresses (the first, and the first behind): the
 * functions of the host's kernel by which entries to and exits from the nested guest, and its stage-2
 * faults, are known.
 *
 * Only what the nested guest accesses counts: between the ERET of __guest_enter() and the label
 * __guest_exit on the same CPU, at addresses with bit 63 clear.  The host's vectors run at EL2 in
 * between; with VHE their code, stack and data have bit 63 set.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "refills.h"
#include "aarch64.h"

#define HCR_FB (1ULL << 9)
#define BLOCK_PAGES 512
#define NO_BLOCK UINT64_MAX

EXPORT int qemu_plugin_version = QEMU_API_VERSION;

enum mark { ENTER, EXIT, FAULT, MARKS };
static const char * const names[MARKS] = { "__guest_enter", "__guest_exit", "kvm_handle_guest_abort" };
static struct {
	uint64_t from, to;
} marks[MARKS];

static struct cpu {
	uint64_t hcr;
	uint64_t syndrome;		/* ESR_EL2 at the last exit */
	bool guest;			/* the nested guest runs */
	enum cause cause;		/* of what is removed now */
} cpus[MAXCPU];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
/* The number of the first page that is mapped by a block. */
static uint64_t block = NO_BLOCK;
/* Write faults, faults of other kinds. */
static uint64_t faults[2];
static uint64_t refills[CAUSES];
/* TLBIs while a write fault was handled: of one page, of all. */
static uint64_t tlbis[2];
/* Refills since the last write fault, and the extremes of all write faults before it. */
static uint64_t now, least = UINT64_MAX, most;

static bool is_low(uint64_t address)
{
	return !(address >> 63);
}

static void accessed(unsigned int cpu, uint64_t address)
{
	enum cause cause;

	if (!cpus[cpu].guest || !is_low(address))
		return;
	pthread_mutex_lock(&mutex);
	if (tlb_access(cpu, address >> 12, &cause)) {
		refills[cause]++;
		now += cause == WRITE_FAULT;
	}
	pthread_mutex_unlock(&mutex);
}

static void on_execute(unsigned int cpu, void *address)
{
	accessed(cpu, (uintptr_t)address);
}

/* Called after the access: one that faults is not counted, its repetition is. */
static void on_memory(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	(void)info, (void)data;
	accessed(cpu, address);
}

static void on_enter(unsigned int cpu, void *data)
{
	(void)data;
	cpus[cpu].guest = true;
}

static void on_exit_guest(unsigned int cpu, void *data)
{
	(void)data;
	cpus[cpu].guest = false;
	/* Later the host may have had an exception of its own. */
	cpus[cpu].syndrome = read_named(cpu);
}

/* With the lock: a write fault comes, or QEMU ends. */
static void end_of_fault(void)
{
	if (!faults[0])
		return;
	if (now < least)
		least = now;
	if (now > most)
		most = now;
	now = 0;
}

/*
 * A data abort of a lower EL, a permission fault, by a write (DDI 0487, ESR_EL2).  All memory of the
 * test is writable, so it is the dirty log that has denied the write.
 */
static bool is_write_fault(uint64_t syndrome)
{
	return (syndrome >> 26 & 63) == 0x24 && (syndrome >> 2 & 15) == 3 && syndrome >> 6 & 1;
}

static void on_fault(unsigned int cpu, void *data)
{
	bool write = is_write_fault(cpus[cpu].syndrome);

	(void)data;
	pthread_mutex_lock(&mutex);
	if (write)
		end_of_fault();
	faults[!write]++;
	cpus[cpu].cause = write ? WRITE_FAULT : OTHER_FAULT;
	pthread_mutex_unlock(&mutex);
}

/* Here, not at the next entry: user space may harvest the dirty log before that. */
static void on_fault_end(unsigned int cpu, void *data)
{
	(void)data;
	cpus[cpu].cause = NO_FAULT;
}

/*
 * Whatever an entry of the model holds of a block, a TLBI of one of its pages removes all (DDI 0487,
 * D8.17, R_LQLSD).
 */
static uint64_t pages_of(uint64_t page)
{
	return (page & PAGE_BITS & ~(BLOCK_PAGES - 1ULL)) == block ? BLOCK_PAGES : 1;
}

/* VMIDs and ASIDs are not told apart: the test has one VM, and its guest one address space. */
static void on_tlbi(unsigned int cpu, void *data)
{
	struct cpu *c = &cpus[cpu];
	uint32_t op = (uintptr_t)data;
	struct tlbi tlbi = arm64_tlbi(op);
	uint64_t page = read_x(cpu, op & 31);
	unsigned int i;

	if (tlbi.what == NOTHING || (tlbi.needs_guest && c->hcr & HCR_TGE))
		return;
	/* By FB a guest's own TLBI is broadcast. */
	if (c->guest && c->hcr & HCR_FB)
		tlbi.broadcast = true;
	pthread_mutex_lock(&mutex);
	if (c->cause == WRITE_FAULT)
		tlbis[tlbi.what == ALL]++;
	for (i = 0; i < MAXCPU; i++) {
		if (i != cpu && !tlbi.broadcast)
			continue;
		if (tlbi.what == ALL)
			tlb_remove_all(i, c->cause);
		else
			tlb_remove_page(i, page, pages_of(page), c->cause);
	}
	pthread_mutex_unlock(&mutex);
}

static void on_hcr(unsigned int cpu, void *data)
{
	cpus[cpu].hcr = read_x(cpu, (uintptr_t)data & 31);
}

static bool is_in(uint64_t address, enum mark mark)
{
	return address >= marks[mark].from && address < marks[mark].to;
}

static void call(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t function, uint64_t data)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, function, QEMU_PLUGIN_CB_R_REGS,
					       (void *)(uintptr_t)data);
}

/* `first`: no instruction before it in the block is of the same page. */
static void instrument(struct qemu_plugin_insn *insn, bool first)
{
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	enum kind kind;
	uint32_t op;

	if (qemu_plugin_insn_data(insn, &op, sizeof(op)) != sizeof(op))
		return;
	kind = arm64_kind(op);
	if (kind == ERET && is_in(address, ENTER))
		call(insn, on_enter, 0);
	if (address == marks[EXIT].from)
		call(insn, on_exit_guest, 0);
	if (address == marks[FAULT].from)
		call(insn, on_fault, 0);
	if (kind == RET && is_in(address, FAULT))
		call(insn, on_fault_end, 0);
	if (kind == TLBI)
		call(insn, on_tlbi, op);
	if (kind == SET_HCR)
		call(insn, on_hcr, op);
	if (!is_low(address))
		return;
	if (first)
		call(insn, on_execute, address);
	qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, total = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *insn;
	uint64_t page, last = 0;

	(void)id;
	for (i = 0; i < total; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		page = qemu_plugin_insn_vaddr(insn) >> 12;
		instrument(insn, !i || page != last);
		last = page;
	}
}

static void on_cpu(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	find_registers("tlb-refills", cpu, "ESR_EL2");
	cpus[cpu].cause = NO_FAULT;
}

static void on_exit_qemu(qemu_plugin_id_t id, void *data)
{
	(void)id, (void)data;
	pthread_mutex_lock(&mutex);
	end_of_fault();
	fprintf(out, "write_faults %" PRIu64 "\nother_faults %" PRIu64 "\n", faults[0], faults[1]);
	fprintf(out, "refills_write_faults %" PRIu64 "\n", refills[WRITE_FAULT]);
	fprintf(out, "refills_other_faults %" PRIu64 "\n", refills[OTHER_FAULT]);
	fprintf(out, "refills_no_fault %" PRIu64 "\n", refills[NO_FAULT]);
	fprintf(out, "least_of_a_fault %" PRIu64 "\nmost_of_a_fault %" PRIu64 "\n", faults[0] ? least : 0, most);
	fprintf(out, "tlbis_page %" PRIu64 "\ntlbis_all %" PRIu64 "\npages %u\ndone 1\n", tlbis[0], tlbis[1],
		tlb_pages());
	fclose(out);
	/* Whoever comes now waits for the end of QEMU. */
}

static bool read_marks(const char *file)
{
	FILE *f = fopen(file, "r");
	uint64_t from, to;
	bool good = f;
	char name[64];
	int i;

	while (f && fscanf(f, "%63s %" SCNx64 " %" SCNx64, name, &from, &to) == 3)
		for (i = 0; i < MARKS; i++)
			if (!strcmp(name, names[i])) {
				marks[i].from = from;
				marks[i].to = to;
			}
	if (f)
		fclose(f);
	for (i = 0; i < MARKS; i++)
		good = good && marks[i].from < marks[i].to;
	if (good)
		return true;
	fprintf(stderr, "tlb-refills: cannot use %s as the list of marks\n", file);
	return false;
}

static bool set_option(const char *option)
{
	if (!strncmp(option, "out=", 4))
		return (out = open_output("tlb-refills", option + 4));
	if (!strncmp(option, "marks=", 6))
		return read_marks(option + 6);
	if (!strncmp(option, "block=", 6)) {
		block = strtoull(option + 6, NULL, 16) >> 12;
		return true;
	}
	fprintf(stderr, "tlb-refills: bad option %s\n", option);
	return false;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	int i;

	if (!is_known("tlb-refills", info))
		return -1;
	for (i = 0; i < argc; i++)
		if (!set_option(argv[i]))
			return -1;
	if (!out || !marks[FAULT].to) {
		fputs("tlb-refills: needs out=FILE and marks=FILE\n", stderr);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_atexit_cb(id, on_exit_qemu, NULL);
	return 0;
}
