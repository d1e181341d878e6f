/* SPDX-License-Identifier: Apache-2.0 */
/* The unit test runner. Tests register themselves:
 *
 *     TEST(cut_walks_a_list) { expect(…); expect_eq(a, b); expect_str(s, "x"); }
 *
 * Link with base_test_dep (it brings main). Each test runs in a child process with a time limit; a
 * test that leaks a descriptor fails, and under ASan one that leaks memory. Output is TAP. `prog
 * NAME` runs one test in-process for a debugger.
 *
 * Failing allocations:
 *
 *     TEST(survives_out_of_memory) { test_each_failing_allocation(body, ctx); }
 *
 * calls body(ctx) with the 1st, 2nd, … allocation of this program's own code failing until a run
 * needs no more; body must return 0 on success and a negative errno (-ENOMEM) when it failed, and
 * leak nothing. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct test_case {
	const char *name;
	void (*run)(void);
};

#define TEST(name_)                                                                                \
	static void test_##name_(void);                                                            \
	static const struct test_case test_case_##name_ = {#name_, test_##name_};                  \
	__attribute__((used, section("andiron_tests"))) static const struct test_case              \
		*const test_entry_##name_ = &test_case_##name_;                                    \
	static void test_##name_(void)

void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));

/* Ends the test as skipped, with the reason and what would lift it. */
void test_skip(const char *reason) __attribute__((noreturn));

void test_each_failing_allocation(int (*body)(void *context), void *context);

#define expect(cond)                                                                               \
	do {                                                                                       \
		if (!(cond))                                                                       \
			test_fail(__FILE__, __LINE__, "expected %s", #cond);                       \
	} while (0)

#define expect_eq(a, b)                                                                            \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		if (a_ != b_)                                                                      \
			test_fail(__FILE__, __LINE__, "%s is %lld, expected %s = %lld", #a, a_,    \
				  #b, b_);                                                         \
	} while (0)

#define expect_str(s, text)                                                                        \
	do {                                                                                       \
		struct str s_ = (s), t_ = str_of(text);                                            \
		if (!str_eq(s_, t_))                                                               \
			test_fail(__FILE__, __LINE__, "%s is \"%.*s\", expected \"%.*s\"", #s,     \
				  STR_FMT(s_), STR_FMT(t_));                                       \
	} while (0)
