/* The devices of QEMU's -M virt,gic-version=3. Addresses: hw/arm/virt.c, base_memmap. */
#include "board.h"

#define GICD 0x08000000UL
#define GICR 0x080a0000UL
#define GICR_STRIDE 0x20000UL
#define UART 0x09000000UL

#define GICD_CTLR 0x0
#define GICR_WAKER 0x14
#define GICR_SGI 0x10000	/* the second frame of a redistributor */
#define GICR_IGROUPR0 (GICR_SGI + 0x80)
#define GICR_ISENABLER0 (GICR_SGI + 0x100)
#define UART_FR 0x18

#define PSCI_CPU_OFF 0x84000002UL
#define PSCI_CPU_ON 0xc4000003UL
#define PSCI_SYSTEM_OFF 0x84000008UL

#define CLUSTER 16		/* CPUs per Aff1 with a GICv3 */

extern uint64_t boot_el;	/* start.S: the level QEMU started us at */
extern char secondary[];

static volatile uint32_t *reg(uint64_t address)
{
	return (volatile uint32_t *)address;
}

void text(const char *s)
{
	for (; *s; s++) {
		while (*reg(UART + UART_FR) & (1 << 5))
			;
		*reg(UART) = *s;
	}
}

static void digits(uint64_t n, unsigned int base)
{
	char s[21], *p = s + 20;

	for (*p = 0; p == s + 20 || n; n /= base)
		*--p = "0123456789abcdef"[n % base];
	text(p);
}

void number(uint64_t n)
{
	digits(n, 10);
}

void hex(uint64_t n)
{
	text("0x");
	digits(n, 16);
}

static uint64_t affinity(unsigned int index)
{
	return (uint64_t)(index / CLUSTER) << 8 | index % CLUSTER;
}

/* With EL2 in the machine QEMU's own PSCI listens to SMC, without to HVC. */
static int64_t psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
	register uint64_t x0 asm("x0") = function;
	register uint64_t x1 asm("x1") = a;
	register uint64_t x2 asm("x2") = b;
	register uint64_t x3 asm("x3") = c;

	if (boot_el == 2)
		asm volatile("smc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) :: "memory");
	else
		asm volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) :: "memory");
	return x0;
}

int64_t cpu_on(unsigned int index)
{
	return psci(PSCI_CPU_ON, affinity(index), (uint64_t)secondary, index);
}

void cpu_off(void)
{
	psci(PSCI_CPU_OFF, 0, 0, 0);
	for (;;)
		asm volatile("wfi");
}

void system_off(void)
{
	psci(PSCI_SYSTEM_OFF, 0, 0, 0);
	for (;;)
		asm volatile("wfi");
}

uint64_t ticks(void)
{
	uint64_t t;

	asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(t) :: "memory");
	return t;
}

uint64_t ticks_per_second(void)
{
	uint64_t f;

	asm("mrs %0, cntfrq_el0" : "=r"(f));
	return f;
}

uint64_t to_ns(uint64_t ticks)
{
	uint64_t f = ticks_per_second();

	return ticks / f * 1000000000 + ticks % f * 1000000000 / f;
}

void interrupts_init(unsigned int index)
{
	uint64_t r = GICR + index * GICR_STRIDE;

	if (!index)
		*reg(GICD + GICD_CTLR) = 1 << 4 | 1 << 1;	/* affinity routing, group 1 */
	*reg(r + GICR_WAKER) = 0;
	while (*reg(r + GICR_WAKER) & 1 << 2)
		;
	*reg(r + GICR_IGROUPR0) = ~0U;
	*reg(r + GICR_ISENABLER0) = 1 << IPI | 1 << TIMER;
	asm volatile("msr s3_0_c12_c12_5, %0\n\t"	/* ICC_SRE_EL1 */
		     "isb\n\t"
		     "msr s3_0_c4_c6_0, %1\n\t"		/* ICC_PMR_EL1 */
		     "msr s3_0_c12_c12_7, %0\n\t"	/* ICC_IGRPEN1_EL1 */
		     "isb" :: "r"(1UL), "r"(0xffUL) : "memory");
}

void timer_init(void)
{
	asm volatile("msr cntv_cval_el0, %0\n\t"
		     "msr cntv_ctl_el0, %1\n\t"
		     "isb" :: "r"(INT64_MAX), "r"(1UL));
}

uint64_t ipi_to(unsigned int index)
{
	return (uint64_t)IPI << 24 | (uint64_t)(index / CLUSTER) << 16 | 1UL << index % CLUSTER;
}

void ipi_send(uint64_t value)
{
	asm volatile("dsb ish\n\tmsr s3_0_c12_c11_5, %0\n\tisb" :: "r"(value) : "memory");
}
