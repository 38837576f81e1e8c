/* SPDX-License-Identifier: GPL-2.0 */
/* What main.c needs of x86-64: the TSC is its clock, the local APIC's timer ends a hlt. */
#ifndef ARCH_H
#define ARCH_H

#include <stdint.h>

#include "layout.h"
#include "start.h"

/* MSRs; those from 0x800 on are the APIC's in x2APIC mode. */
#define MSR_GS_BASE		0xc0000101
#define MSR_TSC_DEADLINE	0x6e0
#define MSR_KVM_SYSTEM_TIME	0x4b564d01
#define MSR_APIC_SPURIOUS	0x80f
#define MSR_APIC_COMMAND	0x830
#define MSR_APIC_TIMER		0x832

#define APIC_ON			0x1ff
#define APIC_INIT		0x4500UL
#define APIC_STARTUP		(0x4600UL | RESET_SEGMENT >> 8)
#define APIC_DEADLINE		(2UL << 17)

void wait_for_timer(void);

/* KVM's ABI: how it makes nanoseconds of the TSC. */
struct clock {
	uint32_t version;
	uint32_t pad;
	uint64_t tsc;
	uint64_t nanoseconds;
	uint32_t mul;
	int8_t shift;
	uint8_t flags;
	uint8_t pads[2];
};

static inline void wrmsr(uint32_t msr, uint64_t value)
{
	asm volatile("wrmsr" :: "c" (msr), "a" ((uint32_t)value), "d" ((uint32_t)(value >> 32))
		     : "memory");
}

static uint64_t counter(void)
{
	uint32_t low, high;

	/* Not ahead of the write before it. */
	asm volatile("lfence\n\trdtsc" : "=a" (low), "=d" (high) :: "memory");
	return (uint64_t)high << 32 | low;
}

/* Asked of KVM, once: it writes no page of the guest's later. */
static uint64_t frequency(void)
{
	volatile struct clock clock __attribute__((aligned(32))) = { 0 };
	uint64_t freq;

	wrmsr(MSR_KVM_SYSTEM_TIME, ((uint64_t)&clock - GUEST_RAM) | 1);
	while (!clock.mul || clock.version % 2)
		asm volatile("pause");
	freq = (1000000000UL << 32) / clock.mul;
	freq = clock.shift < 0 ? freq << -clock.shift : freq >> clock.shift;
	wrmsr(MSR_KVM_SYSTEM_TIME, 0);
	return freq;
}

/* Interrupts are off: nothing ends it. */
static inline void halt(void)
{
	asm volatile("cli\n\thlt");
}

/* Where start.S finds it when an exception is taken. */
static inline void set_state(volatile struct state *state)
{
	wrmsr(MSR_GS_BASE, (uint64_t)state);
}

/* Others see what was written before it before what is written after it. */
static inline void write_barrier(void)
{
	asm volatile("mfence" ::: "memory");
}

/* It begins where the firmware does, and finds its own index. */
static void start_vcpu(uint64_t index)
{
	wrmsr(MSR_APIC_COMMAND, index << 32 | APIC_INIT);
	wrmsr(MSR_APIC_COMMAND, index << 32 | APIC_STARTUP);
}

/* The timer's interrupt, which is taken in wait_for_timer() alone. */
static void init_timer(uint64_t index)
{
	wrmsr(MSR_APIC_SPURIOUS, APIC_ON);
	wrmsr(MSR_APIC_TIMER, APIC_DEADLINE | TIMER_VECTOR);
}

static void wait_until(uint64_t due)
{
	while (counter() < due) {
		wrmsr(MSR_TSC_DEADLINE, due);
		wait_for_timer();
	}
}

#endif
