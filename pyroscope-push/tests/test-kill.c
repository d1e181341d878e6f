/* SPDX-License-Identifier: Apache-2.0 */
/* What kill -9 costs, to the sample: what was taken and had not reached the spool is told by the
 * next run as lost_at_kill, what the killed run had sent without an answer as uncertain. Every run
 * is a process (bench_run). */
#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"
#include "pyroscope-push/tests/test-bench.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH 600 /* samples: ten series of twenty rows of three */

static void until_uncertain(struct bench *t)
{
	bench_feed(t, 10, 20);
	while (t->host->uncertain < BATCH)
		test_host_until(&(const bool){false}, 1);
}

/* A write without an answer is settled in the spool, and known to nobody but the run that dies. */
TEST(what_was_uncertain_before_a_kill_is_told)
{
	static struct bench t;
	struct protocol once = protocol_pyroscope;
	struct bench_run run;

	once.idempotent = false;
	bench_make_directory(&t);
	t.protocol = &once;
	t.receiver.poison = "s";
	t.receiver.deadly = true; /* it loses every answer, and stores nothing */
	run = bench_run(&t, until_uncertain);
	bench_open(&t);
	bench_run_end(&run, test_server_port(t.receiver.server));
	bench_start(&t);
	expect_eq(t.host->carried, BATCH);
	expect_eq(t.host->uncertain, BATCH);
	expect_eq(t.host->n_dropped, 0);
	bench_end(&t);
	bench_start(&t); /* a clean end has told it */
	expect_eq(t.host->carried, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

static void take_ahead(struct bench *t)
{
	t->host->taken = 2 * BATCH +
			 17; /* a batch, one behind it in a queue, and some in a table */
	bench_feed(t, 10, 20);
}

TEST(what_was_on_its_way_at_a_kill_is_lost)
{
	static struct bench t;
	struct bench_run run;

	bench_make_directory(&t);
	run = bench_run(&t, take_ahead);
	bench_run_end(&run, test_unused_port());
	bench_open(&t);
	bench_start(&t);
	expect_eq(t.host->carried, 2 * BATCH + 17);
	expect_eq(test_host_dropped("lost_at_kill"), BATCH + 17);
	bench_drain(&t, 20);
	bench_close(&t);
	bench_remove_directory(&t);
}

static void fill_memory(struct bench *t)
{
	struct rlimit none = {600, RLIM_INFINITY}; /* the page has its room already */

	signal(SIGXFSZ, SIG_IGN);
	expect_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	bench_feed(t, 10, 20);
	expect_eq(t->host->in_flight, BATCH);
}

/* On a full disk memory has what waits; the page has no need to grow. */
TEST(what_only_memory_had_at_a_kill_is_lost)
{
	static struct bench t;
	struct bench_run run;

	bench_make_directory(&t);
	run = bench_run(&t, fill_memory);
	bench_run_end(&run, test_unused_port());
	bench_open(&t);
	bench_start(&t);
	expect_eq(t.host->carried, BATCH);
	expect_eq(test_host_dropped("lost_at_kill"), BATCH);
	bench_close(&t);
	bench_remove_directory(&t);
}

static void until(bool (*is_so)(const struct bench *t, uint64_t than), const struct bench *t,
		  uint64_t than)
{
	while (!is_so(t, than))
		test_host_until(&(const bool){false}, 1);
}

static bool spool_is_larger(const struct bench *t, uint64_t than)
{
	return writer_spool_bytes(t->writer, NULL) > than;
}

static bool has_retried(const struct bench *t, uint64_t than)
{
	return endpoint_counts(writer_endpoint(t->writer, 0))->retries > than;
}

static bool has_expired(const struct bench *t, uint64_t than)
{
	return endpoint_counts(writer_endpoint(t->writer, 0))->expired_profiles > than;
}

/* The batch is on disk before it is sent: what follows is word of that. */
static void until_noted(struct bench *t)
{
	bench_feed(t, 10, 20);
	until(spool_is_larger, t, writer_spool_bytes(t->writer, NULL));
}

static void until_refused(struct bench *t)
{
	bench_feed(t, 10, 20);
	until(has_retried, t, 0);
}

/* Where nobody is there, the log does not grow by what is tried. */
static void until_tried_often(struct bench *t)
{
	uint64_t bytes;

	bench_feed(t, 10, 20);
	bytes = writer_spool_bytes(t->writer, NULL);
	until(has_retried, t, 20);
	expect_eq(writer_spool_bytes(t->writer, NULL), bytes);
}

/* The run after that is killed has what it left expire at once. */
static void expire(struct bench *t)
{
	t->args.max_age_ms = 1;
	bench_start(t);
	expect_eq(t->host->carried, BATCH);
	until(has_expired, t, 0);
}

/* What had left when the kill came, and expires before it is answered, may be there. */
TEST(what_had_left_at_a_kill_is_uncertain_at_its_end)
{
	static struct bench t;
	struct bench_run run;

	bench_make_directory(&t);
	run = bench_run(&t, until_noted);
	bench_open(&t);
	t.receiver.hang = true;
	bench_run_end(&run, test_server_port(t.receiver.server));
	expire(&t);
	expect_eq(t.host->uncertain, BATCH);
	expect_eq(t.host->n_dropped, 0);
	bench_end(&t);
	bench_start(&t); /* told once */
	expect_eq(t.host->carried, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

static void kill_untaken(struct bench *t, void (*body)(struct bench *t))
{
	struct bench_run run;
	uint16_t port;

	bench_make_directory(t);
	run = bench_run(t, body);
	bench_open(t);
	port = t->receiver.says ? test_server_port(t->receiver.server) : test_unused_port();
	bench_run_end(&run, port);
	set_url(&t->args, 0, port); /* to another place nothing is owed */
	expire(t);
	expect_eq(test_host_dropped("expired"), BATCH);
	expect_eq(t->host->uncertain, 0);
	bench_close(t);
	bench_remove_directory(t);
}

/* What the server had not taken, by its own word, is not there. */
TEST(what_was_refused_at_a_kill_expires)
{
	static struct bench t = {.receiver.says = "HTTP/1.1 503 Later\r\nRetry-After: 60\r\n"
						  "Content-Length: 2\r\n\r\n{}"};

	kill_untaken(&t, until_refused);
}

TEST(what_nobody_had_taken_at_a_kill_expires)
{
	static struct bench t;

	kill_untaken(&t, until_tried_often);
}

static void give_up(struct bench *t)
{
	uint64_t before = t->host->n_dropped;

	bench_feed(t, 10, 20);
	while (t->host->n_dropped < before + BATCH)
		test_host_until(&(const bool){false}, 1);
}

static uint64_t *taken; /* shared with the run */

/* What a run has given up is told by the next one, and by the one after it where that is killed,
 * too. */
TEST(what_was_dropped_before_a_kill_is_told)
{
	static struct bench t;
	struct bench_run first, second;

	bench_make_directory(&t);
	t.args.max_age_ms = 1;
	first = bench_run(&t, give_up);
	second = bench_run(&t, give_up);
	bench_run_end(&first, test_unused_port());
	bench_run_end(&second, test_unused_port());
	bench_open(&t);
	bench_start(&t);
	expect_eq(t.host->carried, 2 * BATCH);
	expect_eq(test_host_dropped("expired"), 2 * BATCH);
	expect_eq(t.host->n_dropped, 2 * BATCH);
	bench_end(&t);
	bench_start(&t); /* a clean end has told it */
	expect_eq(t.host->carried, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

static void lose_on_the_way(struct bench *t)
{
	t->host->taken = 2 * BATCH + 30;
	t->host->others = 30; /* by a sampler whose table was full, say */
	bench_feed(t, 10, 20);
	t->host->others += 10; /* of what was on its way */
	bench_feed(t, 10, 19);
}

/* So is what others had dropped: it was taken, and is in no other book. */
TEST(what_others_dropped_before_a_kill_is_told)
{
	static struct bench t;
	struct bench_run first, second;
	uint16_t port = test_unused_port();

	bench_make_directory(&t);
	first = bench_run(&t, lose_on_the_way);
	second = bench_run(&t, lose_on_the_way);
	bench_run_end(&first, port);
	bench_run_end(&second, port);
	bench_open(&t);
	set_url(&t.args, 0, port);
	bench_start(&t);
	expect_eq(test_host_dropped("on_the_way"), 2 * 40);
	expect_eq(test_host_dropped("lost_at_kill"), 2 * 20);
	expect_eq(t.host->carried, 2 * (2 * BATCH + 30));
	bench_check(&t);
	bench_drain(&t, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* One batch is always on its way behind the one that is written. */
static _Noreturn void feed_for_ever(struct bench *t)
{
	t->host->taken = *taken = BATCH;
	for (;;) {
		t->host->taken += BATCH;
		*taken = t->host->taken;
		bench_feed(t, 10, 20);
	}
}

/* Killed at any moment, the books close to the sample: what the next run carries is what was taken,
 * in whole batches, of which the last one may have been taken after it was last said. */
TEST(books_close_after_a_kill_at_any_moment)
{
	unsigned int seed = 5;
	uint64_t lost = 0;

	taken = mmap(NULL, sizeof(*taken), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	expect(taken != MAP_FAILED);
	/* More rounds where a busy machine has them end between two batches. */
	for (int round = 0; round < 300 || (lost <= 300 * BATCH / 2 && round < 3000); round++) {
		static struct bench t;
		struct bench_run run;
		uint16_t port = test_unused_port();
		uint64_t carried;

		*taken = 0;
		bench_make_directory(&t);
		run = bench_run(&t, feed_for_ever);
		expect_eq(write(run.port, &port, sizeof(port)), sizeof(port));
		while (__atomic_load_n(taken, __ATOMIC_RELAXED) < 3 * BATCH)
			expect_eq(waitpid(run.pid, NULL, WNOHANG), 0);
		for (int spin = rand_r(&seed) % 200000; spin; spin--)
			__asm__ volatile("");
		kill(run.pid, SIGKILL);
		expect_eq(waitpid(run.pid, NULL, 0), run.pid);
		close(run.port);
		bench_arguments(&t);
		set_url(&t.args, 0, port);
		bench_start(&t);
		carried = t.host->carried;
		lost += test_host_dropped("lost_at_kill");
		expect_eq(carried % BATCH, 0);
		expect(carried + BATCH >= *taken && carried <= *taken);
		expect(test_host_dropped("lost_at_kill") <= 2 * BATCH);
		bench_drain(&t, 0);
		bench_end(&t);
		bench_remove_directory(&t);
		t = (struct bench){0};
	}
	expect(lost > 300 * BATCH / 2);
	munmap(taken, sizeof(*taken));
}
