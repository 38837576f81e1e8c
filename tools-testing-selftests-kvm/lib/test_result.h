/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Results of a test in TAP, one after the other
 *
 * TEST_ASSERT() exits from wherever it is. The result that is under way then
 * has failed, or was skipped if the exit status says so.
 */

#ifndef SELFTEST_KVM_TEST_RESULT_H
#define SELFTEST_KVM_TEST_RESULT_H

#include <stdlib.h>
#include <unistd.h>

#include "kselftest.h"

static const char *test_result_name;
static pid_t test_result_process;

static void test_result_exit(int status, void *unused)
{
	/* What a child exits with is its parent's to judge. */
	if (getpid() != test_result_process)
		return;
	if (test_result_name && status == KSFT_SKIP)
		ksft_test_result_skip("%s\n", test_result_name);
	else if (test_result_name)
		ksft_test_result_fail("%s\n", test_result_name);
	ksft_print_cnts();
}

static inline void test_result_plan(unsigned int nr)
{
	test_result_process = getpid();
	on_exit(test_result_exit, NULL);
	ksft_print_header();
	ksft_set_plan(nr);
}

static inline void test_result_begin(const char *name)
{
	test_result_name = name;
}

static inline void test_result_pass(void)
{
	ksft_test_result_pass("%s\n", test_result_name);
	test_result_name = NULL;
}

static inline void test_result_fail(void)
{
	ksft_test_result_fail("%s\n", test_result_name);
	test_result_name = NULL;
}

static inline void test_result_skip(const char *reason)
{
	ksft_test_result_skip("%s: %s\n", test_result_name, reason);
	test_result_name = NULL;
}

#endif /* SELFTEST_KVM_TEST_RESULT_H */
