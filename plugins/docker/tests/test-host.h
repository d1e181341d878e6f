/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a host of one thread whose clock can be put forward, for one component that discovers
 * targets; and answers of an engine. */
#pragma once

#include "abi/target-list.h"
#include "base/clock.h"
#include "http/tests/test-loop.h"

#include <andiron/component.h>

#include <stdatomic.h>

/* How long a condition is waited for. */
#define TEST_HOST_LIMIT_NS (10 * NS_PER_SEC)

struct test_host {
	int64_t ahead_ns; /* of the real clock */
	char health[2048];
	struct target_table *targets;
	int changes[4]; /* how many rows came, changed, went: TARGET_… */
};

extern struct test_host test_host;
extern const struct andiron_host test_host_calls;

/* Forgets all, with an empty table of targets. */
void test_host_begin(void);
void test_host_end(void);

/* Calls what is due. */
void test_host_call(void);
/* Turns until there were so many requests; false when there were not in time. */
bool test_host_until(const atomic_int *count, int wanted);
/* Turns until the health says this. */
bool test_host_until_says(const char *words);
/* Turns until there are so many targets. */
bool test_host_until_targets(size_t n);

/* A whole answer of an engine. */
void test_host_answer(int fd, int status, const char *body);
