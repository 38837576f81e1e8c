/* SPDX-License-Identifier: GPL-2.0 */
/* What main.c needs of arm64. */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

#define TIMER_PPI	27

struct state;

extern char secondary[];

static uint64_t counter(void)
{
	uint64_t value;

	/* Not ahead of the write before it. */
	asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r" (value) :: "memory");
	return value;
}

static uint64_t frequency(void)
{
	uint64_t value;

	asm volatile("mrs %0, cntfrq_el0" : "=r" (value));
	return value;
}

/* Wait for an interrupt. */
static inline void halt(void)
{
	asm volatile("wfi");
}

/* Where start.S finds it when an exception is taken. */
static inline void set_state(volatile struct state *state)
{
	asm volatile("msr tpidr_el1, %0" :: "r" (state));
}

/* Others see what was written before it before what is written after it. */
static inline void write_barrier(void)
{
	asm volatile("dmb ish" ::: "memory");
}

static void start_vcpu(uint64_t index)
{
	register uint64_t x0 asm("x0") = 0xc4000003;	/* PSCI CPU_ON */
	register uint64_t x1 asm("x1") = (index & 15) | index >> 4 << 8;
	register uint64_t x2 asm("x2") = (uint64_t)secondary;
	register uint64_t x3 asm("x3") = index;

	asm volatile("hvc #0" : "+r" (x0), "+r" (x1), "+r" (x2), "+r" (x3)
		     :: "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
		     "x13", "x14", "x15", "x16", "x17", "memory");
}

/* The virtual timer's interrupt, which ends a wfi. Nothing else is enabled. */
static void init_timer(uint64_t index)
{
	volatile uint32_t *distributor = (void *)0x08000000UL;
	volatile uint32_t *redistributor = (void *)(0x080a0000UL + index * 0x20000);

	distributor[0] = 0x13;				/* GICD_CTLR: affinity, groups */
	redistributor[0x14 / 4] = 0;			/* GICR_WAKER */
	redistributor[0x10080 / 4] = 0xffffffff;	/* GICR_IGROUPR0 */
	redistributor[0x10100 / 4] = 1 << TIMER_PPI;	/* GICR_ISENABLER0 */
	asm volatile("msr S3_0_C12_C12_5, %0\n\t"	/* ICC_SRE_EL1 */
		     "isb\n\t"
		     "msr S3_0_C4_C6_0, %1\n\t"		/* ICC_PMR_EL1 */
		     "msr S3_0_C12_C12_7, %2\n\t"	/* ICC_IGRPEN1_EL1 */
		     "isb" :: "r" (7UL), "r" (0xf0UL), "r" (1UL));
}

/*
 * The interrupt is never taken, as it is masked, but it is acknowledged and ended:
 * as long as it is active the timer does not raise it again.
 */
static void wait_until(uint64_t due)
{
	uint64_t number;

	while (counter() < due) {
		asm volatile("msr cntv_cval_el0, %1\n\t"
			     "msr cntv_ctl_el0, %2\n\t"
			     "isb\n\t"
			     "wfi\n\t"
			     "mrs %0, S3_0_C12_C12_0\n\t"	/* ICC_IAR1_EL1 */
			     "msr cntv_ctl_el0, xzr\n\t"
			     "isb"
			     : "=r" (number) : "r" (due), "r" (1UL) : "memory");
		if (number == TIMER_PPI)
			asm volatile("msr S3_0_C12_C12_1, %0\n\tisb" :: "r" (number));
	}
}

#endif
