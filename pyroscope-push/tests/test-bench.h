/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a whole writer between a host that counts and a server that fails. After every step
 * taken + carried is what the host's row holds. */
#pragma once

#include "base/vec.h"
#include "http/tests/test-loop.h"
#include "pyroscope-push/tests/test-host.h"
#include "pyroscope-push/writer.h"

#include <sys/types.h>

/* What the server has, a profile once however often it came. */
struct stored {
	uint64_t hash;
	int64_t time_ns, samples;
};

/* How often a request's connection was closed without an answer. */
struct lost_request {
	uint64_t hash;
	int times;
};

/* The label's value "s7" as it stands in a request: tag and length before it, since two bytes alone
 * are found in compressed profiles, too. */
#define BENCH_SERIES_7 "\x12\x02s7"

struct receiver {
	unsigned int seed;
	bool faulty, hang;
	const char *says;   /* to every request, of which it stores nothing */
	const char *poison; /* a request that holds this text is refused, */
	bool deadly;        /* or kills the server */
	VEC(struct stored) profiles;
	VEC(struct lost_request) lost;
	uint64_t n_requests;
	struct test_server *server;
};

/* Arguments by hand: an endpoint block per URL. */
struct arguments {
	char urls[2][64];
	int64_t backoff_ms, retries, timeout_ms, queue_bytes;
	const char *spool; /* its directory */
	uint64_t spool_bytes;
	int64_t max_age_ms; /* 0: the protocol's */
	size_t n;
	struct andiron_value values[2][7], blocks[2], spool_values[2], tops[2];
	struct andiron_value root;
};

struct bench {
	struct receiver receiver;
	struct arguments args;
	struct test_host *host;
	struct writer *writer;
	const struct protocol *protocol; /* NULL: Pyroscope's */
	uint64_t taken;
	char directory[64]; /* of the spool; empty: there is none */
};

const struct andiron_value *arguments(struct arguments *a);
int64_t stored_samples(const struct receiver *r);
void set_url(struct arguments *a, size_t i, uint16_t port);

/* A server and arguments; then a host and a writer; then batches of 3 samples a row; then the end,
 * the books having been checked. */
void bench_open(struct bench *t);
void bench_arguments(struct bench *t); /* all but the URL */
void bench_start(struct bench *t);
void bench_feed(struct bench *t, uint32_t n_groups, uint32_t n_rows);
void bench_drain(struct bench *t, int64_t ms);
/* Ends the writer and its host, leaving the server. */
void bench_end(struct bench *t);
void bench_close(struct bench *t);
void bench_check(const struct bench *t);

/* A directory for the spool, in memory where there is room for one; and its end, with the files in
 * it. */
void bench_make_directory(struct bench *t);
void bench_remove_directory(struct bench *t);

/* A run in a process of its own: it makes arguments, starts, does `body` and kills itself. It is
 * made before there is a server, whose thread no fork survives, and begins once it is told the
 * server's port. bench_run_end tells it, and waits for its death. */
struct bench_run {
	pid_t pid;
	int port;
};
struct bench_run bench_run(struct bench *t, void (*body)(struct bench *t));
void bench_run_end(const struct bench_run *run, uint16_t port);
