/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: as much of a host as a writer needs, in one thread over poll, with the writer's row of
 * the ledger; and batches to feed it with. */
#pragma once

#include "abi/log.h"

#include <andiron/object.h>

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define TEST_HOST_MAX 64

struct test_watch {
	int fd;
	uint32_t events;
	uint64_t id;
	andiron_watch_fn fn;
	void *arg;
};

struct test_timer {
	uint64_t id; /* 0: free */
	int64_t due_ns;
	andiron_call_fn fn;
	void *arg;
};

struct test_dropped {
	char reason[32];
	uint64_t samples;
};

struct test_host {
	struct andiron_host table;
	struct test_watch watches[TEST_HOST_MAX];
	size_t n_watches;
	struct test_timer timers[TEST_HOST_MAX];
	uint64_t last_id;
	uint64_t carried, delivered, spooled, uncertain, in_flight, n_dropped;
	struct test_dropped dropped[16];
	uint64_t taken;  /* for the writer, as it may ask; 0: it learns of batches only */
	uint64_t others; /* of these, what others dropped */
	uint32_t health;
	char message[512];
	bool drained;
	const struct andiron_objects *objects; /* NULL: the host has none */
	bool verbose;                          /* log lines to standard error */
};

/* There is one at a time; its instance is 1. */
struct test_host *test_host_new(void);
void test_host_free(void);
struct abi_context test_host_context(void);

/* Turns until *flag or the time is over; false in the latter case. */
bool test_host_until(const bool *flag, int64_t timeout_ms);

uint64_t test_host_dropped(const char *reason);

/* What a test batch is made of: each group a series "service_name=sN" with n_rows rows, every row
 * `samples` samples and a value of samples × period. */
struct test_shape {
	uint32_t n_groups, n_rows, n_depth;
	uint64_t samples;
	int64_t end_ns;
	const char *prefix; /* of the names, NULL: "s" */
	const char *labels; /* more labels, "name=value,name=value", NULL: none */
};

/* One reference; ends the test on failure. */
const struct andiron_batch *test_batch(const struct test_shape *shape);
