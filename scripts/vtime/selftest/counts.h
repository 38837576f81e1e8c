/*
 * The tests' numbers, the words that choose one, and how many instructions the hot loops execute.
 * loops.S checks every count below against its code when it is assembled; expected.py reads them.
 *
 * <TEST>_LOOP    executed per iteration besides `length` and `gap`, when nothing is waited for
 * <TEST>_HELD    of these, from the one that sees a lock (token, interrupt) free up to the one that
 *                hands it on, both included; READERS: what follows the first RMW up to the second
 * <TEST>_WAKE    executed between the end of a WFE and the first of HELD
 * A number must end its line: expected.py overlooks it otherwise.
 */
#ifndef COUNTS_H
#define COUNTS_H

/* Where -device loader writes: five 8-byte little-endian words, in this order. */
#define WORDS 0x41000000
#define WORD_TEST 0
#define WORD_CPUS 1
#define WORD_ITERATIONS 2
#define WORD_LENGTH 3
#define WORD_GAP 4

#define MAX_CPUS 64

#define TEST_INDEPENDENT 1
#define TEST_SPINLOCK 2
#define TEST_SPINLOCK_POLL 3
#define TEST_TICKET 4
#define TEST_READERS 5
#define TEST_TLBI 6
#define TEST_TLBI_LOCAL 7
#define TEST_ATOMIC 8
#define TEST_ATOMIC_SHARED 9
#define TEST_RING 10
#define TEST_SLEEP 11
#define TEST_IPI 12
#define TEST_IMBALANCE 13
#define TEST_EXCEPTION 14
#define TEST_DC 15
#define TEST_WFE 16
#define TEST_STORE 17
#define TEST_STORE_SHARED 18

#define INDEPENDENT_LOOP 3
#define SPINLOCK_LOOP 9
#define SPINLOCK_HELD 6
#define SPINLOCK_WAKE 1
#define SPINLOCK_POLL_LOOP 9
#define SPINLOCK_POLL_HELD 6
#define TICKET_LOOP 10
#define TICKET_HELD 6
#define TICKET_WAKE 1
#define READERS_LOOP 6
#define READERS_HELD 2
#define TLBI_LOOP 6
#define TLBI_LOCAL_LOOP 6
#define ATOMIC_LOOP 4
#define RING_LOOP 9
#define RING_HELD 6
#define RING_WAKE 1
#define SLEEP_LOOP 10
#define IPI_LOOP 10
#define IPI_HELD 6
#define EXCEPTION_LOOP 5
#define DC_LOOP 4
#define WFE_LOOP 4
#define STORE_LOOP 4

/* imbalance: CPU 0 runs this many times the iterations of the others */
#define IMBALANCE_FACTOR 10

#endif
