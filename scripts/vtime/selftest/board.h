/* What -M virt,gic-version=3 has that the tests need: console, PSCI, counter, interrupts. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

#define IPI 0			/* the SGI of test ipi */
#define TIMER 27		/* the PPI of the virtual timer */

/* Print on the PL011. number() is decimal, hex() with 0x. */
void text(const char *s);
void number(uint64_t n);
void hex(uint64_t n);

/* Start CPU `index` at `secondary`; 0 or PSCI's negative error. */
int64_t cpu_on(unsigned int index);
/* These do not return. */
void cpu_off(void) __attribute__((noreturn));
void system_off(void) __attribute__((noreturn));

/* CNTVCT_EL0, in ticks, and ticks (up to 2^63 / 10^9 of them) in ns. */
uint64_t ticks(void);
uint64_t ticks_per_second(void);
uint64_t to_ns(uint64_t ticks);

/* Let `IPI` and `TIMER` wake this CPU from WFI, and be acknowledged; PSTATE keeps them masked. */
void interrupts_init(unsigned int index);
/* Set the virtual timer so far off that it never expires, and enable it. */
void timer_init(void);
/* What to write to ICC_SGI1R_EL1 to send `IPI` to a CPU; send it. */
uint64_t ipi_to(unsigned int index);
void ipi_send(uint64_t value);

#endif
