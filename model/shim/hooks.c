// SPDX-License-Identifier: GPL-2.0
/*
 * gcc -fsanitize=thread has the compiler call these before each access that is not marked.
 * It is not ThreadSanitizer that they lead to.
 */
#define S2_NO_CODE
#include "kernel.h"
#define S2_HOOK(n)								\
	void __tsan_read##n(void *p) { s2.plain(p, n, 0); }			\
	void __tsan_write##n(void *p) { s2.plain(p, n, 1); }			\
	void __tsan_unaligned_read##n(void *p) { s2.plain(p, n, 0); }		\
	void __tsan_unaligned_write##n(void *p) { s2.plain(p, n, 1); }
S2_HOOK(1) S2_HOOK(2) S2_HOOK(4) S2_HOOK(8) S2_HOOK(16)
void __tsan_read_range(void *p, u64 n) { s2.plain(p, n, 0); }
void __tsan_write_range(void *p, u64 n) { s2.plain(p, n, 1); }
void __tsan_func_entry(void *p) { (void)p; }
void __tsan_func_exit(void) { }
void __tsan_init(void) { }
