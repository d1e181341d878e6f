/* SPDX-License-Identifier: Apache-2.0 */
/* Components for the runtime's tests: one set of functions behind several tables, each instance
 * steered and watched by a `struct probe` of the test. Every call checks that no other is inside
 * the same instance. */
#pragma once

#include "abi/batch-build.h"
#include "abi/target-list.h"
#include "testing/test.h"
#include "base/clock.h"
#include "host/graph/lifecycle.h"
#include "host/graph/scheduler.h"
#include "host/graph/wiring.h"

#include <semaphore.h>
#include <stdatomic.h>

struct probe {
	const char *name;
	const struct andiron_host *host;
	uint64_t instance;
	atomic_int inside;
	/* What it does. */
	int32_t fail_create, fail_start, fail_update;
	bool no_deliver;    /* keeps what it got in its in-flight level */
	bool never_drained; /* does not say so */
	sem_t *block_batch; /* waits for it in every batch */
	sem_t *in_batch;    /* and says so before */
	sem_t *block_start;
	int send_at_drain;                 /* batches of 10 samples */
	void (*on_start)(struct probe *p); /* in start, [worker] */
	/* What happened. */
	atomic_int n_create, n_start, n_update, n_drain, n_stop, n_destroy, n_batch, n_targets;
	atomic_ullong samples;
	const struct andiron_batch *last_batch; /* not held: for comparing only */
	struct target_table *table;
	uint64_t in_flight;
	void *user;
};

extern const struct andiron_component test_producer, test_forward, test_writer, test_service,
	test_user, test_replaced;
#define TEST_SERVICE_ID "test.service/1"

/* An order of events: letters, appended. */
struct events {
	pthread_mutex_t lock;
	char text[256];
	size_t n;
};
extern struct events test_events;
void test_event(const char *format, const char *name);
/* Both happened, and in this order. */
void test_before(const char *first, const char *second);

void probe_fini(struct probe *p);

struct plan *test_plan(void);
/* Producer, writer, edges of both kinds and a literal; NULL without memory. */
struct plan *test_try_plan(struct probe probes[2]);
uint32_t test_node(struct plan *plan, const char *id, const struct andiron_component *component,
		   struct probe *probe);
void test_batches(struct plan *plan, uint32_t from, uint32_t to);
void test_targets(struct plan *plan, uint32_t from, uint32_t to);
void test_literal(struct plan *plan, uint32_t to, const char *name, const char *value);

/* A batch of so many samples that claims so many bytes (0: as it is). */
const struct andiron_batch *test_batch(uint64_t samples, uint64_t bytes);
/* Counts as taken and sends. */
void test_take(struct probe *p, uint64_t samples, uint64_t bytes);

/* The instance behind a probe, or NULL when it is gone. */
struct instance *host_instance_of(const struct probe *p);

struct host *test_host(struct host_options options);
/* Rounds of the loop until a counter has come to n. */
void test_until(struct host *host, atomic_int *counter, int n);
/* Runs until stopped; expects r, and a balanced ledger. */
void test_run(struct host *host, int r);
/* Stops as soon as everything is live. */
void test_stop_live(void *context, const char *failed);
const struct ledger_writer *test_writer_row(struct host *host, const char *name);
uint64_t test_dropped(struct host *host, const char *writer, const char *key);
